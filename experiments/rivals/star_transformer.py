"""The Star-Transformer (Guo et al., 2019): "Star-Transformer" of the paper's Tables 2 and 3.

There is a satellite node per word, in a ring, and one relay node linked to all of them. In each cycle
a satellite attends to its context, and then the relay to itself and all satellites:

    h_i = LeakyReLU(MultiAtt(LayerNorm(h_i), [h_{i-1}, h_i, h_{i+1}, e_i, s]))
    s = LeakyReLU(MultiAtt(LayerNorm(s), [s, h_1, ..., h_n]))

Initially ``h_i`` is the embedding ``e_i`` and ``s`` is their mean; the first and the last word are
neighbours. Each cycle has its own weights. Differences from the original: the paper has
``LayerNorm(ReLU(MultiAtt(h_i, ...)))``, with which ours stayed at chance on the demo corpus (the authors'
code, in fastNLP, also normalises before attention and has a leaky ReLU, but it normalises the neighbours,
too, and not the relay); tokens are normalised before positions are added, which are sinusoids (there,
learned); trained embeddings start small; and texts are pooled as in Eq. (15), with the relay as the
sentence node. The width is ``hidden_size``, rounded up to a multiple of the number of heads.

    N words of the batch, B texts, T words of the longest text, H width
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import leaky_relu, scaled_dot_product_attention

from fathomer.model.baselines.comparison import ComparisonModel, padded
from fathomer.model.baselines.transformer import start_small, whole_heads
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_texts, pool_words
from fathomer.model.positions import sinusoids

HEADS = 4
CYCLES = 4


class Attention(nn.Module):
    """Multi-head attention from one normalised node to several, then LeakyReLU."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)
        self.output = nn.Linear(size, size)
        self.norm = nn.LayerNorm(size)

    def keys_and_values(self, nodes: Float[Tensor, "rows H"]) -> Float[Tensor, "rows 2 H"]:
        """Return the keys and values of nodes, once for all that attend to them."""
        return torch.stack([self.key(nodes), self.value(nodes)], 1)

    def forward(
        self,
        nodes: Float[Tensor, "rows H"],
        context: Float[Tensor, "rows places 2 H"],
        mask: Bool[Tensor, "rows places"] | None = None,
    ) -> Float[Tensor, "rows H"]:
        """Return the next states; ``mask`` is false where the context is padding."""
        rows, places, _, size = context.shape
        query = self.query(self.norm(nodes)).view(rows, HEADS, 1, size // HEADS)
        heads = context.view(rows, places, 2, HEADS, size // HEADS)
        key, value = heads.permute(2, 0, 3, 1, 4)  # rows heads places size
        mask = None if mask is None else mask[:, None, None]
        found = scaled_dot_product_attention(query, key, value, attn_mask=mask).flatten(1)
        states: Tensor = leaky_relu(self.output(found))
        return states


class Cycle(nn.Module):
    """An update of all satellites, then of the relay of each text."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.satellite = Attention(size)
        self.relay = Attention(size)

    def forward(
        self,
        h: Float[Tensor, "N H"],
        e: Float[Tensor, "N H"],
        s: Float[Tensor, "B H"],
        ring: tuple[Tensor, Tensor],
        batch: WordBatch,
    ) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Return the next states of satellites and relays."""
        of_h, of_e, of_s = map(self.satellite.keys_and_values, (h, e, s))
        left, right = ring
        context = torch.stack([of_h[left], of_h, of_h[right], of_e, of_s[batch.text_of]], 1)
        h = self.satellite(h, context)
        table, mask = padded(self.relay.keys_and_values(h).flatten(1), batch)  # B T 2*H
        of_s = self.relay.keys_and_values(s)[:, None]  # B 1 2 H
        context = torch.cat([of_s, table.view(*table.shape[:2], 2, -1)], 1)
        mask = torch.cat([mask.new_ones(batch.num_texts, 1), mask], 1)
        return h, self.relay(s, context, mask)


class StarTransformer(ComparisonModel):
    """Attention of each word to its neighbours and to one node for the whole text."""

    def build(self, token_size: int) -> int:
        """Create the cycles."""
        start_small(self.embedding)
        self.size = whole_heads(self.config.hidden_size, HEADS)
        self.input = nn.Linear(token_size, self.size)
        self.input_norm = nn.LayerNorm(self.size)
        self.cycles = nn.ModuleList(Cycle(self.size) for _ in range(CYCLES))
        return 3 * self.size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum and mean over the satellites of each text, and its relay."""
        positions = sinusoids(batch.positions.to(tokens.dtype), self.size)
        e = h = self.hidden_dropout(self.input_norm(self.input(tokens)) + positions)
        s = pool_words(h, batch)[:, self.size :]  # the mean
        ring = ring_neighbours(batch)
        for cycle in self.cycles:
            h, s = cycle(h, e, s, ring, batch)
        empty = (batch.lengths == 0).to(s.device)[:, None]
        return pool_texts(h, s.masked_fill(empty, 0.0), batch)  # zeros for an empty text


def ring_neighbours(batch: WordBatch) -> tuple[Tensor, Tensor]:
    """Return the left and right neighbour of each word; the last word of a text precedes its first."""
    lengths = batch.word_counts[batch.text_of]
    start = torch.arange(batch.num_words, device=lengths.device) - batch.positions
    return start + (batch.positions - 1) % lengths, start + (batch.positions + 1) % lengths
