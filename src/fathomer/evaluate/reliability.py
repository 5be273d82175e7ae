"""Whether probabilities can be trusted: of answers given with 80 %, 80 % should be right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import require_matplotlib
from fathomer.model.inference import Classified

BINS = 15


class Certainties(NamedTuple):
    """Hold how probable answers were said to be, and which of them are right."""

    probabilities: NDArray[np.float64]
    right: NDArray[np.bool_]


@dataclass(frozen=True)
class Bin:
    """Hold answers of like probability."""

    probability: float
    """As the model said, on average."""
    right: float
    """Part of the answers that are right."""
    count: int


def certainties(answers: Classified, targets: NDArray[np.int64]) -> Certainties:
    """Give the probability of each answer, and whether it is right.

    Where a text may have several labels, each label of each text is an answer.
    """
    if targets.ndim == 2:
        probabilities = answers.probabilities
        return Certainties(probabilities.ravel(), targets.ravel() == 1)
    best = answers.labels
    probabilities = answers.probabilities[np.arange(len(best)), best]
    return Certainties(probabilities, best == targets)


def reliability(found: Certainties) -> list[Bin]:
    """Group answers by their probability; groups without an answer are left out."""
    places = np.minimum((found.probabilities * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(places, minlength=BINS)
    sums = np.bincount(places, weights=found.probabilities, minlength=BINS)
    right = np.bincount(places, weights=found.right, minlength=BINS)
    return [
        Bin(float(sums[k] / counts[k]), float(right[k] / counts[k]), int(counts[k]))
        for k in np.flatnonzero(counts)
    ]


def calibration_error(bins: Sequence[Bin]) -> float:
    """Give the expected calibration error: the mean distance between probability and truth.

    >>> calibration_error([Bin(0.9, 0.8, 30), Bin(0.6, 0.6, 10)])  # doctest: +ELLIPSIS
    0.0749...
    """
    total = sum(found.count for found in bins)
    return sum(found.count * abs(found.probability - found.right) for found in bins) / total


def draw_reliability(bins: Sequence[Bin], path: Path) -> None:
    """Draw probability against truth as a PNG; trusted answers lie on the diagonal."""
    require_matplotlib()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 5), layout="constrained")
    axes: Any = figure.subplots()
    largest = max(found.count for found in bins)
    axes.plot([0, 1], [0, 1], color="grey", linestyle=":")
    axes.plot([b.probability for b in bins], [b.right for b in bins], color="tab:blue")
    axes.scatter(
        [b.probability for b in bins],
        [b.right for b in bins],
        s=[20 + 180 * b.count / largest for b in bins],
        color="tab:blue",
    )
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="part that is right")
    axes.set_title(f"expected calibration error {calibration_error(bins):.3f}")
    figure.savefig(path, format="png", dpi=120)
