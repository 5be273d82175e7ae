"""Progress of predicting: a bar in a terminal, nothing elsewhere."""

import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fathomer.answer_dataset import ChunkAnswered
from fathomer.data.reading import Row

Chunk = TypeVar("Chunk")


def show_answers(
    chunks: Iterable[list[Row]], console: Console, *, lines: int | None
) -> Iterator[list[Row]]:
    """Pass chunks through and show how much of a file is answered; ``lines`` is its length."""
    counted = ((chunk, len(chunk), chunk[-1].line) for chunk in chunks)
    return _shown(counted, console, total=lines)


def show_chunks(chunks: Iterable[ChunkAnswered], console: Console) -> Iterator[ChunkAnswered]:
    """Pass parts of answers through and show how many texts are answered."""
    return _shown(((chunk, chunk.rows, None) for chunk in chunks), console, total=None)


def _shown(
    counted: Iterable[tuple[Chunk, int, int | None]], console: Console, *, total: int | None
) -> Iterator[Chunk]:
    """Pass chunks through and show a bar, given the texts of each and how far it reaches.

    The bar disappears at the end, and is silent outside a terminal.
    """
    bar = Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.fields[texts]:,} texts  {task.fields[speed]:,.0f} texts/s"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    started, texts = time.perf_counter(), 0
    with bar:
        task = bar.add_task("", total=total, texts=0, speed=0.0)
        for chunk, number, reached in counted:
            yield chunk
            texts += number
            speed = texts / (time.perf_counter() - started)
            bar.update(task, completed=reached, texts=texts, speed=speed)
