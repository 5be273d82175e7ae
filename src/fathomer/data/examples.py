"""Labelled texts: single examples, collections of them, and stratified splits."""

import hashlib
from array import array
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from random import Random
from typing import NamedTuple, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fathomer.errors import DataError
from fathomer.spool import Spool

SEPARATOR = "|"
"""Separates the labels of a text that has several."""


class Example(NamedTuple):
    """A text with its label, or with several labels written as ``a|b``."""

    text: str
    label: str


def split_labels(label: str) -> tuple[str, ...]:
    """Split several labels that are written as one string.

    >>> split_labels("fast | cheap|fast"), split_labels("")
    (('fast', 'cheap'), ())
    """
    return tuple(dict.fromkeys(filter(None, map(str.strip, label.split(SEPARATOR)))))


@dataclass(frozen=True)
class StoredExamples(Sequence[Example]):
    """Examples whose texts are in a spool; only their offsets and labels are in memory."""

    spool: Spool
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]
    codes: NDArray[np.int32]
    """Indices into ``names``."""
    names: tuple[str, ...]

    @classmethod
    def collect(cls, examples: Iterable[Example]) -> "StoredExamples":
        """Store a stream of examples."""
        spool, bounds, codes = Spool(), array("q", [0]), array("i")
        names: dict[str, int] = {}
        for text, label in examples:
            spool.append(text.encode("utf-8", "surrogatepass"))
            bounds.append(len(spool))
            codes.append(names.setdefault(label, len(names)))
        ends = np.array(bounds, dtype=np.int64)
        return cls(spool, ends[:-1], ends[1:], np.array(codes, dtype=np.int32), tuple(names))

    def __len__(self) -> int:
        return len(self.codes)

    @overload
    def __getitem__(self, index: int) -> Example: ...
    @overload
    def __getitem__(self, index: slice) -> list[Example]: ...
    def __getitem__(self, index: int | slice) -> Example | list[Example]:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        content = self.spool.read(int(self.starts[index]), int(self.ends[index]))
        return Example(content.decode("utf-8", "surrogatepass"), self.names[self.codes[index]])

    @property
    def labels(self) -> Iterator[str]:
        """The labels in order; no text is read."""
        return map(self.names.__getitem__, self.codes.tolist())

    def take(self, indices: Sequence[int]) -> "StoredExamples":
        """Return the examples at ``indices``; the texts are not copied."""
        chosen = np.asarray(indices, dtype=np.int64)
        return StoredExamples(
            self.spool, self.starts[chosen], self.ends[chosen], self.codes[chosen], self.names
        )


@dataclass(frozen=True)
class Examples:
    """Labelled texts in order, with the number of rows that were skipped when reading them."""

    items: Sequence[Example]
    skipped: Mapping[str, int] = field(default_factory=dict)
    """Number of skipped rows by reason."""
    weights: NDArray[np.float64] | None = None
    """Weight of each example in training; if ``None``, all weigh the same."""
    multi_label: bool = False
    """Whether a text may have several labels, or none."""
    soft: NDArray[np.float32] | None = None
    """Soft labels: one probability per label, in the labels' sorted order."""
    given: NDArray[np.bool_] | None = None
    """With soft labels, whether an example has its own label, too, or only the soft one."""

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.items)

    @property
    def texts(self) -> "ExampleTexts":
        """The texts, to be iterated over as often as needed."""
        return ExampleTexts(self)

    @property
    def labels(self) -> Iterator[str]:
        """The labels in the order of the examples."""
        if isinstance(self.items, StoredExamples):
            return self.items.labels
        return (example.label for example in self.items)

    @property
    def label_counts(self) -> dict[str, int]:
        """Number of examples of each label, in the labels' sorted order."""
        counts = Counter(label for labels in self.label_sets for label in labels)
        return dict(sorted(counts.items()))

    @property
    def label_sets(self) -> Iterator[tuple[str, ...]]:
        """All labels of each example."""
        if self.multi_label:
            return map(split_labels, self.labels)
        return ((label,) for label in self.labels)

    @property
    def strata(self) -> Iterator[str]:
        """The label by which each example is stratified: of several labels, the rarest."""
        if not self.multi_label:
            return self.labels
        counts = self.label_counts
        return (min(found, key=counts.__getitem__, default="") for found in self.label_sets)

    def take(self, indices: Sequence[int]) -> "Examples":
        """Return the examples at ``indices``."""
        items: Sequence[Example]
        if isinstance(self.items, StoredExamples):
            items = self.items.take(indices)
        else:
            items = [self.items[index] for index in indices]
        rows = np.asarray(indices, dtype=int)
        return replace(
            self,
            items=items,
            skipped={},
            weights=None if self.weights is None else self.weights[rows],
            soft=None if self.soft is None else self.soft[rows],
            given=None if self.given is None else self.given[rows],
        )

    def completed(self, complete: Callable[[str], str] | None) -> "Examples":
        """Return the same examples, with the further input of a model added to their texts."""
        if complete is None:
            return self
        return replace(self, items=[Example(complete(text), label) for text, label in self])

    def weighted(self, weights: ArrayLike) -> "Examples":
        """Return the same examples with these training weights."""
        checked = np.asarray(weights, dtype=np.float64)
        if checked.shape != (len(self),):
            raise DataError(f"{len(self):,} texts, but weights of shape {checked.shape}")
        check_weights(checked)
        return replace(self, weights=checked)

    def summary(self) -> str:
        """Return one line about how many rows were read and skipped.

        >>> Examples([Example("good", "1")], {"empty label": 2}).summary()
        '1 example read, 2 skipped (2 empty label)'
        """
        line = f"{len(self):,} example{'' if len(self) == 1 else 's'} read"
        if not self.skipped:
            return line
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        return f"{line}, {sum(self.skipped.values()):,} skipped ({reasons})"

    def checksum(self) -> str:
        """Return the SHA-256 of all labels and texts, whatever files they came from."""
        digest = hashlib.sha256()
        self.update_digest(digest)
        return digest.hexdigest()

    def update_digest(self, digest: "hashlib._Hash") -> None:
        """Feed all labels and texts to a hash."""
        for text, label in self:
            digest.update(f"{label}\0{text}\0".encode("utf-8", "surrogatepass"))


