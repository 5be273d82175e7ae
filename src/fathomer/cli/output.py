"""Output of the commands: results to stdout, messages to stderr."""

import json
import re
import shlex
import shutil
import sys
import textwrap
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from fathomer.predictor import Predictor


_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
"""Characters that a terminal obeys, except tab and line feed."""


def visible(text: str) -> str:
    r"""Escape control characters, as JSON does; a label could otherwise command the terminal.

    >>> visible("\x1b[2J")
    '\\u001b[2J'
    """
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def messages_console() -> "Console":
    """Return the console for progress and messages."""
    from rich.console import Console

    class Messages(Console):
        def print(self, *objects: Any, **options: Any) -> None:
            shown = [visible(each) if isinstance(each, str) else each for each in objects]
            super().print(*shown, **options)

    console = Messages(stderr=True, highlight=False, markup=False)
    console.soft_wrap = not console.is_terminal  # a terminal would break lines inside words
    return console


def open_model(folder: "Path", precision: str, device: str) -> "Predictor":
    """Load a model, and print each of its warnings as one line."""
    import warnings

    from fathomer.predictor import load

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        predictor = load(folder, precision=precision, device=device)  # type: ignore[arg-type]
    for warning in found:
        messages_console().print(f"warning: {warning.message}")
    return predictor


def print_line(line: str) -> None:
    """Print a line of the result."""
    typer.echo(visible(line))


def print_wrapped(line: str, *, err: bool = False) -> None:
    """Print a line of the result, or an error; in a terminal, break it between words."""
    if (sys.stderr if err else sys.stdout).isatty():
        width = shutil.get_terminal_size().columns
        line = textwrap.fill(line, width, subsequent_indent="  ", break_long_words=False)
    typer.echo(visible(line), err=err)


def print_command(command: str) -> None:
    """Print a shell command; in a terminal, continue a long one on the next line, before an option."""
    if not sys.stdout.isatty():
        print_line(command)
        return
    room = shutil.get_terminal_size().columns - len(" \\")
    parts: list[list[str]] = [[]]
    for word in shlex.split(command):
        if word.startswith("--"):
            parts.append([])
        parts[-1].append(word)
    lines = [shlex.join(parts[0])]
    for part in map(shlex.join, parts[1:]):
        if len(f"{lines[-1]} {part}") <= room:
            lines[-1] += f" {part}"
        else:
            lines.append(f"  {part}")
    print_line(" \\\n".join(lines))


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    typer.echo(visible(json.dumps(content, ensure_ascii=False)))


def print_table(header: list[str], rows: list[list[str]], *, right: int = 1) -> None:
    """Print a table; columns from index ``right`` on are aligned to the right."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if number >= right else cell + space)
        print_line("  ".join(cells).rstrip())


def print_scores(rows: dict[str, dict[str, Any]]) -> None:
    """Print a table of scores with one row per set of texts, and the seconds of training if known."""
    from fathomer.evaluate.metrics import shown_depth

    timed = any("seconds" in scores for scores in rows.values())
    print_table(
        ["texts", "examples", "accuracy", "macro F1", "mean depth", *["training s"] * timed],
        [
            [
                name,
                f"{scores['examples']:,}",
                f"{scores['accuracy']:.4f}",
                f"{scores['macro_f1']:.4f}",
                shown_depth(scores["mean_depth"]),
                *([f"{scores['seconds']:,.1f}"] if timed else []),
            ]
            for name, scores in rows.items()
        ],
    )
