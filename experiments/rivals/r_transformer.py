"""R-Transformer (Wang et al., 2019): a local recurrent network, then self-attention, in each layer.

    h = x + GRU(LayerNorm(x_{t-6}), ..., LayerNorm(x_t))    from a zero state, for each word t
    y = Layer(h)                                            a layer of the model ``transformer``

The local network sees the order of the words, so there are no position embeddings. There are three
layers, and windows have seven words. Differences from the original: attention is not causal, because
the whole text is known; normalisation comes before each part (there, after it); and texts are
pooled as in Eq. (15), without the sentence node.

    N words of the batch, B texts
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from experiments.rivals.drnn import window_states
from fathomer.model.baselines.comparison import ComparisonModel, packed, padded
from fathomer.model.baselines.transformer import HEADS, encoder_layer, start_small, whole_heads
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_words

LAYERS = 3
WINDOW = 7


class RTransformerLayer(nn.Module):
    """A local recurrent network and a Transformer layer."""

    def __init__(self, size: int, dropout: float) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.local = nn.GRU(size, size, batch_first=True)
        self.attention = encoder_layer(size, dropout)

    def forward(self, x: Float[Tensor, "N H"], batch: WordBatch) -> Float[Tensor, "N H"]:
        """Return the next states of the words."""
        if not batch.num_words:
            return x
        table, here = padded(x + window_states(self.local, self.norm(x), batch, WINDOW), batch)
        here[:, 0] = True  # an empty text attends to one word of zeros
        return packed(self.attention(table, src_key_padding_mask=~here), batch)


class RTransformer(ComparisonModel):
    """Layers of a local recurrent network with self-attention above it."""

    def build(self, token_size: int) -> int:
        """Create the layers."""
        start_small(self.embedding)
        size = whole_heads(self.config.hidden_size, HEADS)
        self.input = nn.Linear(token_size, size)
        self.layers = nn.ModuleList(
            RTransformerLayer(size, self.config.hidden_dropout) for _ in range(LAYERS)
        )
        self.norm = nn.LayerNorm(size)
        return 2 * size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the states of each text."""
        states = self.hidden_dropout(self.input(tokens))
        for layer in self.layers:
            states = layer(states, batch)
        return torch.relu(pool_words(self.norm(states), batch))
