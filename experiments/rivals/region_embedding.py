"""Region embedding (Qiao et al., 2018): "Region-Emb" of the paper's Table 3, word-context form.

    p_{i,t} = K_{w_i,t} ⊙ e_{i+t}     t = -c .. c; K is the "local context unit" of word w_i
    r_i     = max_t p_{i,t}           the region around word i
    y       = softmax(W Σ_i r_i + b)

A region has seven words (c = 3). ``hidden_size`` is the width of e and of a column of K (128
there), so that every known word has 7 · hidden_size parameters. Differences from the original: e_i
is a linear map of our token, whose word vector may be fixed; unknown words share one unit; and
positions outside the text are not part of the maximum. A word that is in the vectors but in no
training text keeps its initial unit, which is near zero, and contributes almost nothing.

    N words of the batch, B texts, H hidden_size, V vocabulary
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch

RADIUS = 3


class ContextUnits(nn.Embedding):
    """The local context units, which start near zero because many of them are added up."""

    spread = 0.005
    """Standard deviation of the authors' units for 80,000 words. With that of word vectors, the logits
    of a long text would be in the tens before training."""


class RegionEmbedding(ComparisonModel):
    """A sum of regions, each weighted by the word in its middle."""

    def build(self, token_size: int) -> int:
        """Create the context units and the map of the tokens."""
        size = self.config.hidden_size
        self.project = nn.Linear(token_size, size)
        self.units = ContextUnits(self.config.vocab_size, (2 * RADIUS + 1) * size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the sum of the regions."""
        words = self.project(tokens)
        units = self.units(batch.words.clamp(min=0)).unflatten(1, (2 * RADIUS + 1, -1))
        lengths = batch.lengths.to(words.device)[batch.text_of]
        regions = torch.full_like(words, -torch.inf)
        for shift in range(-RADIUS, RADIUS + 1):
            position = batch.positions + shift
            outside = (position < 0) | (position >= lengths)
            weighted = units[:, shift + RADIUS] * torch.roll(words, -shift, 0)
            regions = torch.maximum(regions, weighted.masked_fill(outside[:, None], -torch.inf))
        sums: Tensor = regions.new_zeros(batch.num_texts, words.shape[1])
        return sums.index_add(0, batch.text_of, regions)
