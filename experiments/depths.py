"""Which words are read deeply, and what depth is worth: a look into one trained adaptive model."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.charts import COLOURS
from fathomer.data.examples import Examples
from fathomer.data.labelled import LabelledTexts, encode_examples
from fathomer.errors import ConfigError, DataError, require
from fathomer.model.inference import classify
from fathomer.predictor import BATCH_WORDS, Predictor

FREQUENT = 10
"""A word that stands so often in the texts is frequent, unless too few words do."""
EXTREMES = 30
DEALS = 10
"""How often the selected depths are dealt to the words at random."""


class Row(NamedTuple):
    """Hold the mean depth of a kind of words, and how many of them there are."""

    name: str
    words: int
    mean_depth: float


class Forced(NamedTuple):
    """Hold the accuracy with every word at one depth."""

    depth: int
    accuracy: float


@dataclass(frozen=True)
class Depths:
    """Hold what was found about the depths of one model's words."""

    words: int
    mean_depth: float
    max_depth: int
    accuracy: float
    """With the selected depths."""
    by_frequency: tuple[Row, ...]
    by_length: tuple[Row, ...]
    by_position: tuple[Row, ...]
    by_vocabulary: tuple[Row, ...]
    deepest: tuple[Row, ...]
    shallowest: tuple[Row, ...]
    frequency_correlation: float | None
    """Spearman's, of a distinct word's frequency and its mean depth; none if either is constant."""
    forced: tuple[Forced, ...]
    dealt: tuple[float, ...]
    """Accuracies with the selected depths dealt to the words at random: what is the choice worth?"""

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as plain values."""
        content = asdict(self)
        return {name: _plain(value) for name, value in content.items()}


def analyse_depths(predictor: Predictor, examples: Examples) -> Depths:
    """Answer labelled texts, and look at their words' depths from all sides."""
    if not predictor.knows_depth:
        raise ConfigError(f"the model {predictor.artifact.recipe.model.name} knows no depth")
    if predictor.multi_label:
        raise ConfigError("the depths of a model that gives several labels cannot be analysed")
    artifact = predictor.artifact
    data = encode_examples(examples, artifact.tokenizer, artifact.labels, artifact.recipe.text)
    answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS)
    if not len(answers.depths):
        raise DataError("there are no words in these texts")
    words = _words_of(predictor, examples)
    depths = answers.depths.astype(np.float64)
    names, which = np.unique(words, return_inverse=True)
    counts = np.bincount(which)
    means = np.bincount(which, weights=depths) / counts
    starts = np.repeat(data.texts.starts[:-1], data.texts.lengths)
    return Depths(
        words=len(depths),
        mean_depth=float(depths.mean()),
        max_depth=predictor.max_depth,
        accuracy=float(np.mean(answers.labels == data.targets)),
        by_frequency=_grouped(counts[which], depths, (1, 2, 5, 10, 100, 1000)),
        by_length=_grouped(np.strings.str_len(words), depths, (1, 2, 3, 4, 6, 8, 11)),
        by_position=_grouped(
            np.arange(len(depths)) - starts + 1, depths, (1, 2, 3, 5, 10, 50, 200)
        ),
        by_vocabulary=_by_vocabulary(np.asarray(data.texts.ids) >= 0, depths),
        deepest=_first(names, counts, means, by=-means),
        shallowest=_first(names, counts, means, by=means),
        frequency_correlation=spearman(counts, means),
        forced=tuple(
            Forced(depth, _accuracy(predictor, data, np.full_like(answers.depths, depth)))
            for depth in range(1, predictor.max_depth + 1)
        ),
        dealt=tuple(
            _accuracy(predictor, data, np.random.default_rng(deal).permutation(answers.depths))
            for deal in range(DEALS)
        ),
    )


def _accuracy(predictor: Predictor, data: LabelledTexts, depths: NDArray[np.integer]) -> float:
    """Score the model with these depths forced upon the words."""
    answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS, depths=depths)
    return float(np.mean(answers.labels == data.targets))


