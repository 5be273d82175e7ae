"""Recurrent reading that forgets.

Wang, 2018, "Disconnected Recurrent Neural Networks for Text Categorization":

    h_t = GRU(x_{t-k+1}, ..., x_t), started from nothing at the window's first word
    u_t = ReLU(W h_t + b)
    v   = max(u_1, ..., u_n)

The state of a word depends on itself and the k - 1 words before it, and on nothing else: a phrase
means the same wherever it stands. k is 15. What differs: a window at the beginning of a text is
shorter rather than filled up with zeros, and the layer above the GRU has no batch normalisation, as
company in the batch must not change an answer. The GRU is PyTorch's own.

    N words of the batch, B texts, k window
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from fathomer.baselines.comparison import ComparisonModel
from fathomer.nn.graph import WordBatch

WINDOW = 15


class DRNN(ComparisonModel):
    """Read each word with the few words before it."""

    def build(self, token_size: int) -> int:
        """Make the GRU and the layer above it."""
        size = self.config.hidden_size
        self.gru = nn.GRU(token_size, size, batch_first=True)
        self.hidden = nn.Linear(size, size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the maximum over the words."""
        if not batch.num_words:
            return tokens.new_zeros(batch.num_texts, self.config.hidden_size)
        states = torch.relu(self.hidden(self.hidden_dropout(self.windows(tokens, batch))))
        # No state is below zero, so that zero is the maximum of an empty text alone.
        lengths = batch.lengths.to(states.device)
        return torch.segment_reduce(states, "max", lengths=lengths, initial=0.0, unsafe=True)

    def windows(self, tokens: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N H"]:
        """Give the state at the end of each word's window."""
        lengths = (batch.positions + 1).clamp(max=WINDOW)
        first = torch.arange(batch.num_words, device=tokens.device) - lengths + 1
        columns = torch.arange(int(lengths.max()), device=tokens.device)
        rows = (first[:, None] + columns).clamp(max=batch.num_words - 1)  # N k
        packed = pack_padded_sequence(
            tokens[rows], lengths.cpu(), batch_first=True, enforce_sorted=False
        )
        last: Tensor = self.gru(packed)[1]
        return last[0]
