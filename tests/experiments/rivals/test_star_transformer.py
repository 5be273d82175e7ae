"""The Star-Transformer against slow plain loops over its equations."""

import math

import torch

from experiments.rivals.star_transformer import HEADS
from tests.model.baselines.small import (
    RAGGED,
    assert_close,
    pooled,
    positions,
    ragged_logits,
    small_model,
    tokens_of,
)


def attend(attention, node, context):
    """Attend from one vector to a list of vectors, head by head."""
    query = attention.query(attention.norm(node)).chunk(HEADS)
    keys = [attention.key(each).chunk(HEADS) for each in context]
    values = [attention.value(each).chunk(HEADS) for each in context]
    heads = []
    for head in range(HEADS):
        scores = [torch.exp(query[head] @ k[head] / math.sqrt(len(query[head]))) for k in keys]
        parts = [score / sum(scores) * v[head] for score, v in zip(scores, values, strict=True)]
        heads.append(sum(parts))
    found = attention.output(torch.cat(heads))
    return torch.where(found > 0, found, 0.01 * found)


def test_it_agrees_with_plain_loops():
    network = small_model("star-transformer")
    for text, found in zip(RAGGED, ragged_logits(network), strict=True):
        x = network.input_norm(network.input(tokens_of(network, text)))
        x = x + positions(len(text), network.size)
        e = h = list(x)
        s = sum(e, torch.zeros(network.size, dtype=torch.float64)) / max(1, len(e))
        for cycle in network.cycles if text else []:
            h = [
                attend(cycle.satellite, h[i], [h[i - 1], h[i], h[(i + 1) % len(h)], e[i], s])
                for i in range(len(h))
            ]
            s = attend(cycle.relay, s, [s, *h])
        assert_close(found, network.output(pooled(torch.stack(h) if h else x, s)))