def _words_of(predictor: Predictor, examples: Examples) -> NDArray[np.str_]:
    """List all words as they stand in the texts, in lower case."""
    tokenizer, config = predictor.artifact.tokenizer, predictor.artifact.recipe.text
    found: list[str] = []
    for example in examples:
        (words,) = tokenizer.encode([example.text], max_words=config.max_words)
        found += [example.text[start:end].lower() for start, end in words.spans]
    return np.array(found, dtype=np.str_)


def _grouped(
    values: NDArray[np.int64], depths: NDArray[np.float64], lows: Iterable[int]
) -> tuple[Row, ...]:
    """Average the depths of the words whose value lies between one bound and the next."""
    bounds = [*lows, None]
    rows = []
    for low, high in pairwise(bounds):
        assert low is not None
        chosen = (values >= low) & (values < (high or np.inf))
        if chosen.any():
            name = (
                f"{low}+" if high is None else f"{low}–{high - 1}" if high - 1 > low else str(low)
            )
            rows.append(Row(name, int(chosen.sum()), float(depths[chosen].mean())))
    return tuple(rows)


def _by_vocabulary(known: NDArray[np.bool_], depths: NDArray[np.float64]) -> tuple[Row, ...]:
    parts = {"known": depths[known], "unknown": depths[~known]}
    return tuple(
        Row(name, len(part), float(part.mean())) for name, part in parts.items() if len(part)
    )


def _first(
    names: NDArray[np.str_],
    counts: NDArray[np.int64],
    means: NDArray[np.float64],
    *,
    by: NDArray[np.float64],
) -> tuple[Row, ...]:
    """Choose the frequent words that come first in an order; of equal ones, those that occur most."""
    enough = min(FREQUENT, int(np.sort(counts)[-2 * EXTREMES :].min()))
    chosen = np.flatnonzero(counts >= enough)
    order = chosen[np.lexsort((names[chosen], -counts[chosen], by[chosen]))][:EXTREMES]
    return tuple(Row(str(names[i]), int(counts[i]), float(means[i])) for i in order)


def spearman(first: NDArray[Any], second: NDArray[Any]) -> float | None:
    """Give the correlation of ranks; equal values share theirs.

    >>> spearman(np.array([1, 2, 3, 4]), np.array([10, 20, 20, 90]))
    0.9487
    """
    ranks = [_ranks(values) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return None
    return round(float(np.corrcoef(ranks[0], ranks[1])[0, 1]), 4)


def _ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    middle: NDArray[np.float64] = (ends - (counts - 1) / 2)[which]
    return middle


def draw_depths(found: Depths, path: Path) -> None:
    """Draw the four groupings, the anytime curve, and the mean depth in each."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(11, 6), layout="constrained")
    panels = figure.subplots(2, 3).flat
    groups = {
        "how often the word stands in the texts": found.by_frequency,
        "letters of the word": found.by_length,
        "place in the text": found.by_position,
        "in the vocabulary": found.by_vocabulary,
    }
    for axes, (title, rows) in zip(panels, groups.items(), strict=False):
        axes.bar(
            [row.name for row in rows], [row.mean_depth for row in rows], color=COLOURS["fathomer"]
        )
        axes.axhline(found.mean_depth, color="#55565a", linewidth=1)
        axes.set(xlabel=title, ylabel="mean depth", ylim=(0, found.max_depth))
        axes.tick_params(axis="x", labelsize="small")  # names of six groups stand side by side
    *_, curve, unused = figure.axes
    unused.set_axis_off()
    curve.plot(
        *zip(*found.forced, strict=True), marker="o", color=COLOURS["fathomer"], label="forced"
    )
    curve.axhline(found.accuracy, color="#55565a", linewidth=1, label="selected")
    curve.axhspan(
        min(found.dealt), max(found.dealt), color="#55565a", alpha=0.15, label="dealt at random"
    )
    seen = [found.accuracy, *found.dealt, *(row.accuracy for row in found.forced)]
    room = (min(seen) - 0.02, max(seen) + 0.02)  # a hair's breadth is not drawn as a mountain
    curve.set(xlabel="depth of every word", ylabel="accuracy", ylim=room)
    curve.legend(frameon=False)
    figure.savefig(path, dpi=160)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [row._asdict() if isinstance(row, Row | Forced) else row for row in value]
    return value
