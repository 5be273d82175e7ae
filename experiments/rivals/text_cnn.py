"""A convolution over words and the maximum over time.

Kim, 2014, "Convolutional Neural Networks for Sentence Classification":

    c_i = ReLU(w x_{i:i+h-1} + b)       Kim's (2): one feature of a window of h words
    c^  = max(c_1, ..., c_m)            Kim's "max over time": one number per feature map

Widths h of 3, 4 and 5 words, each with a quarter of ``hidden_size`` as feature maps: 100 with the
default of 400, which is Kim's number. As in Kim's own program a text is followed and preceded by
zeros, so that a text shorter than a filter has windows too; a window without any word has none.
What differs: the words are ours (with characters, one channel), and no norm of weights is bounded.

    N words of the batch, B texts, T words of the longest text
"""

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import max_pool1d, pad

from fathomer.model.baselines.comparison import ComparisonModel, padded
from fathomer.model.graph import WordBatch

WIDTHS = (3, 4, 5)


class TextCNN(ComparisonModel):
    """Look for short phrases anywhere in a text."""

    def build(self, token_size: int) -> int:
        """Make one convolution per width."""
        maps = max(1, self.config.hidden_size // 4)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(token_size, maps, width, padding=width - 1) for width in WIDTHS
        )
        return len(WIDTHS) * maps

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the strongest response of each feature map."""
        table, here = padded(tokens, batch)
        strongest = []
        for width, convolution in zip(WIDTHS, self.convolutions, strict=True):
            responses = torch.relu(convolution(table.transpose(1, 2)))  # B maps T+width-1
            # A window counts if there is a word in it.
            words = pad(here[:, None, :].to(tokens.dtype), (width - 1, width - 1))
            strongest.append((responses * max_pool1d(words, width, stride=1)).amax(2))
        return torch.cat(strongest, 1)
