"""The Multi-Scale Transformer against plain loops over its windows."""

import math

import pytest
import torch

from experiments.rivals.ms_trans import HEADS, LAYERS, heads_per_scale
from tests.model.baselines.small import (
    assert_agrees,
    pooled,
    small_model,
    transformer_input,
)
from tests.model.networks import random_texts


@pytest.mark.parametrize("layer", range(1, LAYERS + 1))
def test_every_head_has_a_scale_and_small_scales_come_first(layer):
    heads = heads_per_scale(layer)
    assert sum(heads) == HEADS
    assert heads == sorted(heads, reverse=True)


def attend(layer, x, scales):
    """Return the result of self-attention, word by word and head by head."""
    attention = layer.self_attn
    q, k, v = (attention.in_proj_weight @ x.T + attention.in_proj_bias[:, None]).T.chunk(3, 1)
    size = x.shape[1] // HEADS
    rows = []
    for j in range(len(x)):
        heads = []
        for head, scale in enumerate(scales):
            mine = slice(head * size, (head + 1) * size)
            near = range(max(0, j - scale), min(len(x), j + scale + 1))
            weights = torch.stack([q[j, mine] @ k[i, mine] / math.sqrt(size) for i in near])
            heads.append(sum(w * v[i, mine] for w, i in zip(weights.softmax(0), near, strict=True)))
        rows.append(attention.out_proj(torch.cat(heads)))
    return torch.stack(rows)


def run_plainly(network, text):
    """Compute the logits of one text."""
    n = len(text)
    x = transformer_input(network, text)
    for number, layer in enumerate(network.encoder.layers, start=1):
        counts = heads_per_scale(number)
        choices = [1, 3, max(1, n // 16), max(1, n // 8), max(1, n // 4)]
        scales = [scale for scale, count in zip(choices, counts, strict=True) for _ in range(count)]
        x = x + attend(layer, layer.norm1(x), scales)
        x = x + layer.linear2(torch.relu(layer.linear1(layer.norm2(x))))
    return network.output(pooled(network.encoder.norm(x)))


def test_it_agrees_with_plain_loops():
    network = small_model("ms-trans")
    texts = [[4], [7, 1, 3], *random_texts(seed=2, texts=2, longest=40)]
    with torch.no_grad():
        assert_agrees(network, run_plainly, [text for text in texts if text])
