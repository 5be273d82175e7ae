"""AdaSent against slow plain loops over its equations."""

import pytest
import torch

from experiments.rivals.adasent import LEVELS
from tests.model.baselines.small import (
    RAGGED,
    assert_close,
    ragged_logits,
    small_model,
    tokens_of,
)


@pytest.mark.parametrize("levels", [LEVELS, 3])
def test_it_agrees_with_plain_loops(monkeypatch, levels):
    monkeypatch.setattr("experiments.rivals.adasent.LEVELS", levels)
    network = small_model("adasent")
    for text, found in zip(RAGGED, ragged_logits(network), strict=True):
        level = [torch.tanh(network.words(token)) for token in tokens_of(network, text)]
        means = [sum(level) / len(level) if level else torch.zeros(16, dtype=torch.float64)]
        while len(level) > 1 and len(means) < levels:
            level = [compose(network, level[j], level[j + 1]) for j in range(len(level) - 1)]
            means.append(sum(level) / len(level))
        weights = torch.cat([network.belief(mean) for mean in means]).softmax(0)
        by_level = [network.output(mean).softmax(0) for mean in means]
        assert_close(found.exp(), sum(w * p for w, p in zip(weights, by_level, strict=True)))


def compose(network, left, right):
    both = torch.cat([left, right])
    by_left, by_right, new = network.gate(both).softmax(0)
    return by_left * left + by_right * right + new * torch.tanh(network.compose(both))