@dataclass(frozen=True)
class ExampleTexts:
    """The texts of examples."""

    examples: Examples

    def __iter__(self) -> Iterator[str]:
        return (example.text for example in self.examples)


def check_weights(weights: NDArray[np.float64]) -> None:
    """Raise an error for weights that are negative, not finite or all zero."""
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        found = weights[wrong[0]]
        raise DataError(f"weight {wrong[0]} is {found}; weights must be finite and not negative")
    if not weights.any():
        raise DataError("all weights are zero; there is nothing to learn from")


def split_stratified(
    examples: Examples, *, fraction: float, seed: int
) -> tuple[Examples, Examples]:
    """Split off ``fraction`` of each label's examples; both parts keep the original order.

    Every label keeps at least one example in the larger part, so a label with a single example has
    none in the smaller one.
    """
    by_label = _indices_by_label(examples)
    random = Random(seed)  # noqa: S311 (a split, not a secret)
    held_out: set[int] = set()
    for label in sorted(by_label):
        indices = by_label[label]
        count = min(max(1, round(fraction * len(indices))), len(indices) - 1) if fraction else 0
        held_out.update(random.sample(indices, count))
    if examples.multi_label:
        held_out.difference_update(_only_with_label(examples, held_out))
    kept = [index for index in range(len(examples)) if index not in held_out]
    return replace(examples.take(kept), skipped=examples.skipped), examples.take(sorted(held_out))


def _indices_by_label(examples: Examples) -> dict[str, list[int]]:
    by_label: defaultdict[str, list[int]] = defaultdict(list)
    for index, label in enumerate(examples.strata):
        by_label[label].append(index)
    return by_label


def _only_with_label(examples: Examples, held_out: Set[int]) -> list[int]:
    """Return held-out examples to move back, so that every label keeps an example."""
    kept: set[str] = set()
    for index, labels in enumerate(examples.label_sets):
        if index not in held_out:
            kept.update(labels)
    moved_back = []
    for index, labels in enumerate(examples.label_sets):
        if index in held_out and not kept.issuperset(labels):
            kept.update(labels)
            moved_back.append(index)
    return moved_back


def stratified_folds(examples: Examples, *, folds: int, seed: int) -> list[list[int]]:
    """Split the examples into folds of about equal size and with equal shares of each label.

    >>> examples = Examples([Example("", label) for label in "aaaabb"])
    >>> [len(fold) for fold in stratified_folds(examples, folds=2, seed=0)]
    [3, 3]
    """
    by_label = _indices_by_label(examples)
    random = Random(seed)  # noqa: S311 (a split, not a secret)
    for label in sorted(by_label):
        random.shuffle(by_label[label])
    dealt = [index for label in sorted(by_label) for index in by_label[label]]
    return [sorted(dealt[fold::folds]) for fold in range(folds)]
