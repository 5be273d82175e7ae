"""How well a model answers, in detail: what it confuses, where it is wrong, and on which lengths."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.examples import Examples
from fathomer.errors import ConfigError
from fathomer.evaluate.metrics import Metrics, score
from fathomer.predictor import Answered, Predictor

MISTAKES = 10
"""Wrong answers that a report shows."""
LENGTH_GROUPS = 4
TEXT_CHARACTERS = 300
"""Characters of a mistake's text that are kept."""


@dataclass(frozen=True)
class LengthGroup:
    """Hold the scores of the texts whose number of words lies within bounds."""

    shortest: int
    longest: int
    examples: int
    accuracy: float
    mean_depth: float


@dataclass(frozen=True)
class Mistake:
    """Hold a wrong answer."""

    number: int
    """Place of the text among all that were scored, from 1."""
    text: str
    """On one line, and shortened."""
    label: str
    """The true one."""
    predicted: str
    probability: float
    """Of the predicted label."""


@dataclass(frozen=True)
class Confusion:
    """Hold how often one label was taken for another."""

    label: str
    predicted: str
    count: int


@dataclass(frozen=True)
class Unseen:
    """Hold the score on the test texts that do not stand in the training part too."""

    accuracy: float | None
    """Nothing if every test text stands there."""
    examples: int


@dataclass(frozen=True)
class Report:
    """Hold all that one evaluation tells."""

    metrics: Metrics
    confusion: dict[str, dict[str, int]]
    """Answers by true label, then by predicted label; what never happened is left out."""
    by_length: tuple[LengthGroup, ...]
    mistakes: tuple[Mistake, ...]
    """The wrong answers that the model was most certain of."""
    unseen: Unseen | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Name the labels of the model."""
        return tuple(self.metrics.per_label)

    @property
    def confusions(self) -> list[Confusion]:
        """List the pairs of labels that were confused, the most frequent first."""
        pairs = [
            Confusion(label, predicted, count)
            for label, row in self.confusion.items()
            for predicted, count in row.items()
            if label != predicted
        ]
        return sorted(pairs, key=lambda pair: -pair.count)

    def most_confused(self, limit: int) -> tuple[str, ...]:
        """Choose the labels with most mistakes, in their usual order; all if they are few."""
        wrong = dict.fromkeys(self.labels, 0)
        for pair in self.confusions:
            wrong[pair.label] += pair.count
            wrong[pair.predicted] += pair.count
        chosen = set(sorted(wrong, key=lambda label: -wrong[label])[:limit])
        return tuple(label for label in self.labels if label in chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        content: dict[str, Any] = {
            **self.metrics.to_dict(),
            "confusion": self.confusion,
            "by_length": [asdict(group) for group in self.by_length],
            "mistakes": [asdict(mistake) for mistake in self.mistakes],
        }
        if self.unseen:
            content["accuracy_unseen"] = self.unseen.accuracy
            content["examples_unseen"] = self.unseen.examples
        return content


def make_report(
    predictor: Predictor,
    examples: Examples,
    *,
    training_texts: Iterable[str] | None = None,
    max_depth: int | None = None,
    answered: Answered | None = None,
) -> Report:
    """Answer labelled texts, unless they are ``answered``, and look at that from all sides."""
    if examples.multi_label:
        raise ConfigError("a report is about one label per text; these have several")
    if answered is None:
        answered = predictor.answer(examples, max_depth=max_depth)
    targets, predicted = answered.data.targets, answered.answers.labels
    right = predicted == targets
    return Report(
        metrics=score(answered.answers, targets, predictor.labels),
        confusion=_count_pairs(targets, predicted, predictor.labels),
        by_length=_group_by_length(answered, right),
        mistakes=_find_mistakes(answered, examples, predictor.labels),
        unseen=None if training_texts is None else score_unseen(right, examples, training_texts),
    )


def one_line(text: str, *, characters: int = TEXT_CHARACTERS) -> str:
    r"""Shorten a text to one line that is safe to print.

    >>> one_line("a  long\ntext\x1b", characters=8)
    'a long …'
    """
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= characters else line[: characters - 1] + "…"


def _count_pairs(
    targets: NDArray[np.int64], predicted: NDArray[np.int64], labels: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    # Only pairs that occur are counted: a full matrix of many thousand labels would not fit.
    pairs, counts = np.unique(np.stack([targets, predicted]), axis=1, return_counts=True)
    confusion: dict[str, dict[str, int]] = {}
    for true, answer, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        confusion.setdefault(labels[true], {})[labels[answer]] = count
    return confusion


def _group_by_length(answered: Answered, right: NDArray[np.bool_]) -> tuple[LengthGroup, ...]:
    """Cut the texts into groups of like size by their number of words; like lengths stay together."""
    lengths = answered.data.texts.lengths
    sums = np.concatenate([[0], np.cumsum(answered.answers.depths, dtype=np.int64)])
    depths = np.diff(sums[answered.data.texts.starts])
    shares = np.arange(1, LENGTH_GROUPS) / LENGTH_GROUPS
    cuts = np.quantile(lengths, shares, method="inverted_cdf")
    group_of = np.searchsorted(np.unique(cuts), lengths)
    groups = [group_of == number for number in np.unique(group_of)]
    return tuple(
        LengthGroup(
            shortest=int(lengths[chosen].min()),
            longest=int(lengths[chosen].max()),
            examples=int(chosen.sum()),
            accuracy=float(right[chosen].mean()),
            mean_depth=float(depths[chosen].sum() / max(1, lengths[chosen].sum())),
        )
        for chosen in groups
    )


def _find_mistakes(
    answered: Answered, examples: Examples, labels: tuple[str, ...]
) -> tuple[Mistake, ...]:
    predicted = answered.answers.labels
    wrong = np.flatnonzero(predicted != answered.data.targets)
    certainty = answered.answers.log_probabilities.max(1)
    worst = wrong[np.argsort(-certainty[wrong], kind="stable")][:MISTAKES].tolist()
    return tuple(
        Mistake(
            number=index + 1,
            text=one_line(examples.items[index].text),
            label=examples.items[index].label,
            predicted=labels[predicted[index]],
            probability=float(np.exp(certainty[index], dtype=np.float64)),
        )
        for index in worst
    )


def score_unseen(
    right: NDArray[np.bool_], examples: Examples, training_texts: Iterable[str]
) -> Unseen:
    """Score the texts that do not stand among the training texts."""
    tested = {example.text for example in examples}
    seen = tested.intersection(training_texts)
    unseen = np.fromiter((example.text not in seen for example in examples), dtype=bool)
    found = right[unseen]
    return Unseen(accuracy=float(found.mean()) if len(found) else None, examples=len(found))
