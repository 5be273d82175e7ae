"""A one-layer bidirectional LSTM over packed texts, Eq. (5).

PyTorch's LSTM on packed sequences takes quadratic time in its backward pass. Here each direction is a
unidirectional LSTM on padded texts instead, for which oneDNN has fused kernels. The backward
direction reads every text reversed, so that padding always comes last and changes nothing. In mixed
precision, oneDNN keeps the states in bfloat16, too.

    N words, B texts, T words of the longest text, h hidden size of one direction
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.graph import WordBatch
from fathomer.model.products import factor_dtype


class BiLSTM(nn.Module):
    """A bidirectional LSTM, Eq. (5); ``hidden_size`` is shared by the two directions."""

    def __init__(self, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.size = hidden_size
        self.hidden_size = hidden_size // 2  # of one direction
        gates = 4 * self.hidden_size  # g, i, f, o
        self.input = nn.Parameter(torch.empty(2, gates, token_size))
        self.bias = nn.Parameter(torch.empty(2, gates))
        self.recurrent = nn.Parameter(torch.empty(2, gates, self.hidden_size))

    def forward(self, x: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N hidden"]:
        """Return ``[forward ; backward]`` for each word."""
        if batch.num_words == 0:
            return x.new_zeros(0, self.size)
        return torch.cat([self.read(x, batch, direction) for direction in (0, 1)], 1)

    def read(
        self, x: Float[Tensor, "N token"], batch: WordBatch, direction: int
    ) -> Float[Tensor, "N h"]:
        """Read all texts in one direction: forward (0) or backward (1)."""
        times = batch.reversed_positions if direction else batch.positions
        padded_rows = pad_by_time(times, batch)  # T B
        words = functional.pad(x, (0, 0, 0, 1)).index_select(0, padded_rows.flatten())
        words = words.to(factor_dtype(x))
        start = words.new_zeros(1, batch.num_texts, self.hidden_size)
        states, _, _ = torch.lstm(
            words.view(*padded_rows.shape, -1),
            (start, start),
            [weight.to(words.dtype) for weight in self.torch_weights(direction)],
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=self.training,
            bidirectional=False,
            batch_first=False,
        )
        return (
            states.to(x.dtype)
            .flatten(0, 1)
            .index_select(0, times * batch.num_texts + batch.text_of)
        )

    def torch_weights(self, direction: int) -> list[Tensor]:
        """Return the weights of one direction with the gates in PyTorch's order i, f, g, o."""
        weights = []
        for weight in (self.input, self.recurrent, self.bias):
            g, i, f, o = weight[direction].chunk(4)
            weights.append(torch.cat([i, f, g, o]))
        return [*weights, torch.zeros_like(weights[-1])]


def pad_by_time(times: Int[Tensor, " N"], batch: WordBatch) -> Int[Tensor, "T B"]:
    """Return the word that each text reads at each time step; ``N`` for padding."""
    longest = int(batch.lengths.max())
    words = times.new_full((longest, batch.num_texts), batch.num_words)
    words[times, batch.text_of] = torch.arange(batch.num_words, device=times.device)
    return words
