"""A stack of three bidirectional LSTMs: "3L-BiLSTMs" of the paper's Tables 2 and 3.

The layers (Hochreiter and Schmidhuber, 1997; Graves and Schmidhuber, 2005) are those of our own
network, whose way back takes time that is linear in the words. The vector of a text is the maximum
and mean over its words, as in Eq. (15), which has the sentence node beside them. An odd
``hidden_size`` is rounded down, so that the directions share it equally.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch
from fathomer.model.pooling import pool_words
from fathomer.model.sequence import BiLSTM

LAYERS = 3


class StackedBiLSTM(ComparisonModel):
    """Read the words in both directions, three times over."""

    def build(self, token_size: int) -> int:
        """Make the stack."""
        size = self.config.hidden_size // 2 * 2
        widths = [token_size, *[size] * (LAYERS - 1)]
        self.layers = nn.ModuleList(BiLSTM(width, size) for width in widths)
        return 2 * size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the maximum and mean over each text's states."""
        states, places = tokens, torch.arange(batch.num_words, device=tokens.device)
        for number, layer in enumerate(self.layers):
            states = layer(self.hidden_dropout(states) if number else states, places, batch)
        return torch.relu(pool_words(states, batch))
