"""How good the answers are, by label and overall, and how deep the words were read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import DataError
from fathomer.evaluate.reliability import calibration_error, certainties, reliability
from fathomer.model.inference import Classified


@dataclass(frozen=True)
class LabelMetrics:
    """Hold the scores of one label."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Metrics:
    """Hold the scores of one evaluation."""

    accuracy: float
    """Part of the texts whose label, or whose labels all together, are right."""
    micro_f1: float
    """Over all labels of all texts; with one label per text it is the accuracy."""
    macro_f1: float
    loss: float
    """Mean negative log probability of the true label; of several, the mean over all labels."""
    examples: int
    mean_depth: float
    """Mean depth of a word, as selected at prediction."""
    words_by_depth: list[int]
    """How many words were read how deep; the first number is that of depth 0."""
    calibration_error: float
    """Expected distance between the probability of an answer and how often such ones are right."""
    per_label: dict[str, LabelMetrics]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)


def shown_depth(mean_depth: float) -> str:
    """Write a mean depth; a model that knows no depth has none.

    >>> shown_depth(2.5), shown_depth(0.0)
    ('2.50', '-')
    """
    return f"{mean_depth:.2f}" if mean_depth else "-"


def score(
    answers: Classified,
    targets: NDArray[np.int64],
    labels: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
) -> Metrics:
    """Compare answers with the true labels, given by their indices, or by a row for each text."""
    if not len(targets):
        raise DataError("there are no examples to score")
    predicted: NDArray[Any]
    if targets.ndim == 2:
        predicted = answers.given(thresholds)
        right = (predicted == targets).all(1)
        occurring = np.flatnonzero((predicted | (targets == 1)).any(0))
    else:
        predicted = answers.labels
        right = predicted == targets
        occurring = np.union1d(predicted, targets)
    per_label = {
        label: _score_label(has_label(predicted, index), has_label(targets, index))
        for index, label in enumerate(labels)
    }
    accuracy = float(np.mean(right))
    return Metrics(
        accuracy=accuracy,
        micro_f1=_micro_f1(predicted == 1, targets) if targets.ndim == 2 else accuracy,
        # A label that neither occurs nor is predicted says nothing about the answers.
        macro_f1=float(
            np.mean([per_label[labels[index]].f1 for index in occurring.tolist()] or [0.0])
        ),
        loss=_loss(answers.log_probabilities, targets),
        examples=len(targets),
        mean_depth=float(answers.depths.mean()) if len(answers.depths) else 0.0,
        words_by_depth=np.bincount(answers.depths).tolist() if len(answers.depths) else [],
        calibration_error=calibration_error(reliability(certainties(answers, targets))),
        per_label=per_label,
    )


def has_label(values: NDArray[Any], label: int) -> NDArray[np.bool_]:
    """Say which texts have a label."""
    found: NDArray[np.bool_] = values[:, label] == 1 if values.ndim == 2 else values == label
    return found


def _micro_f1(predicted: NDArray[np.bool_], targets: NDArray[np.int64]) -> float:
    both = int(np.sum(predicted & (targets == 1)))
    return 2 * both / max(1, int(predicted.sum()) + int(targets.sum()))


def _loss(log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    if targets.ndim == 1:
        chosen = log_probabilities[np.arange(len(targets)), targets]
        return float(-np.mean(chosen, dtype=np.float64))
    yes = log_probabilities.astype(np.float64)
    return float(-np.mean(np.where(targets == 1, yes, log_of_rest(yes))))


def log_of_rest(log_probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Give the logarithm of what a probability leaves to 1."""
    smallest = np.finfo(np.float64).tiny
    rest: NDArray[np.float64] = np.log(np.maximum(-np.expm1(log_probabilities), smallest))
    return rest


def _score_label(predicted: NDArray[np.bool_], true: NDArray[np.bool_]) -> LabelMetrics:
    both = int(np.sum(predicted & true))
    precision = both / max(1, int(predicted.sum()))
    recall = both / max(1, int(true.sum()))
    f1 = 2 * both / max(1, int(predicted.sum()) + int(true.sum()))
    return LabelMetrics(precision=precision, recall=recall, f1=f1, support=int(true.sum()))
