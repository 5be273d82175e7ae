"""A pyramid of convolutions.

Johnson and Zhang, 2017, "Deep Pyramid Convolutional Neural Networks for Text Categorization":

    x_0 = W x_{i-1:i+1} + b                             region embedding of three words
    z   = x + W' σ(W σ(x) + b) + b'                     a block: pre-activation, with a shortcut
    x_k = z_{k-1}, the maximum of 3 places, every 2nd   each next block sees half as many places

Seven blocks make their fifteen weight layers; ``hidden_size`` is the number of feature maps (250
there). A text that has shrunk to one place stays at one. What differs: the regions are of our words
and are not trained beforehand on unlabelled text (their "unsupervised embeddings").

    N words of the batch, B texts, T places of the longest text
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import max_pool1d, pad

from fathomer.model.baselines.comparison import ComparisonModel, padded
from fathomer.model.graph import WordBatch

BLOCKS = 7


class DPCNN(ComparisonModel):
    """Read ever larger regions of a text at ever fewer places."""

    def build(self, token_size: int) -> int:
        """Make the region embedding and the blocks."""
        size = self.config.hidden_size
        self.region = nn.Conv1d(token_size, size, 3, padding=1)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, size, 3, padding=1) for _ in range(2 * BLOCKS)
        )
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Give the maximum over the places that are left."""
        table, here = padded(tokens, batch)
        here = here[:, None, :]
        places = self.region(table.transpose(1, 2)) * here  # B size T
        for block in range(BLOCKS):
            if block:
                places, here = halve(places, here)
            first, second = self.convolutions[2 * block : 2 * block + 2]
            inner = first(torch.relu(places)) * here  # what is no place says nothing to its side
            places = places + second(torch.relu(inner)) * here
        highest: Tensor = places.masked_fill(~here, -torch.inf).amax(2)
        return highest.masked_fill(~here[:, :, 0], 0.0)  # an empty text has no place at all


def halve(
    places: Float[Tensor, "B size T"], here: Bool[Tensor, "B 1 T"]
) -> tuple[Float[Tensor, "B size half"], Bool[Tensor, "B 1 half"]]:
    """Take the maximum of three places, at every second one that is there."""
    known = pad(places.masked_fill(~here, -torch.inf), (0, 2), value=-torch.inf)
    here = here[:, :, ::2]
    return max_pool1d(known, 3, stride=2).masked_fill(~here, 0.0), here
