"""Sequential module (section 3.2): where the word order comes from.

A one-layer BiLSTM, Eq. (5), or what rows 2-4 of the paper's Table 4 put in its place: nothing,
sinusoidal positions, learned positions. Each gives the features that decide the depth.

    N words of the batch, D rows of tokens: a row may serve all words that are equal
"""

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.model.graph import WordBatch
from fathomer.model.lstm import ReadBothWays, read, sort_by_time


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
        self.hidden_size = hidden_size // 2  # of one direction
        gates = 4 * self.hidden_size  # g, i, f, o
        self.input = nn.Parameter(torch.empty(2, gates, token_size))
        self.bias = nn.Parameter(torch.empty(2, gates))
        self.recurrent = nn.Parameter(torch.empty(2, gates, self.hidden_size))

    def forward(
        self, tokens: Float[Tensor, "D token"], places: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Give ``[forward ; backward]`` for each word."""
        if batch.num_words == 0:
            return tokens.new_zeros(0, self.size)
        time = sort_by_time(batch)
        # The rows of the backward direction stand below those of the forward one.
        both = torch.stack([places, places + len(tokens)], 1).flatten()  # 2 N
        sums = self.from_tokens(tokens).index_select(0, both[time.order])
        recurrent = self.recurrent.to(sums.dtype)  # which autocast may have chosen
        if torch.is_grad_enabled():
            states: Tensor = ReadBothWays.apply(sums, recurrent, time)  # type: ignore[no-untyped-call]
        else:
            _, _, states = read(sums, recurrent, time.sizes)
        return states.index_select(0, time.rows.flatten()).view(-1, self.size)

    def from_tokens(self, tokens: Float[Tensor, "D token"]) -> Float[Tensor, "2*D gates"]:
        """Give the input's part of the sums inside the gates, one direction below the other."""
        both = torch.baddbmm(self.bias[:, None], tokens.expand(2, -1, -1), self.input.mT)
        return both.flatten(0, 1)


class NoSequence(nn.Module):
    """Pass the tokens on: no word order but the graph's."""

    def __init__(self, token_size: int) -> None:
        super().__init__()
        self.size = token_size

    def forward(
        self,
        tokens: Float[Tensor, "D token"],
        places: Int[Tensor, " N"],
        batch: WordBatch,  # noqa: ARG002 (the others need it)
    ) -> Float[Tensor, "N token"]:
        """Give the tokens themselves."""
        return tokens.index_select(0, places)


class SinusoidalPosition(NoSequence):
    """Add a fixed encoding of the place in the text."""

    def forward(
        self, tokens: Float[Tensor, "D token"], places: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N token"]:
        """Give token plus position."""
        positions = sinusoids(batch.positions.to(tokens.dtype), self.size)
        return positions + tokens.index_select(0, places)


class LearnedPosition(NoSequence):
    """Add a trained vector per place in the text; places beyond the table share its last row."""

    def __init__(self, token_size: int, max_positions: int) -> None:
        super().__init__(token_size)
        self.position = nn.Embedding(max_positions, token_size)

    def forward(
        self, tokens: Float[Tensor, "D token"], places: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N token"]:
        """Give token plus position."""
        positions = batch.positions.clamp(max=self.position.num_embeddings - 1)
        return self.position(positions) + tokens.index_select(0, places)  # type: ignore[no-any-return]


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
