"""CNN over words (Kim, 2014): "Text-CNN" of the paper's Table 3.

    c_i = ReLU(w x_{i:i+h-1} + b)       Kim's (2): one feature of a window of h words
    c^  = max(c_1, ..., c_m)            Kim's max-over-time pooling: one number per feature map

Windows are h = 3, 4 and 5 words wide, and each width has ``hidden_size / 4`` feature maps: 100 at the
default of 400, as in the original. As in Kim's code, texts are padded with zeros on both sides, so
that texts shorter than a filter have windows too; windows without a word are ignored. Differences from
the original: the tokens are ours (with characters, one channel), and weight norms are not constrained.

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
    """Convolutions of three widths over words, with max-over-time pooling."""

    def build(self, token_size: int) -> int:
        """Create one convolution per width."""
        maps = max(1, self.config.hidden_size // 4)
        self.convolutions = new_convolutions(token_size, maps)
        return len(WIDTHS) * maps

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum of each feature map."""
        return max_over_time(self.convolutions, tokens, batch)


def new_convolutions(token_size: int, maps: int) -> nn.ModuleList:
    """Return one convolution per width."""
    return nn.ModuleList(nn.Conv1d(token_size, maps, width, padding=width - 1) for width in WIDTHS)


def max_over_time(
    convolutions: nn.ModuleList, tokens: Float[Tensor, "N token"], batch: WordBatch
) -> Float[Tensor, "B features"]:
    """Return the maximum of each feature map; zeros for an empty text."""
    table, mask = padded(tokens, batch)
    highest = []
    for width, convolution in zip(WIDTHS, convolutions, strict=True):
        responses = torch.relu(convolution(table.transpose(1, 2)))  # B maps T+width-1
        # Only windows that contain a word count.
        words = pad(mask[:, None, :].to(tokens.dtype), (width - 1, width - 1))
        highest.append((responses * max_pool1d(words, width, stride=1)).amax(2))
    return torch.cat(highest, 1)
