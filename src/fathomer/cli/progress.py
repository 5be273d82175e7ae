"""Progress of training and predicting: a bar in a terminal, plain lines elsewhere."""

import time
from collections.abc import Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from fathomer.answer_dataset import ChunkAnswered
from fathomer.data.reading import Row
from fathomer.evaluate.metrics import shown_depth
from fathomer.train.checkpoint import EpochDone
from fathomer.train.loop import Event, RolledBack, StepDone
from fathomer.train.prepare import VectorsFound


def show_training(
    events: Iterable[Event], console: Console, *, epochs: int, mark_best: bool = True
) -> Iterator[Event]:
    """Pass events through and show them: steps in a bar, everything else as a line."""
    bar = _bar(
        console,
        TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
        BarColumn(bar_width=24),
        TextColumn("{task.fields[status]}"),
    )
    running = _EpochTotals()
    with bar:
        task = bar.add_task("", total=None, epoch=1, status="")
        for event in events:
            if isinstance(event, StepDone):
                running.add(event)
                bar.update(
                    task,
                    total=event.steps,
                    completed=event.step,
                    epoch=event.epoch,
                    status=running.status(),
                )
            else:
                line = _line(event, running, epochs)
                best = mark_best and isinstance(event, EpochDone) and event.held_out and event.best
                console.print(f"{line}{'  (best)' if best else ''}", highlight=False)
                running = _EpochTotals()
            yield event


def show_answers(
    chunks: Iterable[list[Row]], console: Console, *, lines: int | None
) -> Iterator[list[Row]]:
    """Pass chunks through and show how much of a file is answered; ``lines`` is its length."""
    bar = _bar(
        console,
        BarColumn(bar_width=24),
        TextColumn("{task.fields[texts]:,} texts  {task.fields[speed]:,.0f} texts/s"),
    )
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
    bar = _bar(
        console,
        BarColumn(bar_width=24),
        TextColumn("{task.fields[texts]:,} texts  {task.fields[speed]:,.0f} texts/s"),
    )
    started, texts = time.perf_counter(), 0
    with bar:
        task = bar.add_task("", total=None, texts=0, speed=0.0)
        for chunk in chunks:
            yield chunk
            texts += chunk.rows
            bar.update(task, texts=texts, speed=texts / (time.perf_counter() - started))


def _bar(console: Console, *columns: BarColumn | TextColumn) -> Progress:
    """Return a progress bar that disappears at the end, and is silent outside a terminal."""
    return Progress(
        *columns,
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )


class _EpochTotals:
    """Running totals over the steps of an epoch."""

    def __init__(self) -> None:
        self.started = time.perf_counter()
        self.texts = self.words = self.correct = self.depths = 0
        self.loss = 0.0

    def add(self, step: StepDone) -> None:
        self.texts += step.texts
        self.words += step.words
        self.correct += step.correct
        self.depths += step.depth_sum
        self.loss += step.loss * step.texts

    def words_per_second(self) -> float:
        return self.words / (time.perf_counter() - self.started)

    def status(self) -> str:
        return (
            f"loss {self.loss / self.texts:.4f}  accuracy {self.correct / self.texts:.3f}  "
            f"depth {shown_depth(self.depths / max(1, self.words))}  "
            f"{self.words_per_second():,.0f} words/s"
        )


def _line(event: VectorsFound | EpochDone | RolledBack, running: _EpochTotals, epochs: int) -> str:
    if isinstance(event, VectorsFound):
        return (
            f"{event.file} covers {event.words:.1%} of the training words "
            f"({event.types:.1%} of the distinct words)"
        )
    if isinstance(event, RolledBack):
        return (
            f"epoch {event.epoch}: the loss was not finite at step {event.step}; continuing from "
            f"the last good state with a learning rate of {event.learning_rate:.2g}"
        )
    line = (
        f"epoch {event.epoch}/{epochs}  loss {event.loss:.4f}  accuracy {event.accuracy:.3f}  "
        f"depth {shown_depth(event.mean_depth)}  {running.words_per_second():,.0f} words/s"
    )
    if event.held_out is None:
        return line
    held_out = (
        f"held out: accuracy {event.held_out['accuracy']:.3f}  "
        f"depth {shown_depth(event.held_out['mean_depth'])}"
    )
    return f"{line}  |  {held_out}"
