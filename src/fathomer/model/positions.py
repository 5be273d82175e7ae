"""Sinusoids, Eq. (12), and the position embeddings that can replace the BiLSTM.

N words of the batch
"""

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.model.graph import WordBatch


class Positions(nn.Module):
    """What replaces the BiLSTM in rows 2-4 of Table 4: nothing, or position embeddings."""

    def __init__(self, config: ModelConfig, token_size: int) -> None:
        super().__init__()
        self.kind, self.size = config.sequence, token_size
        if self.kind == "learned":  # positions past the last one share it
            self.position = nn.Embedding(config.max_positions, token_size)

    def forward(self, x: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N token"]:
        """Return token plus position."""
        if self.kind == "sinusoidal":
            return sinusoids(batch.positions.to(x.dtype), self.size) + x
        if self.kind == "learned":
            positions = batch.positions.clamp(max=self.position.num_embeddings - 1)
            return self.position(positions) + x  # type: ignore[no-any-return]
        return x


def sinusoids(values: Float[Tensor, " n"], size: int) -> Float[Tensor, "n size"]:
    """Return interleaved sines and cosines, Eq. (12)."""
    pairs = torch.arange((size + 1) // 2, device=values.device)
    angles = values[:, None] * torch.exp(pairs * (-2 * math.log(10_000) / size))
    return torch.stack([angles.sin(), angles.cos()], 2).flatten(1)[:, :size]
