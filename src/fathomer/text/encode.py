"""Texts as word ids, and batches of them with a bounded number of words."""

from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.spool import Spool
from fathomer.text.tokenizer import Words

_POOL = 50
"""Batches per pool. Texts are sorted by length within a pool: enough to sort, few enough to mix."""


class PackedWords(NamedTuple):
    """The words of some texts, concatenated, and the spellings of the unknown ones."""

    words: NDArray[np.int64]
    lengths: NDArray[np.int64]
    unknown: NDArray[np.uint8]


@dataclass(frozen=True)
class EncodedTexts:
    """Many texts as word ids in one flat array."""

    ids: NDArray[np.int32]
    """Ids of known words; ``-1 - k`` refers to row ``k`` of ``unknown``."""
    starts: NDArray[np.int64]
    """Start of each text, and the end of the last one."""
    unknown: NDArray[np.uint8]
    """Spellings of the distinct unknown words."""

    @classmethod
    def from_words(cls, texts: Iterable[Words], *, max_chars: int) -> "EncodedTexts":
        """Concatenate tokenized texts; each distinct unknown word is stored once."""
        rows: dict[str, int] = {}
        ids, starts = Spool(), array("q", [0])  # the ids of a large corpus go to disk
        for text in texts:
            row_of = [rows.setdefault(word, len(rows)) for word in text.unknown]
            encoded = [word if word >= 0 else -1 - row_of[-1 - word] for word in text.ids]
            ids.append(np.asarray(encoded, dtype=np.int32).tobytes())
            starts.append(starts[-1] + len(encoded))
        return cls(
            ids=ids.array(np.int32),
            starts=np.array(starts, dtype=np.int64),
            unknown=spell(list(rows), max_chars=max_chars),
        )

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of words in each text."""
        return np.diff(self.starts)

    def pack(self, indices: Sequence[int]) -> PackedWords:
        """Return the texts at ``indices`` with the spellings of their own unknown words."""
        parts = [self.ids[self.starts[i] : self.starts[i + 1]] for i in indices]
        words = np.concatenate([np.zeros(0, dtype=np.int64), *parts])
        is_unknown = words < 0
        rows, new_rows = np.unique(-1 - words[is_unknown], return_inverse=True)
        words[is_unknown] = -1 - new_rows
        lengths = np.asarray([len(part) for part in parts], dtype=np.int64)
        return PackedWords(words, lengths, self.unknown[rows])

    def gather(self, indices: Sequence[int], values: NDArray[Any]) -> NDArray[Any]:
        """Return the values of the words of the texts at ``indices``, in the order of :meth:`pack`."""
        parts = [values[self.starts[i] : self.starts[i + 1]] for i in indices]
        return np.concatenate([values[:0], *parts])

    def scatter(self, indices: Sequence[int], values: NDArray[Any], out: NDArray[Any]) -> None:
        """Write the values of packed words to their places in ``out``: the inverse of :meth:`gather`."""
        start = 0
        for index in indices:
            first, end = self.starts[index], self.starts[index + 1]
            out[first:end] = values[start : start + end - first]
            start += end - first

    def take(self, indices: Sequence[int]) -> "EncodedTexts":
        """Return some of the texts; the spellings of unknown words are shared."""
        starts = np.concatenate([[0], np.cumsum(self.lengths[np.asarray(indices, dtype=np.int64)])])
        return type(self)(self.gather(indices, self.ids), starts, self.unknown)


def plan_batches(
    lengths: NDArray[np.int64],
    *,
    budget: int,
    shuffle: np.random.Generator | None = None,
    parts: int = 1,
) -> Iterator[list[int]]:
    """Group texts into batches of at most ``budget`` words; a longer text gets its own batch.

    Texts of similar length are batched together, so that the BiLSTM takes few steps. With
    ``shuffle``, texts are sorted by length only within random pools, and batches come in random
    order. If a batch is to be divided into ``parts``, up to a third of its texts are left for the next
    one, so that the parts have equally many.
    """
    if shuffle is None:
        yield from _fill(np.argsort(-lengths, kind="stable"), lengths, budget, parts)
        return
    order = shuffle.permutation(len(lengths))
    pool = max(1, round(_POOL * budget / max(1.0, lengths.sum() / max(1, len(lengths)))))
    plan: list[list[int]] = []
    for start in range(0, len(order), pool):
        by_length = sorted(order[start : start + pool], key=lengths.__getitem__)
        plan.extend(_fill(by_length, lengths, budget, parts))
    for number in shuffle.permutation(len(plan)):
        yield plan[number]


def _fill(
    order: Iterable[int], lengths: NDArray[np.int64], budget: int, parts: int
) -> Iterator[list[int]]:
    batch: list[int] = []
    words = 0
    for index in order:
        # An empty text counts as one word, so that a batch of empty texts is bounded, too.
        cost = max(1, int(lengths[index]))
        while batch and words + cost > budget:
            end = _divisible(len(batch), parts)
            yield batch[:end]
            batch = batch[end:]
            words = int(np.maximum(lengths[batch], 1).sum())
        batch.append(int(index))
        words += cost
    if batch:
        yield batch


def _divisible(texts: int, parts: int) -> int:
    """Return how many texts of a batch to keep; the others begin the next one.

    >>> [_divisible(texts, 2) for texts in (1, 3, 4, 5)], _divisible(7, 4)
    ([1, 2, 4, 4], 7)
    """
    left = texts % parts
    return texts - left if parts < texts >= 3 * left else texts


def spell(words: Sequence[str], *, max_chars: int) -> NDArray[np.uint8]:
    """Return words as rows of UTF-8 bytes, truncated to ``max_chars`` and padded with zeros.

    >>> spell(["no", "é"], max_chars=8)
    array([[110, 111],
           [195, 169]], dtype=uint8)
    """
    # Truncate before and after encoding: a word may be huge, and a character has up to four bytes.
    spellings = [word[:max_chars].encode("utf-8", "replace")[:max_chars] for word in words]
    width = max(map(len, spellings), default=1) or 1
    padded = b"".join(spelling.ljust(width, b"\0") for spelling in spellings)
    return np.frombuffer(padded, dtype=np.uint8).reshape(len(words), width)
