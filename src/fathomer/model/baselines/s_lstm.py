"""The sentence-state LSTM (Zhang, Liu and Song, 2018): "S-LSTM" of the paper's Tables 2 and 3.

Its transitions are Eq. (2) and (3), which our network takes over from it: every word takes
``max_depth`` steps, no BiLSTM reads the words beforehand, and no depth is embedded. The steps are
those of our network, not a copy. What differs from Zhang et al.: the initial states are a linear map
of the words' tokens (there, one vector for all words), and texts are pooled as in Eq. (15).

    N words of the batch, B texts, L max_depth
"""

import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.model.baselines.comparison import ComparisonModel
from fathomer.model.graph import WordBatch, sort_by_depth
from fathomer.model.pooling import pool_texts
from fathomer.model.slstm import SLSTM


class SentenceStateLSTM(ComparisonModel):
    """Let all words exchange information for the same number of steps."""

    def build(self, token_size: int) -> int:
        """Make the weights of the steps."""
        self.slstm = SLSTM(token_size, token_size, self.config.hidden_size)
        return 3 * self.config.hidden_size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Take all steps; give maximum, mean and sentence node of each text."""
        depths = torch.full_like(batch.words, self.config.max_depth)
        graph = sort_by_depth(batch, depths)  # they are all alike: the order stays
        places = torch.arange(batch.num_words, device=tokens.device)
        nothing = tokens.new_zeros(self.config.max_depth, 0)  # in place of the depth embedding
        words, sentences = self.slstm(tokens, tokens, places, nothing, depths, graph)
        return pool_texts(words, sentences, batch)
