"""The answer for one text: its label, the probability of each label, and its words."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress, repeat
from typing import Any, NamedTuple, Protocol

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


class FindSpans(Protocol):
    """Finds where the words of a text are: :meth:`fathomer.text.tokenizer.Tokenizer.spans`."""

    def __call__(self, text: str, *, max_words: int) -> list[tuple[int, int]]:
        """Return where the first words begin and end."""


class WordSource(NamedTuple):
    """What the words of many texts are made of; the arrays hold one text after another."""

    texts: Sequence[str]
    starts: NDArray[np.integer]
    """Index of the first word of each text in the arrays, and the end of the last text."""
    spans: FindSpans
    depths: NDArray[np.integer]
    contributions: NDArray[np.floating] | None

    def words(self, index: int) -> tuple[Word, ...]:
        """Make the words of one text."""
        text, here = self.texts[index], slice(*self.starts[index : index + 2].tolist())
        effects = (
            repeat(None) if self.contributions is None else iter(self.contributions[here].tolist())
        )
        depths = self.depths[here].tolist()
        spans = self.spans(text, max_words=len(depths))
        return tuple(
            Word(text[start:end], start, end, depth, next(effects))
            for (start, end), depth in zip(spans, depths, strict=True)
        )


class _WordsOnDemand:
    """Makes the words of a prediction when they are first read: most callers read only the label."""

    __slots__ = ("_index", "_source")
    _index: int
    _source: WordSource

    def __getattr__(self, name: str) -> Any:
        """Make the words; Python calls this method only while the attribute is not set."""
        if name != "words":
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        words = self._source.words(self._index)
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
    spans: FindSpans,
    contributions: NDArray[np.floating] | None = None,
) -> list[Prediction]:
    """Return one prediction per text.

    ``probabilities`` and ``chosen`` have a row per text and a column per label. ``depths`` and
    ``contributions`` have a number per word, one text after another.
    """
    starts = np.cumsum([0, *(len(found.ids) for found in words)])
    source = WordSource(tuple(texts), starts, spans, depths, contributions)
    best = np.where(chosen, probabilities, -1.0).argmax(1).tolist()
    return [
        _lazy_prediction(
            source,
            index,
            label=labels[number] if marks[number] else None,
            probabilities=dict(zip(labels, row, strict=True)),
            truncated=found.truncated,
            labels=tuple(compress(labels, marks)) if multi_label else None,
        )
        for index, (found, row, marks, number) in enumerate(
            zip(words, probabilities.tolist(), chosen.tolist(), best, strict=True)
        )
    ]


def _lazy_prediction(source: WordSource, index: int, **values: Any) -> Prediction:
    """Return a prediction whose words are not made yet."""
    prediction = object.__new__(Prediction)
    for name, value in (values | {"_source": source, "_index": index}).items():
        object.__setattr__(prediction, name, value)
    return prediction
