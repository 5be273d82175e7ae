"""Disconnected recurrent network (Wang, 2018): "DRNN" of the paper's Table 3.

    h_t = GRU(x_{t-k+1}, ..., x_t)      from a zero state at the first word of the window
    u_t = ReLU(W h_t + b)
    v   = max(u_1, ..., u_n)

The state of a word depends only on itself and the k - 1 words before it, so that a phrase has the
same state wherever it occurs; k is 15. Differences from the original: windows at the beginning of a
text are shorter instead of padded, and the layer above the GRU has no batch normalisation, because
the answer to a text must not depend on the rest of the batch. The GRU is PyTorch's, written out.

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
    """A GRU over a short window that ends at each word."""

    def build(self, token_size: int) -> int:
        """Create the GRU and the layer above it."""
        size = self.config.hidden_size
        self.gru = nn.GRU(token_size, size, batch_first=True)
        self.hidden = nn.Linear(size, size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum over the words."""
        if not batch.num_words:
            return tokens.new_zeros(batch.num_texts, self.config.hidden_size)
        windows = window_states(self.gru, tokens, batch, WINDOW)
        states = torch.relu(self.hidden(self.hidden_dropout(windows)))
        # States are not negative, so starting from zero only matters for an empty text.
        start = states.new_zeros(batch.num_texts, states.shape[1])
        return start.scatter_reduce(0, batch.text_of[:, None].expand_as(states), states, "amax")


def window_states(
    gru: nn.GRU, tokens: Float[Tensor, "N token"], batch: WordBatch, window: int
) -> Float[Tensor, "N H"]:
    """Return the state of a GRU at the end of the window of each word."""
    weight_ih, weight_hh, bias_ih, bias_hh = gru.all_weights[0]
    # The input of a word to the gates is the same in all windows that contain it.
    inputs = functional.linear(tokens, weight_ih, bias_ih)  # N 3*H
    state = tokens.new_zeros(batch.num_words, gru.hidden_size)
    words = torch.arange(batch.num_words, device=tokens.device)
    for back in reversed(range(min(window, int(batch.lengths.max())))):
        inside = words[batch.positions >= back]  # windows that reach this far back
        before = state[inside]
        hidden = functional.linear(before, weight_hh, bias_hh)
        new = gru_step(before, inputs[inside - back], hidden)
        state = state.index_copy(0, inside, new.to(state.dtype))
    return state


def gru_step(
    h: Float[Tensor, "rows H"], inputs: Float[Tensor, "rows 3*H"], hidden: Float[Tensor, "rows 3*H"]
) -> Float[Tensor, "rows H"]:
    """Return the next states, given the gates' inputs from the words and from the states."""
    r, z, n = inputs.chunk(3, 1)
    u_r, u_z, u_n = hidden.chunk(3, 1)
    new = torch.tanh(n + torch.sigmoid(r + u_r) * u_n)
    return new + torch.sigmoid(z + u_z) * (h - new)
