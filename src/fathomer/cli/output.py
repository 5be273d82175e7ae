"""What commands print: answers to stdout, messages to stderr."""

import json
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console

    from fathomer.predictor import Predictor


def messages_console() -> "Console":
    """Open the console for progress and messages."""
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True, highlight=False, markup=False)


def open_model(folder: "Path", precision: str, device: str) -> "Predictor":
    """Load a model; what it warns of is printed as a line."""
    import warnings

    from fathomer.predictor import load

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        predictor = load(folder, precision=precision, device=device)  # type: ignore[arg-type]
    for warning in found:
        messages_console().print(f"warning: {warning.message}")
    return predictor


def print_line(line: str) -> None:
    """Print a line of an answer."""
    typer.echo(line)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object on one line."""
    typer.echo(json.dumps(content, ensure_ascii=False))


def print_scores(rows: dict[str, dict[str, Any]]) -> None:
    """Print a table of scores, one row per set of texts."""
    from fathomer.training.metrics import shown_depth

    width = max([len("texts"), *map(len, rows)])
    print_line(f"{'texts':<{width}}  examples  accuracy  macro F1  mean depth")
    for name, scores in rows.items():
        depth = shown_depth(scores["mean_depth"])
        print_line(
            f"{name:<{width}}  {scores['examples']:>8,}  {scores['accuracy']:>8.4f}  "
            f"{scores['macro_f1']:>8.4f}  {depth:>10}"
        )
