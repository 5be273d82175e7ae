"""The words that push most towards each label, over a sample of texts."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from fathomer.prediction import Prediction

SAMPLED_TEXTS = 200
LABEL_WORDS = 10
"""Number of words shown for each label."""


@dataclass(frozen=True)
class LabelWord:
    """A word and what it contributed to one label."""

    word: str
    """The word in lower case."""
    contribution: float
    """Sum of its contributions in the texts with this prediction."""
    count: int
    """How often it occurs in them."""


@dataclass(frozen=True)
class LabelWords:
    """The words that push most towards each label, the strongest first."""

    texts: int
    """Number of texts in which they were found."""
    labels: dict[str, tuple[LabelWord, ...]]


def sample_texts(costs: Sequence[int], *, budget: int) -> NDArray[np.int64]:
    """Return the indices of some texts at random, in order, whose costs sum to at most ``budget``.

    The first text is included even if it costs more.

    >>> sample_texts([10, 10, 10], budget=20).tolist()
    [0, 2]
    """
    order = np.random.default_rng(0).permutation(len(costs))[:SAMPLED_TEXTS]
    spent = np.cumsum(np.asarray(costs, dtype=np.int64)[order])
    return np.sort(order[: max(1, int((spent <= budget).sum()))])


def find_label_words(predictions: Sequence[Prediction], labels: Sequence[str]) -> LabelWords:
    """Return the words with the largest sums of contributions to each label.

    A word contributes to the most probable label of its text.
    """
    effects: dict[str, dict[str, list[float]]] = {label: defaultdict(list) for label in labels}
    for prediction in predictions:
        for word in prediction.words:
            effects[prediction.best][word.text.lower()].append(word.contribution or 0.0)
    found = {label: _largest(words) for label, words in effects.items()}
    return LabelWords(len(predictions), found)


def _largest(effects: Mapping[str, list[float]]) -> tuple[LabelWord, ...]:
    words = [LabelWord(word, sum(each), len(each)) for word, each in effects.items()]
    words.sort(key=lambda word: -word.contribution)
    return tuple(word for word in words[:LABEL_WORDS] if word.contribution > 0)
