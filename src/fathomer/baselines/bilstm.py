"""A stack of three bidirectional LSTMs: "3L-BiLSTMs" of the paper's Tables 2 and 3.

The layers are PyTorch's own (Hochreiter and Schmidhuber, 1997; Graves and Schmidhuber, 2005). The
vector of a text is the maximum and mean over its words, as in Eq. (15), which has the sentence node
beside them. An odd ``hidden_size`` is rounded down, so that the directions share it equally.
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from fathomer.baselines.comparison import ComparisonModel, packed, padded
from fathomer.nn.graph import WordBatch
from fathomer.nn.pooling import pool_words

LAYERS = 3


class StackedBiLSTM(ComparisonModel):
    """Read the words in both directions, three times over."""

    def build(self, token_size: int) -> int:
        """Make the stack."""
        self.lstm = nn.LSTM(
            token_size,
            self.config.hidden_size // 2,
            num_layers=LAYERS,
            bidirectional=True,
            batch_first=True,
            dropout=self.config.hidden_dropout,
        )
        return 4 * self.lstm.hidden_size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the maximum and mean over each text's states."""
        table, _ = padded(tokens, batch)
        lengths = batch.lengths.clamp(min=1)  # an empty text is read as a word of zeros, unseen
        sequences = pack_padded_sequence(table, lengths, batch_first=True, enforce_sorted=False)
        states, _ = pad_packed_sequence(self.lstm(sequences)[0], batch_first=True)
        return torch.relu(pool_words(packed(states, batch), batch))
