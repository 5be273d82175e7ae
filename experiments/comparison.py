"""Comparison of two groups of runs: a paired bootstrap over the test texts."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from experiments.groups import Group

RESAMPLES = 10_000


@dataclass(frozen=True)
class Comparison:
    """The gain in accuracy of one group over another on the same test texts."""

    gain: float
    low: float
    high: float
    """Bounds of the central 95 % of the resampled gains."""
    p: float
    """Two-sided p-value: twice the share of resampled gains on the other side of zero."""
    texts: int
    runs: int
    """Number of runs of the group that has fewer."""

    @property
    def significant(self) -> bool:
        """Whether the gain or loss is significant at the 5 % level."""
        return self.p < 0.05

    def __str__(self) -> str:
        p = shown_p(self.p) if self.p < 0.001 else f"= {shown_p(self.p)}"
        runs = f"{self.runs} run{'s' if self.runs > 1 else ''}"
        return f"{100 * self.gain:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}], p {p} ({runs})"


def compare(*pairs: tuple[Group, Group]) -> Comparison | None:
    """Compare the first group of each pair with the second on the texts that both classified.

    The answers of several seeds to one text are averaged first, because texts are resampled and not
    answers. Several pairs, each on a corpus of its own, count the same; the texts of each test set
    are resampled by themselves.
    """
    sets = [found for pair in pairs if (found := _differences(*pair))]
    if not sets:
        return None
    random = np.random.default_rng(0)
    resampled = [np.sum([_resampled_sums(part, random) for part in parts], 0) for parts in sets]
    sizes = [sum(map(len, parts)) for parts in sets]
    means = [sums / size for sums, size in zip(resampled, sizes, strict=True)]
    gains = np.mean(means, axis=0).round(12)  # rounding errors must cancel to zero
    low, high = np.quantile(gains, [0.025, 0.975])
    tail = min(float(np.mean(gains <= 0)), float(np.mean(gains >= 0)))
    return Comparison(
        gain=float(np.mean([np.concatenate(parts).mean() for parts in sets])),
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * tail),
        texts=sum(sizes),
        runs=sum(min(len(group.runs) for group in pair) for pair in pairs),
    )


def _resampled_sums(
    differences: NDArray[np.float64], random: np.random.Generator
) -> NDArray[np.float64]:
    """Return the sum of the differences of a test set, for each resample of its texts."""
    # Texts with equal differences are interchangeable, so it is enough to draw how many of each.
    _, first, counts = np.unique(differences.round(9), return_index=True, return_counts=True)
    texts = len(differences)
    drawn = random.multinomial(texts, counts / texts, size=RESAMPLES)
    sums: NDArray[np.float64] = drawn @ differences[first]
    return sums


def holm(values: Sequence[float]) -> list[float]:
    """Correct p-values for their number, by Holm's method.

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    corrected, largest = [0.0] * len(values), 0.0
    for rank, number in enumerate(np.argsort(values, kind="stable")):
        largest = max(largest, min(1.0, (len(values) - rank) * values[number]))
        corrected[number] = largest
    return corrected


def shown_p(p: float) -> str:
    """Return a p-value with as many digits as the resampling supports."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def _differences(ours: Group, theirs: Group) -> list[NDArray[np.float64]]:
    """Return the difference in correct answers per text, for each test set both groups share."""
    first, second = _accuracies(ours), _accuracies(theirs)
    return [first[key] - second[key] for key in sorted(set(first) & set(second))]


def _accuracies(group: Group) -> dict[tuple[int, str], NDArray[np.float64]]:
    """Return the share of runs that classified each text correctly, by fold and test set."""
    found: defaultdict[tuple[int, str], list[NDArray[np.bool_]]] = defaultdict(list)
    for run in group.runs:
        found[run.fold or 0, run.checksums["test"]].append(run.is_correct)
    return {key: np.mean(correct, axis=0) for key, correct in found.items()}
