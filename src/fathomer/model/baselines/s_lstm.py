"""The sentence-state LSTM (Zhang, Liu and Song, 2018): "S-LSTM" of the paper's Tables 2 and 3.

Its transitions are Eq. (2) and (3), those of our network. Every word takes ``max_depth`` steps, and
there is neither a BiLSTM nor a depth embedding. Differences from Zhang et al.: the initial states
are a linear map of the tokens (there, one vector for all words), and texts are pooled as in Eq. (15).

    N words of the batch, B texts
"""

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch, sort_by_depth
from fathomer.model.model import SLSTM, pool_texts
from fathomer.model.products import SharedWeight


class SentenceStateLSTM(ComparisonModel):
    """S-LSTM in which all words take the same number of steps."""

    def build(self, token_size: int) -> int:
        """Build the transitions."""
        self.slstm = SLSTM(token_size, token_size, self.config.hidden_size)
        return 3 * self.config.hidden_size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum, mean and sentence node of each text after all steps."""
        depths = torch.full_like(batch.words, self.config.max_depth)
        graph = sort_by_depth(batch, depths)  # the sort is stable, so the order stays
        from_token = SharedWeight(self.slstm.token.weight).product(tokens)
        words, sentences = self.slstm(tokens, from_token, graph)
        return pool_texts(words, sentences, batch)
