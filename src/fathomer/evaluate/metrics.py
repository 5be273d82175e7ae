"""Scores of a model's answers, overall and for each label, and the depths of the words."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.data.labelled import LabelledTexts
from fathomer.errors import DataError
from fathomer.evaluate.reliability import calibration_error, certainties, reliability
from fathomer.model.inference import Classified


class Answered(NamedTuple):
    """Labelled texts and the answers of a model to them."""

    data: LabelledTexts
    answers: Classified
    labels: tuple[str, ...]
    thresholds: tuple[float, ...] | None = None
    """One per label in a multi-label model."""

    @property
    def multi_label(self) -> bool:
        """Whether a text may have several labels."""
        return self.data.targets.ndim == 2


@dataclass(frozen=True)
class LabelMetrics:
    """The scores of one label."""

    precision: float
    recall: float
    f1: float
    support: int


@dataclass(frozen=True)
class Metrics:
    """The scores of one evaluation."""

    accuracy: float
    """Share of texts whose label, or whose complete set of labels, is right."""
    micro_f1: float
    """F1 over all decisions about all labels; equals the accuracy if texts have one label."""
    macro_f1: float
    """Mean F1 of the labels that occur or are predicted."""
    loss: float
    """Mean negative log-probability of the true label; if multi-label, mean over all labels."""
    examples: int
    mean_depth: float
    """Mean depth of a word, as selected at prediction."""
    words_by_depth: list[int]
    """Number of words at each depth, starting with depth 0."""
    calibration_error: float
    """Expected calibration error: mean gap between the probability and the accuracy of answers."""
    per_label: dict[str, LabelMetrics]

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)


def score(
    answers: Classified,
    targets: NDArray[np.int64],
    labels: Sequence[str],
    *,
    thresholds: Sequence[float] | None = None,
) -> Metrics:
    """Compare answers with the true labels: an index per text or, if multi-label, a row."""
    from sklearn import metrics as sklearn  # slow to import, and not needed to predict

    if not len(targets):
        raise DataError("there are no examples to score")
    multi_label = targets.ndim == 2
    predicted: NDArray[Any] = answers.given(thresholds) if multi_label else answers.labels
    indices = _label_indices(targets, labels)
    # Scores are nan where their denominator is zero; F1 is, if a label is neither true nor predicted.
    precision, recall, f1, support = sklearn.precision_recall_fscore_support(
        targets, predicted, labels=indices, zero_division=np.nan
    )
    defined = f1[~np.isnan(f1)]
    rows = zip(*map(np.nan_to_num, (precision, recall, f1)), support, strict=True)
    return Metrics(
        accuracy=float(sklearn.accuracy_score(targets, predicted)),
        micro_f1=float(
            sklearn.f1_score(targets, predicted, labels=indices, average="micro", zero_division=0)
        ),
        macro_f1=float(defined.mean()) if len(defined) else 0.0,
        loss=_mean_loss(answers.log_probabilities, targets),
        examples=len(targets),
        mean_depth=float(answers.depths.mean()) if len(answers.depths) else 0.0,
        words_by_depth=np.bincount(answers.depths).tolist() if len(answers.depths) else [],
        calibration_error=calibration_error(reliability(certainties(answers, targets))),
        per_label={
            label: LabelMetrics(float(precision), float(recall), float(f1), int(support))
            for label, (precision, recall, f1, support) in zip(labels, rows, strict=True)
        },
    )


def _label_indices(targets: NDArray[np.int64], labels: Sequence[str]) -> list[int]:
    """Return the indices by which scikit-learn knows the labels."""
    if (
        targets.ndim == 2 and len(labels) == 1
    ):  # taken as binary targets, where 1 is "has the label"
        return [1]
    return list(range(len(labels)))


def _mean_loss(log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    """Return the log loss, from logarithms: scikit-learn's clips small probabilities."""
    if targets.ndim == 1:
        chosen = log_probabilities[np.arange(len(targets)), targets]
        return float(-np.mean(chosen, dtype=np.float64))
    yes = log_probabilities.astype(np.float64)
    return float(-np.mean(np.where(targets == 1, yes, log_complement(yes))))


def log_complement(log_probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``log(1 - p)`` for each ``log(p)``."""
    smallest = np.finfo(np.float64).tiny
    rest: NDArray[np.float64] = np.log(np.maximum(-np.expm1(log_probabilities), smallest))
    return rest


def has_label(values: NDArray[Any], label: int) -> NDArray[np.bool_]:
    """Return which texts have a label, from label indices or from multi-label rows."""
    found: NDArray[np.bool_] = values[:, label] == 1 if values.ndim == 2 else values == label
    return found


def shown_depth(mean_depth: float) -> str:
    """Format a mean depth; models without depths have ``-``.

    >>> shown_depth(2.5), shown_depth(0.0)
    ('2.50', '-')
    """
    return f"{mean_depth:.2f}" if mean_depth else "-"
