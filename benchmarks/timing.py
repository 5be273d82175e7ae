"""Timing of several cases in turns, round after round.

The speed of a machine varies over time. Cases that run in turns are affected alike, so that the
ratio of two medians is more reliable than the medians themselves.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from benchmarks.machine import peak_memory


@dataclass(frozen=True)
class Case:
    """One system on one workload; ``run`` does the work once and returns the seconds it took."""

    name: str
    lengths: str
    batch: int
    mean_depth: float | None
    precision: str | None
    words: int
    batches: int
    run: Callable[[], float]

    @property
    def label(self) -> str:
        """A short description for progress messages."""
        depth = "" if self.mean_depth is None else f", depth {self.mean_depth:g}"
        precision = f" {self.precision}" if self.precision else ""
        return f"{self.name}{precision}, {self.lengths}, batch {self.batch}{depth}"


@dataclass
class Timings:
    """The seconds of each round of a case, and the megabytes it allocated."""

    peak_mb: float | None
    seconds: list[float] = field(default_factory=list)


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """Return a function that does some work and returns the seconds it took."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return run


def run_in_turns(
    cases: Sequence[Case],
    *,
    rounds: int,
    seconds: float,
    report: Callable[[str], None],
) -> list[Timings]:
    """Run all cases in turns, after a warm-up run of each that also measures its memory.

    A case that has used up ``seconds`` skips later rounds, but runs at least twice. A warm-up run
    that alone takes that long is counted as a round.
    """
    timings = []
    for number, case in enumerate(cases, 1):
        report(f"warm-up {number}/{len(cases)}: {case.label}")
        first, peak = peak_memory(case.run)
        timings.append(Timings(peak, [first] if first >= seconds else []))
    for number in range(1, rounds + 1):
        report(f"round {number}/{rounds}")
        for case, found in zip(cases, timings, strict=True):
            if len(found.seconds) < 2 or sum(found.seconds) < seconds:
                found.seconds.append(case.run())
    return timings


@contextmanager
def time_inside(owner: type, method: str) -> Iterator[list[float]]:
    """Record the seconds of every call of a method."""
    original, seconds = getattr(owner, method), []

    def measured(*arguments: Any, **named: Any) -> Any:
        start = time.perf_counter()
        try:
            return original(*arguments, **named)
        finally:
            seconds.append(time.perf_counter() - start)

    setattr(owner, method, measured)
    try:
        yield seconds
    finally:
        setattr(owner, method, original)


@dataclass(frozen=True)
class Measurement:
    """One row of the results; times are medians over the rounds, of one batch."""

    name: str
    batch: int
    lengths: str
    mean_depth: float | None
    precision: str | None
    words_per_second: float
    milliseconds: float
    peak_mb: float | None
    spread: dict[str, float]
    """Milliseconds of the fastest and the slowest round, and the quartiles."""
    rounds: int
    words: int
    """Words in all batches of the case."""


def summarise(case: Case, timings: Timings) -> Measurement:
    """Return the medians and spread of a case."""
    milliseconds = sorted(1000 * second / case.batches for second in timings.seconds)
    q1, _, q3 = quantiles(milliseconds, method="inclusive")
    spread = {"min": milliseconds[0], "q1": q1, "q3": q3, "max": milliseconds[-1]}
    return Measurement(
        name=case.name,
        batch=case.batch,
        lengths=case.lengths,
        mean_depth=case.mean_depth,
        precision=case.precision,
        words_per_second=round(case.words / median(timings.seconds), 1),
        milliseconds=round(median(milliseconds), 3),
        peak_mb=None if timings.peak_mb is None else round(timings.peak_mb, 1),
        spread={name: round(value, 3) for name, value in spread.items()},
        rounds=len(timings.seconds),
        words=case.words,
    )
