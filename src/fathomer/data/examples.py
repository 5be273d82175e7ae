"""Labelled texts: one example, a collection of them with its account, and stratified splits."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple


class Example(NamedTuple):
    """Hold one text with its label."""

    text: str
    label: str


@dataclass(frozen=True)
class Examples:
    """Hold labelled texts in order, with an account of what was left out and why."""

    items: Sequence[Example]
    skipped: Mapping[str, int] = field(default_factory=dict)
    """How many rows were left out, by reason."""

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[Example]:
        return iter(self.items)

    @property
    def label_counts(self) -> dict[str, int]:
        """Count the examples of each label, labels in sorted order."""
        return dict(sorted(Counter(example.label for example in self.items).items()))

    def account(self) -> str:
        """Say in one line what was read and what was left out.

        >>> Examples([Example("good", "1")], {"empty label": 2}).account()
        '1 example read, 2 skipped (2 empty label)'
        """
        line = f"{len(self):,} example{'' if len(self) == 1 else 's'} read"
        if not self.skipped:
            return line
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.skipped.items())
        return f"{line}, {sum(self.skipped.values()):,} skipped ({reasons})"


def split_stratified(
    examples: Examples, *, fraction: float, seed: int
) -> tuple[Examples, Examples]:
    """Split off ``fraction`` of each label's examples; both parts keep the original order.

    Every label keeps at least one example in the larger part; a label with a single example has
    none in the smaller one.
    """
    by_label: defaultdict[str, list[int]] = defaultdict(list)
    for index, example in enumerate(examples):
        by_label[example.label].append(index)
    random = Random(seed)  # noqa: S311 (a split, not a secret)
    held_out: set[int] = set()
    for label in sorted(by_label):
        indices = by_label[label]
        count = min(max(1, round(fraction * len(indices))), len(indices) - 1)
        held_out.update(random.sample(indices, count))
    return (
        Examples([e for i, e in enumerate(examples) if i not in held_out], examples.skipped),
        Examples([e for i, e in enumerate(examples) if i in held_out]),
    )
