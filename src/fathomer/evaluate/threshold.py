"""From which probability on an answer is good enough: the threshold for a precision or a recall."""

from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.examples import Examples
from fathomer.errors import ConfigError, DataError, did_you_mean
from fathomer.evaluate.metrics import has_label
from fathomer.evaluate.reliability import Certainties, certainties
from fathomer.predictor import Answered, Predictor


@dataclass(frozen=True)
class Threshold:
    """Hold a threshold, and what comes of giving only answers that reach it."""

    threshold: float
    precision: float
    """Part of the given answers that are right."""
    recall: float
    """Part of what could have been answered right that is."""
    answered: int
    examples: int
    unit: str = "texts"
    """What ``answered`` and ``examples`` count: ``"texts"``, or ``"decisions"`` about labels."""

    def to_dict(self) -> dict[str, Any]:
        """Return the threshold as plain values."""
        return asdict(self)


def choose_threshold(
    predictor: Predictor,
    examples: Examples,
    *,
    precision: float | None = None,
    recall: float | None = None,
    label: str | None = None,
) -> Threshold:
    """Find the threshold of a model for one label, or for whatever label it answers."""
    if (precision is None) == (recall is None):
        raise ConfigError("say which precision or which recall is wanted, one of them")
    wanted = recall if precision is None else precision
    assert wanted is not None
    if not 0 < wanted <= 1:
        raise ConfigError(f"a precision or recall lies between 0 and 1, not at {wanted}")
    if label is not None and label not in predictor.labels:
        raise ConfigError(f"unknown label {label!r}; {did_you_mean(label, predictor.labels)}")
    answered = predictor.answer(examples)
    true: NDArray[Any]
    if label is None:
        true = answered.data.targets if predictor.multi_label else np.ones(len(examples))
        found = _given(predictor, answered)
    else:
        number = predictor.labels.index(label)
        true = has_label(answered.data.targets, number)
        found = _given_label(predictor, answered, number)
    possible = int(true.sum())
    if not possible:
        which = "a label" if label is None else f"the label {label!r}"
        raise DataError(f"no text has {which}; its recall cannot be told")
    best = find_threshold(found, possible=possible, precision=precision, recall=recall)
    unit = "decisions" if true.ndim == 2 else "texts"
    return replace(best, examples=true.size, unit=unit)


def _given(predictor: Predictor, answered: Answered) -> Certainties:
    """Take the answers that predict gives; of several labels, those over their thresholds."""
    answers, targets = answered.answers, answered.data.targets
    found = certainties(answers, targets)
    if not predictor.multi_label:
        return found
    given = answers.given(predictor.artifact.thresholds).ravel()
    return Certainties(found.probabilities[given], found.right[given])


def _given_label(predictor: Predictor, answered: Answered, number: int) -> Certainties:
    """Take the texts that predict gives this label to, were it ever so improbable."""
    answers, targets = answered.answers, answered.data.targets
    given = answers.labels == number
    if predictor.multi_label:
        given = answers.given(predictor.artifact.thresholds)[:, number]
    probabilities = answers.probabilities[given, number]
    return Certainties(probabilities, has_label(targets, number)[given])


def find_threshold(
    found: Certainties, *, possible: int, precision: float | None, recall: float | None
) -> Threshold:
    """Find the threshold of most recall for a precision, or of most precision for a recall."""
    order = np.argsort(-found.probabilities, kind="stable")
    falling = np.append(found.probabilities[order], 0.0)
    # Equal probabilities are answered together, so a cut lies only where the next one is smaller.
    cuts = np.flatnonzero(falling[:-1] > falling[1:])
    right = np.cumsum(found.right[order])[cuts]
    precisions, recalls = right / (cuts + 1), right / possible
    if precision is not None:
        name, wanted, scores, other = "precision", precision, precisions, recalls
    else:
        name, wanted, scores, other = "recall", recall or 0.0, recalls, precisions
    if not (scores >= wanted).any():
        best = scores.max() if len(scores) else 0.0
        raise DataError(f"no threshold gives a {name} of {wanted}; the best is {best:.4f}")
    cut = int(np.argmax(np.where(scores >= wanted, other, -1.0)))
    last = int(cuts[cut])
    everything = last + 1 == len(found.probabilities)
    return Threshold(
        # In the middle between two texts, where no rounding can change what is answered.
        threshold=0.0 if everything else float((falling[last] + falling[last + 1]) / 2),
        precision=float(precisions[cut]),
        recall=float(recalls[cut]),
        answered=last + 1,
        examples=len(found.probabilities),
    )
