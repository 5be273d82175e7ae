"""How good the answers are, by label and overall, and how deep the words were read."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import DataError
from fathomer.nn.inference import Classified
from fathomer.training.reliability import calibration_error, certainties, reliability


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
    macro_f1: float
    loss: float
    """Mean negative log probability of the true label."""
    examples: int
    mean_depth: float
    """Mean depth of a word, as selected at prediction."""
    calibration_error: float
    """Expected distance between the probability of an answer and how often such ones are right."""
    per_label: dict[str, LabelMetrics]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)


def score(answers: Classified, targets: NDArray[np.int64], labels: Sequence[str]) -> Metrics:
    """Compare answers with the true labels, given by their indices."""
    if not len(targets):
        raise DataError("there are no examples to score")
    predicted = answers.labels
    chosen = answers.log_probabilities[np.arange(len(targets)), targets]
    per_label = {
        label: _score_label(predicted == index, targets == index)
        for index, label in enumerate(labels)
    }
    # A label that neither occurs nor is predicted says nothing about the answers.
    occurring = np.union1d(predicted, targets)
    return Metrics(
        accuracy=float(np.mean(predicted == targets)),
        macro_f1=float(np.mean([per_label[labels[index]].f1 for index in occurring])),
        loss=float(-np.mean(chosen, dtype=np.float64)),
        examples=len(targets),
        mean_depth=float(answers.depths.mean()) if len(answers.depths) else 0.0,
        calibration_error=calibration_error(reliability(certainties(answers, targets))),
        per_label=per_label,
    )


def _score_label(predicted: NDArray[np.bool_], true: NDArray[np.bool_]) -> LabelMetrics:
    both = int(np.sum(predicted & true))
    precision = both / max(1, int(predicted.sum()))
    recall = both / max(1, int(true.sum()))
    f1 = 2 * both / max(1, int(predicted.sum()) + int(true.sum()))
    return LabelMetrics(precision=precision, recall=recall, f1=f1, support=int(true.sum()))
