"""The packed word graph: the texts of a batch one after another, without padding.

Words are nodes, linked to their left and right neighbours and to the sentence node of their text.
Index ``N`` means "no neighbour"; states have a row of zeros there.

    N words of the batch, B texts, K unknown words, C bytes of a spelling
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float, Int, UInt8
from torch import Tensor

from fathomer.text.encode import PackedWords


@dataclass(frozen=True)
class WordBatch:
    """The words of several texts, one text after another; texts may be empty."""

    words: Int[Tensor, " N"]
    """Ids in the vocabulary; ``-1 - k`` is the k-th unknown word of the batch."""
    lengths: Int[Tensor, " B"]
    """Words of each text; always on the CPU."""
    unknown: UInt8[Tensor, "K C"]
    """Spellings of the unknown words: UTF-8 bytes, padded with zeros."""

    @classmethod
    def from_ids(
        cls, ids: Sequence[Sequence[int]], *, unknown: UInt8[Tensor, "K C"] | None = None
    ) -> "WordBatch":
        """Pack word ids, one list per text.

        >>> WordBatch.from_ids([[4, 8, 15], [16, 23]]).lengths
        tensor([3, 2])
        """
        words = torch.tensor([word for text in ids for word in text], dtype=torch.long)
        lengths = torch.tensor([len(text) for text in ids], dtype=torch.long)
        if unknown is None:
            unknown = torch.zeros(0, 1, dtype=torch.uint8)
        if len(words) and int(words.min()) < -len(unknown):
            raise ValueError(f"id {int(words.min())}, but {len(unknown)} unknown words are spelled")
        return cls(words, lengths, unknown)

    @classmethod
    def from_packed(cls, packed: PackedWords) -> "WordBatch":
        """Wrap words that are already packed."""
        return cls(*(torch.from_numpy(part) for part in packed))

    def to(self, device: torch.device | str) -> "WordBatch":
        """Return the batch with its words on ``device``."""
        moved = {item.name: getattr(self, item.name).to(device) for item in fields(self)}
        return type(self)(**{**moved, "lengths": self.lengths})

    # Computed once, outside inference mode, so that a batch can be used for prediction first and
    # for training afterwards.

    @property
    def num_texts(self) -> int:
        """Number of texts."""
        return len(self.lengths)

    @property
    def num_words(self) -> int:
        """Number of words of all texts."""
        return len(self.words)

    @cached_property
    @torch.inference_mode(False)
    def text_of(self) -> Int[Tensor, " N"]:
        """Index of the text of each word."""
        return torch.repeat_interleave(self.lengths).to(self.words.device)

    @cached_property
    @torch.inference_mode(False)
    def positions(self) -> Int[Tensor, " N"]:
        """Position of each word in its text, from 0."""
        starts = self.lengths.cumsum(0) - self.lengths
        places = torch.arange(self.num_words) - torch.repeat_interleave(starts, self.lengths)
        return places.to(self.words.device)

    @cached_property
    @torch.inference_mode(False)
    def reversed_positions(self) -> Int[Tensor, " N"]:
        """Position of each word in its text, counted from the end."""
        lengths = self.lengths.to(self.words.device)[self.text_of]
        return lengths - 1 - self.positions

    @cached_property
    @torch.inference_mode(False)
    def neighbours(self) -> tuple[Int[Tensor, " N"], Int[Tensor, " N"]]:
        """Indices of the left and right neighbours; ``N`` for no neighbour."""
        index = torch.arange(self.num_words, device=self.words.device)
        first = self.positions == 0
        last = torch.roll(first, -1)  # the word before a first word is a last word
        none = self.num_words
        return (index - 1).masked_fill(first, none), (index + 1).masked_fill(last, none)

    @cached_property
    @torch.inference_mode(False)
    def word_counts(self) -> Int[Tensor, " B"]:
        """Number of words of each text, at least 1, on the device of the words."""
        return self.lengths.clamp(min=1).to(self.words.device)


class DepthOrder(NamedTuple):
    """The word graph with its words sorted by depth, deepest first.

    The words still running in a layer are the first ``running[layer - 1]`` rows, so an update writes
    a prefix of the rows, and a word that stops makes the prefix shorter.
    """

    order: Int[Tensor, " N"]
    """Index of the word at each rank."""
    ranks: Int[Tensor, " N"]
    """Rank of each word."""
    window: Int[Tensor, "N 3"]
    """Ranks of the left neighbour, the word and the right neighbour; ``N`` for no neighbour."""
    neighbours: Int[Tensor, "N 2"]
    """The same without the word itself."""
    text_of: Int[Tensor, " N"]
    running: list[int]
    """Number of words running in layer 1, 2, ..., up to the depth of the deepest word."""
    running_texts: Bool[Tensor, "layers B 1"]
    """Sentence nodes running in each layer, up to d_max of Eq. (14) for each text."""
    word_counts: Int[Tensor, " B"]
    """Words of each text, at least 1."""

    def text_mean(self, words: Float[Tensor, "N H"]) -> Float[Tensor, "B H"]:
        """Average the words of each text; zeros for an empty text."""
        sums = words.new_zeros(len(self.word_counts), words.shape[1])
        return sums.index_add(0, self.text_of, words) / self.word_counts[:, None]


def sort_by_depth(batch: WordBatch, depths: Int[Tensor, " N"]) -> DepthOrder:
    """Sort the words of a batch by depth, deepest first."""
    device = batch.words.device
    order = torch.argsort(depths, descending=True, stable=True)
    ranks = torch.empty(batch.num_words + 1, dtype=torch.long, device=device)
    ranks[order] = torch.arange(batch.num_words, device=device)
    ranks[-1] = batch.num_words
    left, right = (neighbour[order] for neighbour in batch.neighbours)
    # The sizes of the prefixes: the only point where the host waits for the device.
    histogram = torch.bincount(depths, minlength=2)
    running = histogram.flip(0).cumsum(0).flip(0)[1:].tolist() if batch.num_words else []
    text_depths = torch.zeros(batch.num_texts, dtype=depths.dtype, device=device)
    text_depths.scatter_reduce_(0, batch.text_of, depths, "amax")
    layers = torch.arange(1, len(running) + 1, device=device)
    window = ranks[torch.stack([left, order, right], 1)]
    return DepthOrder(
        order=order,
        ranks=ranks[:-1],
        window=window,
        neighbours=window[:, ::2].contiguous(),
        text_of=batch.text_of[order],
        running=running,
        running_texts=(text_depths >= layers[:, None])[:, :, None],
        word_counts=batch.word_counts,
    )
