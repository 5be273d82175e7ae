"""Take times side by side: contestants run in turn, round after round.

A machine is slower at one moment than at another. Whoever runs in turn shares the slow moments, so
that the ratio of two medians says more than the medians themselves.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles

from benchmarks.machine import peak_memory


@dataclass(frozen=True)
class Contestant:
    """Name what is measured; ``run`` does the work of one measurement and gives its seconds."""

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
        """Tell contestants apart on a line of progress."""
        depth = "" if self.mean_depth is None else f", depth {self.mean_depth:g}"
        precision = f" {self.precision}" if self.precision else ""
        return f"{self.name}{precision}, {self.lengths}, batch {self.batch}{depth}"


@dataclass
class Times:
    """Hold what was measured of a contestant: seconds of each round, and megabytes."""

    peak_mb: float | None
    seconds: list[float] = field(default_factory=list)


def timed(work: Callable[[], object]) -> Callable[[], float]:
    """Give a function that does some work and says how many seconds it took."""

    def run() -> float:
        start = time.perf_counter()
        work()
        return time.perf_counter() - start

    return run


def race(
    contestants: Sequence[Contestant],
    *,
    rounds: int,
    seconds: float,
    tell: Callable[[str], None],
) -> list[Times]:
    """Run all contestants in turn, after a first run that warms up and shows the memory taken.

    Whoever has used up ``seconds`` sits out the later rounds, but has two times at least. Whoever
    uses them up in the first run has no need of warming up: that run counts.
    """
    times = []
    for number, contestant in enumerate(contestants, 1):
        tell(f"warm-up {number}/{len(contestants)}: {contestant.label}")
        first, peak = peak_memory(contestant.run)
        times.append(Times(peak, [first] if first >= seconds else []))
    for number in range(1, rounds + 1):
        tell(f"round {number}/{rounds}")
        for contestant, found in zip(contestants, times, strict=True):
            if len(found.seconds) < 2 or sum(found.seconds) < seconds:
                found.seconds.append(contestant.run())
    return times


@dataclass(frozen=True)
class Row:
    """Hold one line of the table; times are those of one batch, medians over the rounds."""

    name: str
    batch: int
    lengths: str
    mean_depth: float | None
    precision: str | None
    words_per_second: float
    milliseconds: float
    peak_mb: float | None
    spread: dict[str, float]
    """Milliseconds of the fastest and slowest round, and the quartiles."""
    rounds: int
    words: int
    """Words of one measurement."""


def make_row(contestant: Contestant, times: Times) -> Row:
    """Sum up what was measured of one contestant."""
    milliseconds = sorted(1000 * second / contestant.batches for second in times.seconds)
    q1, _, q3 = quantiles(milliseconds, method="inclusive")
    spread = {"min": milliseconds[0], "q1": q1, "q3": q3, "max": milliseconds[-1]}
    return Row(
        name=contestant.name,
        batch=contestant.batch,
        lengths=contestant.lengths,
        mean_depth=contestant.mean_depth,
        precision=contestant.precision,
        words_per_second=round(contestant.words / median(times.seconds), 1),
        milliseconds=round(median(milliseconds), 3),
        peak_mb=None if times.peak_mb is None else round(times.peak_mb, 1),
        spread={name: round(value, 3) for name, value in spread.items()},
        rounds=len(times.seconds),
        words=contestant.words,
    )
