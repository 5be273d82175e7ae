"""Reliability of probabilities: 80 % of the answers with a probability of 80 % should be right."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import require
from fathomer.model.inference import Classified

BINS = 15


class Certainties(NamedTuple):
    """The probability of each answer, and whether the answer is right."""

    probabilities: NDArray[np.float64]
    right: NDArray[np.bool_]


@dataclass(frozen=True)
class ReliabilityBin:
    """Answers with similar probabilities."""

    probability: float
    """Mean probability of the answers."""
    right: float
    """Share of the answers that are right."""
    count: int


def certainties(answers: Classified, targets: NDArray[np.int64]) -> Certainties:
    """Return the probability of each answer and whether it is right.

    With multi-label targets, every label of every text counts as an answer.
    """
    if targets.ndim == 2:
        return Certainties(answers.probabilities.ravel(), targets.ravel() == 1)
    best = answers.labels
    probabilities = answers.probabilities[np.arange(len(best)), best]
    return Certainties(probabilities, best == targets)


def reliability(found: Certainties) -> list[ReliabilityBin]:
    """Group answers into bins of equal width by their probability; empty bins are left out."""
    bins = np.minimum((found.probabilities * BINS).astype(np.int64), BINS - 1)
    counts = np.bincount(bins, minlength=BINS)
    sums = np.bincount(bins, weights=found.probabilities, minlength=BINS)
    right = np.bincount(bins, weights=found.right, minlength=BINS)
    return [
        ReliabilityBin(float(sums[k] / counts[k]), float(right[k] / counts[k]), int(counts[k]))
        for k in np.flatnonzero(counts)
    ]


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Return the expected calibration error: the mean gap between probability and accuracy.

    >>> bins = [ReliabilityBin(0.9, 0.8, 30), ReliabilityBin(0.6, 0.6, 10)]
    >>> calibration_error(bins)  # doctest: +ELLIPSIS
    0.0749...
    """
    total = sum(found.count for found in bins)
    return sum(found.count * abs(found.probability - found.right) for found in bins) / total


def draw_reliability(bins: Sequence[ReliabilityBin], path: Path) -> None:
    """Draw accuracy against probability as a PNG; calibrated answers lie on the diagonal."""
    require("matplotlib", "plots")
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
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="probability", ylabel="share of right answers")
    axes.set_title(f"expected calibration error {calibration_error(bins):.3f}")
    figure.savefig(path, format="png", dpi=120)
