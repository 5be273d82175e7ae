"""Pooling of words and nothing else.

Shen et al., 2018, "Baseline Needs More Love: On Simple Word-Embedding-Based Models and Associated
Pooling Mechanisms":

    v_i = ReLU(W x_i + b)                           their second way to refine fixed vectors
    z   = [max(v_1 .. v_n) ; mean(v_1 .. v_n)]      their (2) and (1): SWEM-concat
    y   = softmax(MLP(z))                           one hidden layer of ``hidden_size``

The words are ours (with characters), and their width after refinement is ``hidden_size`` where the
authors have 300. Word order has no part in it.

    N words of the batch, B texts
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch
from fathomer.model.pooling import pool_words


class SwemConcat(ComparisonModel):
    """Pool the words of a text, in whatever order they stand."""

    def build(self, token_size: int) -> int:
        """Make the layer below the pooling and the one above it."""
        size = self.config.hidden_size
        self.refine = nn.Linear(token_size, size)
        self.hidden = nn.Linear(2 * size, size)
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the hidden layer above maximum and mean."""
        pooled = pool_words(torch.relu(self.refine(tokens)), batch)
        return torch.relu(self.hidden(self.hidden_dropout(pooled)))
