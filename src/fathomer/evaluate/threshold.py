"""Probability thresholds: the best F1 for a label, or a wanted precision or recall for answers."""

from dataclasses import asdict, dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import ConfigError, DataError, did_you_mean
from fathomer.evaluate.metrics import Answered, has_label
from fathomer.evaluate.reliability import Certainties, certainties


@dataclass(frozen=True)
class Threshold:
    """A threshold, and the scores if only answers that reach it are given."""

    threshold: float
    precision: float
    """Share of the given answers that are right."""
    recall: float
    """Share of all possible right answers that are given."""
    answered: int
    examples: int
    unit: str = "texts"
    """What ``answered`` and ``examples`` count: ``"texts"``, or ``"decisions"`` about labels."""

    def to_dict(self) -> dict[str, Any]:
        """Return the threshold and its scores as plain values."""
        return asdict(self)


class ThresholdCurve(NamedTuple):
    """All thresholds that lead to different answers, from the highest to the lowest."""

    thresholds: NDArray[np.float64]
    """Halfway to the next lower probability, so rounding cannot change which answers are given."""
    answered: NDArray[np.int64]
    """Number of answers that reach the threshold."""
    right: NDArray[np.int64]
    """Number of these answers that are right."""


def threshold_curve(found: Certainties) -> ThresholdCurve:
    """Count the answers, and the right ones, at every threshold; none if no answer is right."""
    from sklearn.metrics import precision_recall_curve  # slow to import, and not needed to predict

    if not found.right.any():
        return ThresholdCurve(*np.zeros((3, 0)))
    precisions, _, lowest = precision_recall_curve(found.right, found.probabilities)
    answered = len(found.right) - np.searchsorted(np.sort(found.probabilities), lowest)
    right = np.rint(precisions[:-1] * answered)
    middles = (lowest + np.append(0.0, lowest[:-1])) / 2
    return ThresholdCurve(middles[::-1], answered[::-1], right[::-1])


def best_f1_threshold(found: Certainties) -> float:
    """Return the threshold with the best F1; of equally good ones, the one closest to 0.5."""
    thresholds, answered, right = threshold_curve(found)
    f1 = 2 * right / (answered + found.right.sum())
    best = thresholds[f1 == f1.max()]
    return float(best[np.argmin(np.abs(best - 0.5))])


def find_threshold(
    found: Certainties, *, possible: int, precision: float | None, recall: float | None
) -> Threshold:
    """Return the threshold with the best recall at a precision, or the best precision at a recall."""
    thresholds, answered, right = threshold_curve(found)
    precisions, recalls = right / answered, right / possible
    if precision is not None:
        name, wanted, scores, other = "precision", precision, precisions, recalls
    else:
        name, wanted, scores, other = "recall", recall or 0.0, recalls, precisions
    if not (scores >= wanted).any():
        best = scores.max() if len(scores) else 0.0
        raise DataError(f"no threshold gives a {name} of {wanted}; the best is {best:.4f}")
    chosen = int(np.argmax(np.where(scores >= wanted, other, -1.0)))
    everything = answered[chosen] == len(found.right)
    return Threshold(
        threshold=0.0 if everything else float(thresholds[chosen]),
        precision=float(precisions[chosen]),
        recall=float(recalls[chosen]),
        answered=int(answered[chosen]),
        examples=len(found.right),
    )


def choose_threshold(
    answered: Answered,
    *,
    precision: float | None = None,
    recall: float | None = None,
    label: str | None = None,
) -> Threshold:
    """Find a model's threshold for one label, or for whichever label it answers."""
    if (precision is None) == (recall is None):
        raise ConfigError("give either a precision or a recall")
    wanted = recall if precision is None else precision
    assert wanted is not None
    if not 0 < wanted <= 1:
        raise ConfigError(f"a precision or recall is between 0 and 1, not {wanted}")
    if label is not None and label not in answered.labels:
        raise ConfigError(f"unknown label {label!r}; {did_you_mean(label, answered.labels)}")
    targets: NDArray[Any] = answered.data.targets
    if label is None:
        true = targets if answered.multi_label else np.ones(len(targets))
        found = _given_answers(answered)
    else:
        index = answered.labels.index(label)
        true = has_label(targets, index)
        found = _given_label(answered, index)
    possible = int(true.sum())
    if not possible:
        which = "a label" if label is None else f"the label {label!r}"
        raise DataError(f"no text has {which}; recall is undefined")
    best = find_threshold(found, possible=possible, precision=precision, recall=recall)
    unit = "decisions" if true.ndim == 2 else "texts"
    return replace(best, examples=true.size, unit=unit)


def _given_answers(answered: Answered) -> Certainties:
    """Return the answers that predict gives; if multi-label, the labels above their thresholds."""
    answers, targets = answered.answers, answered.data.targets
    found = certainties(answers, targets)
    if not answered.multi_label:
        return found
    given = answers.given(answered.thresholds).ravel()
    return Certainties(found.probabilities[given], found.right[given])


def _given_label(answered: Answered, index: int) -> Certainties:
    """Return the answers of predict for one label: the texts it gives that label to."""
    answers, targets = answered.answers, answered.data.targets
    given = answers.labels == index
    if answered.multi_label:
        given = answers.given(answered.thresholds)[:, index]
    probabilities = answers.probabilities[given, index]
    return Certainties(probabilities, has_label(targets, index)[given])
