"""Depth budgets: reading at any average depth between 1 and L, and what that costs.

The logit of depth ``d`` is shifted by ``s d``. As ``s`` rises, a word becomes deeper whenever ``s``
passes one of its thresholds, which follow from its logits. The average depth of some texts is therefore
1 plus the average number of thresholds below ``s``.
"""

import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.labelled import LabelledTexts
from fathomer.errors import DepthError
from fathomer.evaluate.metrics import score
from fathomer.model.depth_shift import shift_depths
from fathomer.model.fast import fast_network
from fathomer.model.inference import classify, depth_logits
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.text.encode import EncodedTexts

POINTS = 101
"""Rows of the table of budgets."""
SAMPLE_TEXTS = 2000
"""Texts on which the table is fitted and the curve is measured, if there are more."""
CURVE = (1.0, 1.5, 2.0, 3.0, 4.5, 6.0, 9.0)
"""Budgets of the curve, as far as the model reads."""


@dataclass(frozen=True)
class DepthBudgets:
    """Average depths from 1 to L, and the shift of the depth logits that leads to each of them."""

    depths: tuple[float, ...]
    shifts: tuple[float, ...]
    target: float
    """The average depth without a shift."""

    def __post_init__(self) -> None:
        if not len(self.depths) == len(self.shifts) > 0:
            raise ValueError(f"{len(self.depths)} depths, {len(self.shifts)} shifts")
        if not np.isfinite([*self.depths, *self.shifts, self.target]).all():
            raise ValueError("a depth or shift is not finite")
        if any(np.diff(self.depths) < 0) or any(np.diff(self.shifts) < 0):
            raise ValueError("the depths and shifts do not rise")

    def shift(self, budget: float) -> float:
        """Return the shift for an average depth; between two rows it is interpolated."""
        if not self.depths[0] <= budget <= self.depths[-1]:
            raise DepthError(f"depth budget {budget:g}; use 1 to {self.depths[-1]:g}")
        return float(np.interp(budget, self.depths, self.shifts))

    def to_dict(self) -> dict[str, Any]:
        """Return the table as plain values."""
        return {"depths": self.depths, "shifts": self.shifts, "target": self.target}

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> "DepthBudgets":
        """Read the result of :meth:`to_dict`."""
        depths, shifts = (tuple(map(float, content[name])) for name in ("depths", "shifts"))
        return cls(depths, shifts, float(content["target"]))


def calibrate_depth(
    network: DepthAdaptiveNetwork, texts: EncodedTexts, *, target: float, batch_words: int
) -> DepthBudgets:
    """Move the bias of a network so that its average depth is ``target``; return all budgets."""
    logits = depth_logits(network, sample(texts), batch_words=batch_words).astype(np.float64)
    thresholds = np.sort(depth_thresholds(logits), axis=None)
    shares = np.linspace(0, 1, POINTS)
    if not len(thresholds):  # a single depth, or no words
        thresholds = np.zeros(1)
    shifts = np.quantile(thresholds, shares)
    shifts[[0, -1]] += (-1, 1)  # beyond the last word
    max_depth = network.config.max_depth
    depths = 1 + (max_depth - 1) * shares
    found = float(np.interp(target, depths, shifts)) if max_depth > 1 else 0.0
    shifted = shift_depths(network, found)
    network.depth.scores.bias.data.copy_(shifted.depth.scores.bias)
    return DepthBudgets(tuple(depths.tolist()), tuple((shifts - found).tolist()), target)


def depth_thresholds(logits: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the shifts above which each word is read deeper than 1, 2, ..., L - 1.

    A word is deeper than ``k`` if some depth ``j > k`` beats all depths ``i <= k``:
    ``s > (logit_i - logit_j) / (j - i)``.
    """
    words, depths = logits.shape
    found = np.full((words, depths - 1), np.inf)
    for j in range(1, depths):
        beaten = (logits[:, :j] - logits[:, j : j + 1]) / (j - np.arange(j))
        found[:, :j] = np.minimum(found[:, :j], np.maximum.accumulate(beaten, axis=1))
    return found


@dataclass(frozen=True)
class CurvePoint:
    """Accuracy and speed of a model at one depth budget."""

    budget: float
    mean_depth: float
    accuracy: float
    texts_per_second: float

    def to_dict(self) -> dict[str, float]:
        """Return the point as plain values."""
        return asdict(self)


def measure_curve(
    network: DepthAdaptiveNetwork,
    data: LabelledTexts,
    labels: Sequence[str],
    budgets: DepthBudgets,
    *,
    batch_words: int,
    thresholds: Sequence[float] | None = None,
) -> list[CurvePoint]:
    """Classify labelled texts at several budgets."""
    engine = fast_network(network)
    assert isinstance(engine, DepthAdaptiveNetwork)
    chosen = _evenly(len(data))
    texts, targets = data.texts.take(chosen), data.targets[chosen]
    largest = budgets.depths[-1]
    points = []
    wanted = {*(each for each in CURVE if each < largest), budgets.target, largest}
    classify(engine, texts, batch_words=batch_words, max_depth=1)  # fill the caches
    for budget in sorted(wanted):
        began = time.perf_counter()
        shifted = shift_depths(engine, budgets.shift(budget))
        answers = classify(shifted, texts, batch_words=batch_words)
        seconds = time.perf_counter() - began
        found = score(answers, targets, labels, thresholds=thresholds)
        speed = round(len(targets) / seconds, 1)
        points.append(CurvePoint(budget, found.mean_depth, found.accuracy, speed))
    return points


def sample(texts: EncodedTexts) -> EncodedTexts:
    """Return the texts, or some of them if there are many."""
    return texts.take(_evenly(len(texts)))


def _evenly(count: int) -> list[int]:
    """Return up to SAMPLE_TEXTS numbers below ``count``, evenly spaced."""
    chosen = np.linspace(0, count - 1, min(count, SAMPLE_TEXTS)).astype(int)
    return [int(number) for number in chosen]
