"""A detailed evaluation: confusions, accuracy by text length, and the worst mistakes."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.examples import Examples
from fathomer.errors import ConfigError
from fathomer.evaluate.metrics import Answered, Metrics, score

MISTAKES = 10
"""Number of wrong answers in a report."""
LENGTH_GROUPS = 4
TEXT_CHARACTERS = 300
"""Longer texts of mistakes are shortened to this many characters."""


@dataclass(frozen=True)
class LengthGroup:
    """The scores of the texts in one range of lengths, counted in words."""

    shortest: int
    longest: int
    examples: int
    accuracy: float
    mean_depth: float


@dataclass(frozen=True)
class Mistake:
    """A wrong answer."""

    number: int
    """Position of the text in the evaluated data, from 1."""
    text: str
    """The text on one line, shortened."""
    label: str
    """The true label."""
    predicted: str
    probability: float
    """Probability of the predicted label."""


@dataclass(frozen=True)
class Confusion:
    """How often one label was mistaken for another."""

    label: str
    predicted: str
    count: int


@dataclass(frozen=True)
class UnseenScore:
    """The accuracy on the test texts that are not in the training set."""

    accuracy: float | None
    """None if every test text is in the training set."""
    examples: int


@dataclass(frozen=True)
class Report:
    """The scores and details of one evaluation."""

    metrics: Metrics
    confusion: dict[str, dict[str, int]]
    """Counts by true label, then by predicted label, without zeros."""
    by_length: tuple[LengthGroup, ...]
    mistakes: tuple[Mistake, ...]
    """The wrong answers with the highest probabilities."""
    unseen: UnseenScore | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model."""
        return tuple(self.metrics.per_label)

    @property
    def confusions(self) -> list[Confusion]:
        """Pairs of confused labels, the most frequent first."""
        pairs = [
            Confusion(label, predicted, count)
            for label, row in self.confusion.items()
            for predicted, count in row.items()
            if label != predicted
        ]
        return sorted(pairs, key=lambda pair: -pair.count)

    def most_confused(self, limit: int) -> tuple[str, ...]:
        """Return the ``limit`` labels with the most mistakes, in the order of the model's labels."""
        wrong = dict.fromkeys(self.labels, 0)
        for pair in self.confusions:
            wrong[pair.label] += pair.count
            wrong[pair.predicted] += pair.count
        chosen = set(sorted(wrong, key=lambda label: -wrong[label])[:limit])
        return tuple(label for label in self.labels if label in chosen)

    def to_dict(self) -> dict[str, Any]:
        """Return the report as plain values."""
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
    answered: Answered, examples: Examples, *, training_texts: Iterable[str] | None = None
) -> Report:
    """Evaluate the answers of a model to labelled texts."""
    if examples.multi_label:
        raise ConfigError("a report needs one label per text; these texts have several")
    targets, predicted = answered.data.targets, answered.answers.labels
    right = predicted == targets
    return Report(
        metrics=score(answered.answers, targets, answered.labels),
        confusion=_count_pairs(targets, predicted, answered.labels),
        by_length=_group_by_length(answered, right),
        mistakes=_find_mistakes(answered, examples),
        unseen=None if training_texts is None else score_unseen(right, examples, training_texts),
    )


def one_line(text: str, *, characters: int = TEXT_CHARACTERS) -> str:
    r"""Return a text as one line of limited length that is safe to print.

    >>> one_line("a  long\ntext\x1b", characters=8)
    'a long …'
    """
    line = " ".join(text.split())
    line = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line)
    return line if len(line) <= characters else line[: characters - 1] + "…"


def _count_pairs(
    targets: NDArray[np.int64], predicted: NDArray[np.int64], labels: tuple[str, ...]
) -> dict[str, dict[str, int]]:
    # A dense confusion matrix of many thousand labels would not fit in memory.
    pairs, counts = np.unique(np.stack([targets, predicted]), axis=1, return_counts=True)
    confusion: dict[str, dict[str, int]] = {}
    for true, answer, count in zip(*pairs.tolist(), counts.tolist(), strict=True):
        confusion.setdefault(labels[true], {})[labels[answer]] = count
    return confusion


def _group_by_length(answered: Answered, right: NDArray[np.bool_]) -> tuple[LengthGroup, ...]:
    """Split the texts by length into groups of similar size; equal lengths share a group."""
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


def _find_mistakes(answered: Answered, examples: Examples) -> tuple[Mistake, ...]:
    predicted = answered.answers.labels
    wrong = np.flatnonzero(predicted != answered.data.targets)
    certainty = answered.answers.log_probabilities.max(1)
    worst = wrong[np.argsort(-certainty[wrong], kind="stable")][:MISTAKES].tolist()
    return tuple(
        Mistake(
            number=index + 1,
            text=one_line(examples.items[index].text),
            label=examples.items[index].label,
            predicted=answered.labels[predicted[index]],
            probability=float(np.exp(certainty[index], dtype=np.float64)),
        )
        for index in worst
    )


def score_unseen(
    right: NDArray[np.bool_], examples: Examples, training_texts: Iterable[str]
) -> UnseenScore:
    """Return the accuracy on the texts that are not among the training texts."""
    tested = {example.text for example in examples}
    seen = tested.intersection(training_texts)
    unseen = np.fromiter((example.text not in seen for example in examples), dtype=bool)
    found = right[unseen]
    return UnseenScore(accuracy=float(found.mean()) if len(found) else None, examples=len(found))
