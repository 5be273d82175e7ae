"""Deep pyramid CNN (Johnson and Zhang, 2017): "DPCNN" of the paper's Table 3.

    x_0 = W x_{i-1:i+1} + b             region embedding of three words
    z   = x + W' σ(W σ(x) + b) + b'     a block: pre-activation, with a shortcut
    x_k = maxpool(z_{k-1})              width 3, stride 2: each block has half as many positions

With seven blocks there are fifteen weight layers, as in the original; ``hidden_size`` is the number
of feature maps (250 there). A text that has shrunk to one position stays at one. Differences from
the original: the regions are made of our tokens, and are not pretrained on unlabelled text.

    N words of the batch, B texts, T positions of the longest text
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.functional import max_pool1d, pad

from fathomer.model.baselines.comparison import ComparisonModel, padded
from fathomer.model.graph import WordBatch

BLOCKS = 7


class DPCNN(ComparisonModel):
    """Convolutions over ever larger regions at ever fewer positions."""

    def build(self, token_size: int) -> int:
        """Create the region embedding and the blocks."""
        size = self.config.hidden_size
        self.region = nn.Conv1d(token_size, size, 3, padding=1)
        self.convolutions = nn.ModuleList(
            nn.Conv1d(size, size, 3, padding=1) for _ in range(2 * BLOCKS)
        )
        return size

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the maximum over the positions that are left."""
        table, mask = padded(tokens, batch)
        mask = mask[:, None, :]
        states = self.region(table.transpose(1, 2)) * mask  # B size T
        for block in range(BLOCKS):
            if block:
                states, mask = halve(states, mask)
            first, second = self.convolutions[2 * block : 2 * block + 2]
            inner = first(torch.relu(states)) * mask  # padding must not reach its neighbours
            states = states + second(torch.relu(inner)) * mask
        highest: Tensor = states.masked_fill(~mask, -torch.inf).amax(2)
        return highest.masked_fill(~mask[:, :, 0], 0.0)  # zeros for an empty text


def halve(
    states: Float[Tensor, "B size T"], mask: Bool[Tensor, "B 1 T"]
) -> tuple[Float[Tensor, "B size half"], Bool[Tensor, "B 1 half"]]:
    """Max-pool with width 3 and stride 2, ignoring padding."""
    known = pad(states.masked_fill(~mask, -torch.inf), (0, 2), value=-torch.inf)
    mask = mask[:, :, ::2]
    return max_pool1d(known, 3, stride=2).masked_fill(~mask, 0.0), mask
