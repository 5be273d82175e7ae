"""Progress of a training run: a bar with the time left in a terminal, plain lines elsewhere."""

import time
from collections.abc import Callable, Iterable, Iterator

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn

from fathomer.config import Recipe
from fathomer.evaluate.metrics import shown_depth
from fathomer.train.automatic import is_direct
from fathomer.train.checkpoint import EpochDone
from fathomer.train.loop import Event, RolledBack, StepDone
from fathomer.train.prepare import VectorsFound


def show_training(
    events: Iterable[Event], console: Console, *, epochs: int, mark_best: bool = True
) -> Iterator[Event]:
    """Pass events through and show them: steps in a bar, everything else as a line."""
    bar = Progress(
        TextColumn("epoch {task.fields[epoch]}/" + str(epochs)),
        BarColumn(bar_width=16),
        TextColumn("{task.fields[status]}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    clock = TrainingClock(epochs)
    running = _EpochTotals()
    with bar:
        task = bar.add_task("", total=None, epoch=1, status="")
        for event in events:
            if isinstance(event, StepDone):
                running.add(event)
                status = f"{running.status()}  {shown_time(clock.seconds_left(event))} left"
                bar.update(
                    task,
                    total=epochs * event.steps,
                    completed=(event.epoch - 1) * event.steps + event.step,
                    epoch=event.epoch,
                    status=status,
                )
            else:
                line = _line(event, running, epochs)
                best = mark_best and isinstance(event, EpochDone) and event.held_out and event.best
                console.print(f"{line}{'  best' if best else ''}", highlight=False)
                running = _EpochTotals()
            yield event


def watch_training(
    recipe: Recipe, console: Console
) -> Callable[[Iterable[Event]], Iterable[Event]]:
    """Return a function that passes events through and shows them; a direct fit shows nothing."""
    if is_direct(recipe.model.name):
        return iter
    epochs, mark_best = recipe.train.epochs, recipe.train.keep == "best"
    return lambda events: show_training(events, console, epochs=epochs, mark_best=mark_best)


class TrainingClock:
    """An estimate of the time left until the last epoch ends.

    The steps of an epoch are assumed to take as long as those before. A resumed training starts
    with some of the epochs done.
    """

    def __init__(self, epochs: int) -> None:
        self.epochs = epochs
        self.began = time.perf_counter()
        self.done_before: float | None = None

    def seconds_left(self, step: StepDone) -> float:
        """Return the seconds left after a step."""
        if self.done_before is None:
            self.done_before = step.epoch - 1
        done = step.epoch - 1 + step.step / step.steps
        speed = (done - self.done_before) / max(1e-9, time.perf_counter() - self.began)
        return (self.epochs - done) / speed


def shown_time(seconds: float) -> str:
    """Format seconds as hours, minutes and seconds.

    >>> shown_time(83), shown_time(7_261)
    ('1:23', '2:01:01')
    """
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


class _EpochTotals:
    """Running totals over the steps of an epoch."""

    def __init__(self) -> None:
        self.began = time.perf_counter()
        self.texts = self.correct = 0
        self.loss = 0.0

    def add(self, step: StepDone) -> None:
        self.texts += step.texts
        self.correct += step.correct
        self.loss += step.loss * step.texts

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self.began

    def status(self) -> str:
        return f"loss {self.loss / self.texts:.3f}  training {self.correct / self.texts:.3f}"


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
    held_out, depth = "", event.mean_depth
    if event.held_out is not None:
        held_out = f"  held out {event.held_out['accuracy']:.3f}"
        depth = event.held_out["mean_depth"]
    return (
        f"epoch {event.epoch}/{epochs}  loss {event.loss:.3f}  training {event.accuracy:.3f}"
        f"{held_out}  depth {shown_depth(depth)}  {running.seconds:.0f} s"
    )
