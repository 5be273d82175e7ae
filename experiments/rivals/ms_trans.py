"""Multi-Scale Transformer (Guo et al., 2020): "MS-Trans." of the paper's Table 2.

A head of scale w attends from word j to the words j-w .. j+w only:

    head(x, w)_j = softmax(q_j K^T / sqrt(d)) V    K, V: of the words j-w .. j+w

The scales are 1, 3, n/16, n/8 and n/4 of a text of n words. Lower layers have more heads of small
scales: in layer l of L, scale k of K has ``N softmax(z)_k`` of the N heads, with

    z_K = 0    z_k = z_{k+1} + a/l    and z = 0 in layer L

Everything else is that of the model ``transformer``. Differences from the original: the numbers of heads
are rounded so that they add up to N, scales are at least 1, a is 0.5 for all corpora (there, tuned), and
texts are pooled as in Eq. (15), without the sentence node.

    B texts, T words of the longest text, heads: N
"""

import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from fathomer.model.baselines.comparison import packed
from fathomer.model.baselines.transformer import HEADS, LAYERS, Transformer
from fathomer.model.graph import WordBatch

FIXED_SCALES, SHARES = (1, 3), (16, 8, 4)
"""Scales in words, and scales as parts of a text: n/16, n/8, n/4."""
SCALES = len(FIXED_SCALES) + len(SHARES)
PREFERENCE = 0.5
"""How much lower layers prefer small scales: a."""


def heads_per_scale(layer: int) -> list[int]:
    """Return how many heads of a layer, counted from 1, have each scale.

    >>> heads_per_scale(1), heads_per_scale(6)
    ([3, 2, 1, 1, 1], [2, 2, 2, 1, 1])
    """
    step = 0.0 if layer == LAYERS else PREFERENCE / layer
    weights = [math.exp(step * (SCALES - 1 - k)) for k in range(SCALES)]
    exact = [HEADS * weight / sum(weights) for weight in weights]
    heads = [math.floor(number) for number in exact]
    remainders = sorted(range(SCALES), key=lambda k: heads[k] - exact[k])
    for k in remainders[: HEADS - sum(heads)]:
        heads[k] += 1
    return heads


def head_scales(layer: int, batch: WordBatch) -> Int[Tensor, "B heads"]:
    """Return the scale of each head of a layer for each text."""
    lengths = batch.word_counts
    fixed = [torch.full_like(lengths, scale) for scale in FIXED_SCALES]
    scales = torch.stack([*fixed, *(lengths // share for share in SHARES)], 1).clamp(min=1)
    heads = torch.tensor(heads_per_scale(layer), device=lengths.device)
    return scales.repeat_interleave(heads, 1)


class MultiScaleTransformer(Transformer):
    """A Transformer encoder whose heads see windows of different widths."""

    def encode(
        self, table: Float[Tensor, "B T H"], here: Bool[Tensor, "B T"], batch: WordBatch
    ) -> Float[Tensor, "N H"]:
        """Return the last states of the words."""
        place = torch.arange(table.shape[1], device=table.device)
        distance = (place[:, None] - place).abs()
        hidden = ~here[:, None, None, :] & (
            distance > 0
        )  # padding sees itself, and no word sees it
        for number, layer in enumerate(self.encoder.layers, start=1):
            outside = distance > head_scales(number, batch)[:, :, None, None]
            table = layer(table, src_mask=(outside | hidden).flatten(0, 1))
        assert self.encoder.norm is not None
        return packed(self.encoder.norm(table), batch)
