"""Words that judge their neighbours.

Qiao et al., 2018, "A New Method of Region Embedding for Text Classification", its word-context form:

    p_{i,t} = K_{w_i,t} ⊙ e_{i+t}     t = -c .. c; K is w_i's own "local context unit"
    r_i     = max_t p_{i,t}           the region around word i
    y       = softmax(W Σ_i r_i + b)

A region has seven words (c = 3). ``hidden_size`` is the width of e and of a column of K (128
there), so that the units alone are 7 · hidden_size numbers for every known word. What differs: e_i
is a linear map of our word with its characters, which may be fixed, unknown words share one unit,
and places before and after the text take no part in the maximum. A word that no training text has,
known from the vectors alone, keeps its first unit, near zero, and so says almost nothing.

    N words of the batch, B texts, H hidden_size, V vocabulary
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch

RADIUS = 3


class ContextUnits(nn.Embedding):
    """Hold the units, which begin near zero: many of them are added up."""

    spread = 0.005
    """As that of the authors' units for 80,000 words; with one as wide as words have, a long text's
    logits are in the tens before training."""


class RegionEmbedding(ComparisonModel):
    """Add up the regions of a text, each seen with the eyes of the word in its middle."""

    def build(self, token_size: int) -> int:
        """Make the words' context units, and the map of their tokens."""
        size = self.config.hidden_size
        self.project = nn.Linear(token_size, size)
        self.units = ContextUnits(self.config.vocab_size, (2 * RADIUS + 1) * size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the sum of the regions."""
        words = self.project(tokens)
        units = self.units(batch.words.clamp(min=0)).unflatten(1, (2 * RADIUS + 1, -1))
        lengths = batch.lengths.to(words.device)[batch.text_of]
        regions = torch.full_like(words, -torch.inf)
        for shift in range(-RADIUS, RADIUS + 1):
            place = batch.positions + shift
            outside = (place < 0) | (place >= lengths)
            seen = units[:, shift + RADIUS] * torch.roll(words, -shift, 0)
            regions = torch.maximum(regions, seen.masked_fill(outside[:, None], -torch.inf))
        sums: Tensor = regions.new_zeros(batch.num_texts, words.shape[1])
        return sums.index_add(0, batch.text_of, regions)
