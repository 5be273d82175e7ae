"""A stack of three bidirectional LSTMs: "3L-BiLSTMs" of the paper's Tables 2 and 3.

The layers (Hochreiter and Schmidhuber, 1997; Graves and Schmidhuber, 2005) are those of our own
network. Texts are pooled as in Eq. (15), without the sentence node. An odd ``hidden_size`` is
rounded down, so that both directions have the same width.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch
from fathomer.model.lstm import BiLSTM
from fathomer.model.model import pool_words

LAYERS = 3


class StackedBiLSTM(ComparisonModel):
    """A stack of three bidirectional LSTMs."""

    def build(self, token_size: int) -> int:
        """Build the stack."""
        size = self.config.hidden_size // 2 * 2
        widths = [token_size, *[size] * (LAYERS - 1)]
        self.layers = nn.ModuleList(BiLSTM(width, size) for width in widths)
        return 2 * size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the states of each text."""
        first, *others = self.layers
        states = first(tokens, batch)
        for layer in others:
            states = layer(self.hidden_dropout(states), batch)
        return torch.relu(pool_words(states, batch))
