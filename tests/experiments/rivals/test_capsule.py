"""Capsule-B against slow plain loops over its equations."""

import math

import torch
from torch import nn

from experiments.rivals.capsule import NGRAMS, CapsuleLayer, squash
from fathomer.model import WordBatch
from fathomer.model.registry import build_model
from tests.model.baselines.small import assert_close, small_config, small_model, tokens_of


@torch.no_grad()
def route(layer, children):
    """Route the capsules of one group, given as a list of rows."""
    below, above, size, _ = layer.transform.shape
    votes = {
        (r, k, p): layer.transform[k, p] @ children[r][k]
        for r in range(len(children))
        for k in range(below)
        for p in range(above)
    }
    b = dict.fromkeys(votes, 0.0)
    parents = []
    for _ in range(3):
        sums = [torch.zeros(size, dtype=torch.float64) for _ in range(above)]
        for (r, k, p), vote in votes.items():
            total = 1 + sum(math.exp(b[r, k, other]) for other in range(above))
            present = children[r][k].norm() / len(children)
            sums[p] = sums[p] + present * math.exp(b[r, k, p]) / total * vote
        parents = [squash(each) for each in sums]
        b = {(r, k, p): b[r, k, p] + float(parents[p] @ vote) for (r, k, p), vote in votes.items()}
    return torch.stack(parents)


def test_routing_agrees_with_plain_loops():
    layer = CapsuleLayer(3, 4).double()
    nn.init.normal_(layer.transform)
    capsules = torch.randn(5, 3, 8, dtype=torch.float64)
    found = layer(capsules, torch.tensor([0, 0, 2, 2, 2]), 3)
    assert_close(found[0], route(layer, capsules[:2]))
    assert not found[1].any()
    assert_close(found[2], route(layer, capsules[2:]))


def first_gradient(words):
    """Return the gradient norm of an untrained model on texts of ``words`` words."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 500, "word_size": 100, "hidden_size": 64}
    network = build_model(small_config("capsule-b", **sizes)).eval()
    batch = WordBatch.from_ids(torch.randint(500, (6, words)).tolist())
    nn.functional.cross_entropy(network(batch).logits, torch.arange(6) % 3).backward()
    return nn.utils.get_total_norm(p.grad for p in network.parameters())


def test_long_texts_have_gradients_from_the_first_step():
    assert first_gradient(words=265) > first_gradient(words=10) / 10


def test_n_grams_do_not_cross_texts():
    network = small_model("capsule-b")
    text = [3, 9, 4]
    tokens = tokens_of(network, text)
    lengths = []
    for width, ngram, label in zip(NGRAMS, network.widths, network.output, strict=True):
        padding = torch.zeros(width, 9, dtype=torch.float64)
        row = torch.cat([padding, tokens, padding])
        primary = []
        for i in range(len(text)):
            start = width + i - (width - 1) // 2
            window = row[start : start + width].T
            maps = torch.relu(
                (ngram.convolution.weight * window).sum((1, 2)) + ngram.convolution.bias
            )
            primary.append(squash(ngram.primary(maps).view(8, 8)))
        none = torch.zeros(8, 8, dtype=torch.float64)
        around = [none, *primary, none]
        words = [route(ngram.layer, [torch.cat(around[i : i + 3])]) for i in range(len(text))]
        lengths.append(route(label, words).norm(dim=1)[:3])
    with torch.no_grad():
        found = network(WordBatch.from_ids([[5], text, [7, 7]])).logits[1]
    assert_close(found.exp(), sum(lengths) / 3)
