"""Recurrent reading that forgets.

Wang, 2018, "Disconnected Recurrent Neural Networks for Text Categorization":

    h_t = GRU(x_{t-k+1}, ..., x_t), started from nothing at the window's first word
    u_t = ReLU(W h_t + b)
    v   = max(u_1, ..., u_n)

The state of a word depends on itself and the k - 1 words before it, and on nothing else: a phrase
means the same wherever it stands. k is 15. What differs: a window at the beginning of a text is
shorter rather than filled up with zeros, and the layer above the GRU has no batch normalisation, as
company in the batch must not change an answer. The GRU is PyTorch's, written out.

    N words of the batch, B texts, k window
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch

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
        start = states.new_zeros(batch.num_texts, states.shape[1])
        return start.scatter_reduce(0, batch.text_of[:, None].expand_as(states), states, "amax")

    def windows(self, tokens: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N H"]:
        """Give the state at the end of each word's window."""
        weight_ih, weight_hh, bias_ih, bias_hh = self.gru.all_weights[0]
        # What the gates take from a word is the same in all windows that it stands in.
        inputs = functional.linear(tokens, weight_ih, bias_ih)  # N 3*H
        state = tokens.new_zeros(batch.num_words, self.config.hidden_size)
        words = torch.arange(batch.num_words, device=tokens.device)
        for back in reversed(range(min(WINDOW, int(batch.lengths.max())))):
            inside = words[batch.positions >= back]  # windows that reach so far back
            before = state[inside]
            hidden = functional.linear(before, weight_hh, bias_hh)
            state = state.index_copy(0, inside, gru_step(before, inputs[inside - back], hidden))
        return state


def gru_step(
    h: Float[Tensor, "rows H"], inputs: Float[Tensor, "rows 3*H"], hidden: Float[Tensor, "rows 3*H"]
) -> Float[Tensor, "rows H"]:
    """Give the next states from what the gates take from words and from states."""
    r, z, n = inputs.chunk(3, 1)
    u_r, u_z, u_n = hidden.chunk(3, 1)
    new = torch.tanh(n + torch.sigmoid(r + u_r) * u_n)
    return new + torch.sigmoid(z + u_z) * (h - new)
