"""The encoder of the Transformer (Vaswani et al., 2017): "Transformer" of Tables 2 and 3.

The layers are PyTorch's own: attention with eight heads over all words of a text, then a feed-forward
network four times as wide, each with a residual; positions are sinusoidal. For each head

    z = x + W_o softmax(Q K^T / sqrt(d)) V    Q, K, V: linear maps of LayerNorm(x)
    y = z + W_2 ReLU(W_1 LayerNorm(z))

What differs: a linear layer brings the tokens to the width of the layers (there, embeddings have it, and
are scaled), normalisation comes before each part (there, after: that needs a learning rate that warms
up, which our training has not), and texts are pooled as in Eq. (15), without a sentence node.

The width of the layers is ``hidden_size``, rounded up to a multiple of the number of heads.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.graph import WordBatch
from fathomer.model.pooling import pool_words
from fathomer.model.sequence import sinusoids

HEADS = 8
LAYERS = 6


def whole_heads(size: int, heads: int) -> int:
    """Round a width up so that the heads share it equally.

    >>> whole_heads(400, 8), whole_heads(401, 8)
    (400, 408)
    """
    return -(-size // heads) * heads


class Transformer(ComparisonModel):
    """Let all words of a text look at each other."""

    def build(self, token_size: int) -> int:
        """Make the stack of layers."""
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
        """Give the maximum and mean over each text's states."""
        positions = sinusoids(batch.positions.to(tokens.dtype), self.size)
        table, here = padded(self.hidden_dropout(self.input(tokens) + positions), batch)
        here[:, 0] = True  # an empty text is read as a word of zeros, unseen
        states = self.encoder(table, src_key_padding_mask=~here)
        return torch.relu(pool_words(packed(states, batch), batch))
