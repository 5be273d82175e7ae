"""SWEM-concat, pooled word embeddings (Shen et al., 2018): "SWEM-concat" of the paper's Table 3.

    v_i = ReLU(W x_i + b)                           their second way to refine fixed vectors
    z   = [max(v_1 .. v_n) ; mean(v_1 .. v_n)]      their (2) and (1)
    y   = softmax(MLP(z))                           one hidden layer of ``hidden_size``

Differences from the original: the tokens are ours (with characters), and their width after refinement
is ``hidden_size`` (there, 300). Word order is ignored.

    N words of the batch, B texts
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_words


class SwemConcat(ComparisonModel):
    """Maximum and mean of the words of a text, in any order."""

    def build(self, token_size: int) -> int:
        """Create the layers below and above the pooling."""
        size = self.config.hidden_size
        self.refine = nn.Linear(token_size, size)
        self.hidden = nn.Linear(2 * size, size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the hidden layer above maximum and mean."""
        pooled = pool_words(torch.relu(self.refine(tokens)), batch)
        return torch.relu(self.hidden(self.hidden_dropout(pooled)))
