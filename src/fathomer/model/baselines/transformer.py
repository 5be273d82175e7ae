"""The encoder of the Transformer (Vaswani et al., 2017): "Transformer" of Tables 2 and 3.

The layers are PyTorch's: self-attention with eight heads, then a feed-forward network four times as
wide, each with a residual connection; positions are sinusoidal. For each head

    z = x + W_o softmax(Q K^T / sqrt(d)) V    Q, K, V: linear maps of LayerNorm(x)
    y = z + W_2 ReLU(W_1 LayerNorm(z))

Differences: a linear layer projects the tokens to the width of the layers (there, embeddings have
that width and are scaled); normalisation comes before each part (there, after it, which needs a
learning-rate warm-up); and texts are pooled as in Eq. (15), without the sentence node.

The width of the layers is ``hidden_size``, rounded up to a multiple of the number of heads.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_words
from fathomer.model.positions import sinusoids

HEADS = 8
LAYERS = 6


def whole_heads(size: int, heads: int) -> int:
    """Round a width up to a multiple of the number of heads.

    >>> whole_heads(400, 8), whole_heads(401, 8)
    (400, 408)
    """
    return -(-size // heads) * heads


class Transformer(ComparisonModel):
    """A Transformer encoder over the words of a text."""

    def build(self, token_size: int) -> int:
        """Build the layers."""
        self.size = whole_heads(self.config.hidden_size, HEADS)
        self.input = nn.Linear(token_size, self.size)
        layer = nn.TransformerEncoderLayer(
            self.size,
            HEADS,
            dim_feedforward=4 * self.size,
            dropout=self.config.hidden_dropout,
            batch_first=True,
            norm_first=True,
        )
        norm = nn.LayerNorm(self.size)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
        return 2 * self.size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the states of each text."""
        positions = sinusoids(batch.positions.to(tokens.dtype), self.size)
        table, here = padded(self.hidden_dropout(self.input(tokens) + positions), batch)
        here[:, 0] = True  # an empty text attends to one word of zeros
        states = self.encoder(table, src_key_padding_mask=~here)
        return torch.relu(pool_words(packed(states, batch), batch))
