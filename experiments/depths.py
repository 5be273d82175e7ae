"""Analysis of the depths of one trained model: which words are deep, and what depth is worth."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.data.examples import Examples
from fathomer.data.labelled import LabelledTexts, encode_examples
from fathomer.errors import ConfigError, DataError
from fathomer.model.inference import classify
from fathomer.predictor import BATCH_WORDS, Predictor

FREQUENT = 10
"""Occurrences from which a word counts as frequent, unless too few words reach it."""
EXTREMES = 30
"""Number of deepest and of shallowest words that are listed."""
SHUFFLES = 10
"""How often the selected depths are shuffled between the words."""


class WordGroup(NamedTuple):
    """A group of words with its mean depth."""

    name: str
    words: int
    mean_depth: float


class ForcedDepth(NamedTuple):
    """The accuracy with every word at one depth."""

    depth: int
    accuracy: float


@dataclass(frozen=True)
class DepthAnalysis:
    """The depths of the words of some texts, and the accuracy with other depths."""

    words: int
    mean_depth: float
    max_depth: int
    accuracy: float
    """With the selected depths."""
    by_frequency: tuple[WordGroup, ...]
    by_length: tuple[WordGroup, ...]
    by_position: tuple[WordGroup, ...]
    by_vocabulary: tuple[WordGroup, ...]
    deepest: tuple[WordGroup, ...]
    shallowest: tuple[WordGroup, ...]
    frequency_correlation: float | None
    """Spearman correlation of a distinct word's frequency and mean depth; None if one is constant."""
    forced: tuple[ForcedDepth, ...]
    shuffled: tuple[float, ...]
    """Accuracies with the selected depths shuffled between the words."""

    def to_dict(self) -> dict[str, Any]:
        """Return the analysis as plain values."""
        content = {name: _plain(value) for name, value in asdict(self).items()}
        content["dealt"] = content.pop("shuffled")  # the key in all result files so far
        return content


def analyse_depths(predictor: Predictor, examples: Examples) -> DepthAnalysis:
    """Classify labelled texts and analyse the depths of their words."""
    if not predictor.knows_depth:
        name = predictor.artifact.recipe.model.name
        raise ConfigError(f"words have no depth in the model {name}")
    if predictor.multi_label:
        raise ConfigError("the depths of a multi-label model cannot be analysed")
    artifact = predictor.artifact
    data = encode_examples(examples, artifact.tokenizer, artifact.labels, artifact.recipe.text)
    answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS)
    if not len(answers.depths):
        raise DataError("there are no words in these texts")
    words = _lower_words(predictor, examples)
    depths = answers.depths.astype(np.float64)
    names, which = np.unique(words, return_inverse=True)
    counts = np.bincount(which)
    means = np.bincount(which, weights=depths) / counts
    starts = np.repeat(data.texts.starts[:-1], data.texts.lengths)
    positions = np.arange(len(depths)) - starts + 1
    return DepthAnalysis(
        words=len(depths),
        mean_depth=float(depths.mean()),
        max_depth=predictor.max_depth,
        accuracy=float(np.mean(answers.labels == data.targets)),
        by_frequency=_group_by(counts[which], depths, (1, 2, 5, 10, 100, 1000)),
        by_length=_group_by(np.strings.str_len(words), depths, (1, 2, 3, 4, 6, 8, 11)),
        by_position=_group_by(positions, depths, (1, 2, 3, 5, 10, 50, 200)),
        by_vocabulary=_group_by_vocabulary(np.asarray(data.texts.ids) >= 0, depths),
        deepest=_extreme_words(names, counts, means, by=-means),
        shallowest=_extreme_words(names, counts, means, by=means),
        frequency_correlation=spearman(counts, means),
        forced=tuple(
            ForcedDepth(depth, _accuracy(predictor, data, np.full_like(answers.depths, depth)))
            for depth in range(1, predictor.max_depth + 1)
        ),
        shuffled=tuple(
            _accuracy(predictor, data, np.random.default_rng(seed).permutation(answers.depths))
            for seed in range(SHUFFLES)
        ),
    )


def _accuracy(predictor: Predictor, data: LabelledTexts, depths: NDArray[np.integer]) -> float:
    """Return the accuracy with these depths forced on the words."""
    answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS, depths=depths)
    return float(np.mean(answers.labels == data.targets))


def _lower_words(predictor: Predictor, examples: Examples) -> NDArray[np.str_]:
    """Return all words of the texts in lower case."""
    tokenizer, config = predictor.artifact.tokenizer, predictor.artifact.recipe.text
    found: list[str] = []
    for example in examples:
        spans = tokenizer.spans(example.text, max_words=config.max_words)
        found += [example.text[start:end].lower() for start, end in spans]
    return np.array(found, dtype=np.str_)


def _group_by(
    values: NDArray[np.int64], depths: NDArray[np.float64], lows: Iterable[int]
) -> tuple[WordGroup, ...]:
    """Group the words by a value, from each lower bound up to the next one."""
    rows = []
    for low, high in pairwise([*lows, None]):
        assert low is not None
        chosen = (values >= low) & (values < (high or np.inf))
        if chosen.any():
            name = _range_name(low, high)
            rows.append(WordGroup(name, int(chosen.sum()), float(depths[chosen].mean())))
    return tuple(rows)


def _range_name(low: int, high: int | None) -> str:
    """Return the name of a range without its upper bound.

    >>> _range_name(1, 2), _range_name(2, 5), _range_name(5, None)
    ('1', '2–4', '5+')
    """
    if high is None:
        return f"{low}+"
    return f"{low}–{high - 1}" if high - 1 > low else str(low)


def _group_by_vocabulary(
    known: NDArray[np.bool_], depths: NDArray[np.float64]
) -> tuple[WordGroup, ...]:
    parts = {"known": depths[known], "unknown": depths[~known]}
    return tuple(
        WordGroup(name, len(part), float(part.mean())) for name, part in parts.items() if len(part)
    )


def _extreme_words(
    names: NDArray[np.str_],
    counts: NDArray[np.int64],
    means: NDArray[np.float64],
    *,
    by: NDArray[np.float64],
) -> tuple[WordGroup, ...]:
    """Return the frequent words with the smallest ``by``; of equal ones, the most frequent."""
    enough = min(FREQUENT, int(np.sort(counts)[-2 * EXTREMES :].min()))
    chosen = np.flatnonzero(counts >= enough)
    order = chosen[np.lexsort((names[chosen], -counts[chosen], by[chosen]))][:EXTREMES]
    return tuple(WordGroup(str(names[i]), int(counts[i]), float(means[i])) for i in order)


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Return the rank correlation, or None if one side is constant; equal values share a rank.

    >>> spearman(np.array([1, 2, 3, 4]), np.array([10, 20, 20, 90]))
    0.9487
    """
    from scipy.stats import rankdata

    ranks = [rankdata(values) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return round(float(np.corrcoef(ranks[0], ranks[1])[0, 1]), 4)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [row._asdict() if isinstance(row, WordGroup | ForcedDepth) else row for row in value]
    return value
