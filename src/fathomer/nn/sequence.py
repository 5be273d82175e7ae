"""Sequential module (section 3.2): where the word order comes from.

A one-layer BiLSTM, Eq. (5), or what rows 2-4 of the paper's Table 4 put in its place: nothing,
sinusoidal positions, learned positions. Each gives the features that decide the depth.

    N words of the batch
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from fathomer.config import ModelConfig
from fathomer.nn.graph import WordBatch


def sinusoids(places: Tensor, size: int) -> Float[Tensor, "places size"]:
    """Encode numbers as interleaved sines and cosines, Eq. (12)."""
    pairs = torch.arange((size + 1) // 2, device=places.device)
    angles = places[:, None] * torch.exp(pairs * (-2 * math.log(10_000) / size))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :size]


class BiLSTM(nn.Module):
    """Read the words in both directions, Eq. (5), on packed texts."""

    def __init__(self, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.size = hidden_size
        self.lstm = nn.LSTM(token_size, hidden_size // 2, bidirectional=True)

    def forward(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Give ``[forward ; backward]`` for each word."""
        if batch.num_words == 0:
            return tokens.new_zeros(0, self.size)
        # A packed sequence wants the first words of all texts (longest text first), then the
        # second words, and so on: a permutation of the rows, nothing more.
        longest_first = torch.argsort(batch.lengths, descending=True, stable=True)
        rank = torch.empty_like(longest_first)
        rank[longest_first] = torch.arange(batch.num_texts)
        keys = batch.positions * batch.num_texts + rank.to(tokens.device)[batch.text_of]
        order = torch.argsort(keys)
        batch_sizes = torch.bincount(batch.positions).cpu()
        packed = PackedSequence(tokens.index_select(0, order), batch_sizes)
        states, _ = self.lstm(packed)
        return states.data.index_select(0, torch.argsort(order))  # type: ignore[no-any-return]


class NoSequence(nn.Module):
    """Pass the tokens on: no word order but the graph's."""

    def __init__(self, token_size: int) -> None:
        super().__init__()
        self.size = token_size

    def forward(
        self,
        tokens: Float[Tensor, "N token"],
        batch: WordBatch,  # noqa: ARG002 (the others need it)
    ) -> Float[Tensor, "N token"]:
        """Give the tokens themselves."""
        return tokens


class SinusoidalPosition(NoSequence):
    """Add a fixed encoding of the place in the text."""

    def forward(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "N token"]:
        """Give token plus position."""
        return tokens + sinusoids(batch.positions.to(tokens.dtype), self.size)


class LearnedPosition(NoSequence):
    """Add a trained vector per place in the text; places beyond the table share its last row."""

    def __init__(self, token_size: int, max_positions: int) -> None:
        super().__init__(token_size)
        self.position = nn.Embedding(max_positions, token_size)

    def forward(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "N token"]:
        """Give token plus position."""
        places = batch.positions.clamp(max=self.position.num_embeddings - 1)
        return tokens + self.position(places)  # type: ignore[no-any-return]


def sequence_module(config: ModelConfig, token_size: int) -> BiLSTM | NoSequence:
    """Build the sequential module that the settings name."""
    match config.sequence:
        case "bilstm":
            return BiLSTM(token_size, config.hidden_size)
        case "sinusoidal":
            return SinusoidalPosition(token_size)
        case "learned":
            return LearnedPosition(token_size, config.max_positions)
        case "none":
            return NoSequence(token_size)
