"""Depth-adaptive mechanism (section 3.3): how many steps each word takes.

Differs from the paper in leaving out ``b_2`` of Eq. (6): it only takes part in the selection, which
passes no gradient, so that it would keep its initial value, zero, for ever.

    N words of the batch, L max_depth
"""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from fathomer.config import DepthSelection, ModelConfig
from fathomer.model.sequence import sinusoids


class DepthClassifier(nn.Module):
    """Score the depths 1..L of each word, and embed the depth that was selected."""

    sinusoidal: Tensor

    def __init__(self, config: ModelConfig, feature_size: int) -> None:
        super().__init__()
        self.inner = nn.Linear(feature_size, config.depth_size)  # W_1, b_1
        self.scores = nn.Linear(config.depth_size, config.max_depth, bias=False)  # W_2
        depths = torch.arange(1, config.max_depth + 1).float()
        self.register_buffer("sinusoidal", sinusoids(depths, config.depth_size), persistent=False)

    def forward(
        self, features: Float[Tensor, "N feature"]
    ) -> tuple[Float[Tensor, "N inner"], Float[Tensor, "N L"]]:
        """Give the inner vector and the logits of the depths, Eq. (6)."""
        inner = torch.relu(self.inner(features))
        return inner, self.scores(inner)

    def embedding(self) -> Float[Tensor, "L inner"]:
        """Give the depth embedding: W_2's columns plus a sinusoid of the depth, Eq. (12)."""
        return self.scores.weight + self.sinusoidal


def select_depths(
    logits: Float[Tensor, "N L"], *, how: DepthSelection, sample: bool
) -> Int[Tensor, " N"]:
    """Select a depth in 1..L for each word; class ``j = 0..L-1`` means ``j + 1`` steps.

    ``sample`` adds Gumbel noise where ``how`` is ``"gumbel"``. The temperature of Eq. (10) tends to
    zero, where Eq. (11) is one-hot: the selection is the argmax, whatever positive number divides.
    """
    logits = logits.detach()
    if how == "full":
        return torch.full_like(logits[:, 0], logits.shape[1], dtype=torch.long)
    if how == "soft":
        classes = torch.arange(logits.shape[1], device=logits.device, dtype=logits.dtype)
        expected = (logits.softmax(1) * classes).sum(1)
        # In low precision the expectation may round beyond the last class.
        return expected.floor().long().clamp(0, logits.shape[1] - 1) + 1  # Eq. (9)
    if how == "gumbel" and sample:
        logits = logits - torch.empty_like(logits).exponential_().log()  # Eq. (10)
    return logits.argmax(1) + 1  # Eq. (8), (11)
