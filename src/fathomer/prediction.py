"""The answer for one text: its label, the probability of each label, and its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.text.tokenizer import Words


class Word(NamedTuple):
    """A word of a text, the depth at which it was read, and how much it speaks for the answer."""

    text: str
    """The word as it stands in the text: ``text[start:end]``."""
    start: int
    """Position of its first character."""
    end: int
    """Position after its last character."""
    depth: int
    """Number of steps the word took, from 1 to ``max_depth``; 0 in models without depths."""
    contribution: float | None = None
    """Log odds of the most probable label with the word minus without it; None unless requested."""

    def to_dict(self) -> dict[str, Any]:
        """Return the word as JSON-compatible values, with a contribution only if it is known."""
        content = self._asdict()
        if self.contribution is None:
            del content["contribution"]
        return content


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer for one text."""

    label: str | None
    """Most probable label; None if it is less probable than ``abstain_below``."""
    probabilities: dict[str, float]
    """Probability of each label. They sum to 1, except in a multi-label model."""
    words: tuple[Word, ...]
    """Words the model read, in order."""
    truncated: bool
    """Whether the text had more words than the model reads; the rest was ignored."""
    labels: tuple[str, ...] | None = None
    """All predicted labels of a multi-label model; None in other models."""

    @property
    def best(self) -> str:
        """Most probable label, even if ``label`` is None."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def mean_depth(self) -> float | None:
        """Mean depth of the words; None if the text has no words."""
        if not self.words:
            return None
        return sum(word.depth for word in self.words) / len(self.words)

    def to_dict(self, *, words: bool = False) -> dict[str, Any]:
        """Return the answer as JSON-compatible values; ``words=True`` includes the words."""
        answer: dict[str, Any] = {
            "label": self.label,
            "probabilities": self.probabilities,
            "truncated": self.truncated,
        }
        if self.labels is not None:
            answer["labels"] = list(self.labels)
        if words:
            answer["words"] = [word.to_dict() for word in self.words]
        return answer


def make_predictions(
    texts: Sequence[str],
    words: Sequence[Words],
    probabilities: NDArray[np.floating],
    chosen: NDArray[np.bool_],
    depths: NDArray[np.integer],
    *,
    labels: Sequence[str],
    multi_label: bool,
    contributions: NDArray[np.floating] | None = None,
) -> list[Prediction]:
    """Return one prediction per text.

    ``probabilities`` and ``chosen`` have a row per text and a column per label. ``depths`` and
    ``contributions`` have a number per word, one text after another.
    """
    remaining = iter(depths.tolist())
    effects = repeat(None) if contributions is None else iter(contributions.tolist())
    predictions = []
    for text, found, row, marks in zip(texts, words, probabilities, chosen, strict=True):
        numbers = np.flatnonzero(marks).tolist()
        predictions.append(
            Prediction(
                label=labels[max(numbers, key=row.__getitem__)] if numbers else None,
                probabilities=dict(zip(labels, row.tolist(), strict=True)),
                words=tuple(
                    Word(text[start:end], start, end, next(remaining), next(effects))
                    for start, end in found.spans
                ),
                truncated=found.truncated,
                labels=tuple(labels[number] for number in numbers) if multi_label else None,
            )
        )
    return predictions
