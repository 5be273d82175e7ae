"""Progress of predicting: a bar in a terminal, nothing elsewhere."""

import time
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fathomer.answer_dataset import ChunkAnswered
from fathomer.data.reading import Row


def show_answers(
    chunks: Iterable[list[Row]], console: Console, *, lines: int | None
) -> Iterator[list[Row]]:
    """Pass chunks through and show how much of a file is answered; ``lines`` is its length."""
    bar = _bar(console)
    started, texts = time.perf_counter(), 0
    with bar:
        task = bar.add_task("", total=lines, texts=0, speed=0.0)
        for chunk in chunks:
            yield chunk
            texts += len(chunk)
            speed = texts / (time.perf_counter() - started)
            bar.update(task, completed=chunk[-1].line, texts=texts, speed=speed)


def show_chunks(chunks: Iterable[ChunkAnswered], console: Console) -> Iterator[ChunkAnswered]:
    """Pass parts of answers through and show how many texts are answered."""
    bar = _bar(console)
    started, texts = time.perf_counter(), 0
    with bar:
        task = bar.add_task("", total=None, texts=0, speed=0.0)
        for chunk in chunks:
            yield chunk
            texts += chunk.rows
            bar.update(task, texts=texts, speed=texts / (time.perf_counter() - started))


def _bar(console: Console) -> Progress:
    """Return a progress bar that disappears at the end, and is silent outside a terminal."""
    return Progress(
        BarColumn(bar_width=24),
        TextColumn("{task.fields[texts]:,} texts  {task.fields[speed]:,.0f} texts/s"),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
