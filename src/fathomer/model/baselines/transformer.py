"""The encoder of the Transformer (Vaswani et al., 2017): "Transformer" of Tables 2 and 3.

The layers are PyTorch's: self-attention with eight heads, then a feed-forward network four times as
wide, each with a residual connection; positions are sinusoidal. For each head

    z = x + W_o softmax(Q K^T / sqrt(d)) V    Q, K, V: linear maps of LayerNorm(x)
    y = z + W_2 ReLU(W_1 LayerNorm(z))

The input of the first layer is ``sqrt(H) (LayerNorm(tokens) + positions)``, so that a word is larger
than what each layer adds to it at first. Differences: a linear layer projects the tokens to the width
of the layers, and they are normalised (there, embeddings have that width, and only they are scaled);
normalisation comes before each part (there, after it, which needs a learning-rate warm-up); trained
embeddings start small; and texts are pooled as in Eq. (15), without the sentence node.

The width of the layers is ``hidden_size``, rounded up to a multiple of the number of heads.
"""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_words
from fathomer.model.positions import sinusoids

HEADS = 8
LAYERS = 6
SPREAD = 0.02
"""Standard deviation of trained embeddings at the start. With 0.4, as in the other models, it
stayed at chance on the demo corpus (docs/log.md)."""


def start_small(embedding: TokenEmbedding) -> None:
    """Initialise trained embeddings with a small standard deviation."""
    for table in (embedding.word, embedding.char.bytes):
        table.spread = SPREAD  # type: ignore[assignment]


def whole_heads(size: int, heads: int) -> int:
    """Round a width up to a multiple of the number of heads.

    >>> whole_heads(400, 8), whole_heads(401, 8)
    (400, 408)
    """
    return -(-size // heads) * heads


def encoder_layer(size: int, dropout: float) -> nn.TransformerEncoderLayer:
    """Build one layer."""
    return nn.TransformerEncoderLayer(
        size, HEADS, dim_feedforward=4 * size, dropout=dropout, batch_first=True, norm_first=True
    )


class Transformer(ComparisonModel):
    """A Transformer encoder over the words of a text."""

    def build(self, token_size: int) -> int:
        """Build the layers."""
        start_small(self.embedding)
        self.size = whole_heads(self.config.hidden_size, HEADS)
        self.input = nn.Linear(token_size, self.size)
        self.input_norm = nn.LayerNorm(self.size)
        layer = encoder_layer(self.size, self.config.hidden_dropout)
        norm = nn.LayerNorm(self.size)
        self.encoder = nn.TransformerEncoder(layer, LAYERS, norm, enable_nested_tensor=False)
        return 2 * self.size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the states of each text."""
        table, here = padded(self.embedded(tokens, batch), batch)
        here[:, 0] = True  # an empty text attends to one word of zeros
        return torch.relu(pool_words(self.encode(table, here, batch), batch))

    def embedded(self, tokens: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N H"]:
        """Return the input of the first layer: tokens with their positions."""
        positions = sinusoids(batch.positions.to(tokens.dtype), self.size)
        x = math.sqrt(self.size) * (self.input_norm(self.input(tokens)) + positions)
        return self.hidden_dropout(x)  # type: ignore[no-any-return]

    def encode(
        self, table: Float[Tensor, "B T H"], here: Bool[Tensor, "B T"], batch: WordBatch
    ) -> Float[Tensor, "N H"]:
        """Return the last states of the words; ``here`` is false in the padding."""
        return packed(self.encoder(table, src_key_padding_mask=~here), batch)
