"""What commands print: answers to stdout, messages to stderr."""

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console


def messages_console() -> "Console":
    """Open the console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def print_line(line: str) -> None:
    """Print a line of an answer."""
    typer.echo(line)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def print_table(header: list[str], rows: list[list[str]], *, right: int = 1) -> None:
    """Print rows under a header; columns from the number ``right`` on hold numbers."""
    from rich.cells import cell_len

    widths = [max(map(cell_len, column)) for column in zip(header, *rows, strict=True)]
    for row in [header, *rows]:
        cells = []
        for number, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if number >= right else cell + space)
        print_line("  ".join(cells).rstrip())


def print_scores(rows: dict[str, dict[str, Any]]) -> None:
    """Print a table of scores, one row per set of texts."""
    print_table(
        ["texts", "examples", "accuracy", "macro F1", "mean depth"],
        [
            [
                name,
                f"{scores['examples']:,}",
                f"{scores['accuracy']:.4f}",
                f"{scores['macro_f1']:.4f}",
                f"{scores['mean_depth']:.2f}" if scores["mean_depth"] else "-",
            ]
            for name, scores in rows.items()
        ],
    )
