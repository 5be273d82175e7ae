"""The answer for one text: its label, the probability of each label, and its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.text.tokenizer import Words


class Word(NamedTuple):
    """A word of a text, the depth at which it was read, and how much it supports the answer."""

    text: str
    """The word as written in the text: ``text[start:end]``."""
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


class WordSource(NamedTuple):
    """What the words of one text are made of; the arrays hold the words of many texts."""

    text: str
    spans: Sequence[tuple[int, int]]
    start: int
    """Index of the first word of the text in the arrays."""
    depths: NDArray[np.integer]
    contributions: NDArray[np.floating] | None

    def words(self) -> tuple[Word, ...]:
        """Make the words."""
        here = slice(self.start, self.start + len(self.spans))
        effects = (
            repeat(None) if self.contributions is None else iter(self.contributions[here].tolist())
        )
        return tuple(
            Word(self.text[start:end], start, end, depth, next(effects))
            for (start, end), depth in zip(self.spans, self.depths[here].tolist(), strict=True)
        )


class _WordsOnDemand:
    """Makes the words of a prediction when they are first read: most callers read only the label."""

    __slots__ = ("_source",)
    _source: WordSource

    def __getattr__(self, name: str) -> Any:
        """Make the words; Python calls this method only while the attribute is not set."""
        if name != "words":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        words = self._source.words()
        object.__setattr__(self, "words", words)
        return words


@dataclass(frozen=True, slots=True)
class Prediction(_WordsOnDemand):
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
    best = np.where(chosen, probabilities, -1.0).argmax(1).tolist()
    start, predictions = 0, []
    for text, found, row, marks, number in zip(
        texts, words, probabilities.tolist(), chosen.tolist(), best, strict=True
    ):
        predictions.append(
            _lazy_prediction(
                WordSource(text, found.spans, start, depths, contributions),
                label=labels[number] if marks[number] else None,
                probabilities=dict(zip(labels, row, strict=True)),
                truncated=found.truncated,
                labels=tuple(compress(labels, marks)) if multi_label else None,
            )
        )
        start += len(found.spans)
    return predictions


def _lazy_prediction(source: WordSource, **values: Any) -> Prediction:
    """Return a prediction whose words are not made yet."""
    prediction = object.__new__(Prediction)
    for name, value in values.items():
        object.__setattr__(prediction, name, value)
    object.__setattr__(prediction, "_source", source)
    return prediction
