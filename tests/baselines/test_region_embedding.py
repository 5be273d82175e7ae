"""Regions seen with the eyes of their middle word."""

import torch

from .small import LONG, assert_agrees, small_model, tokens_of


def oracle(network, text):
    """Take the maximum of each region by hand, and add the regions up."""
    words = [network.project(token) for token in tokens_of(network, text)]
    total = torch.zeros(6, dtype=torch.float64)
    for place, word in enumerate(text):
        unit = network.units.weight[max(0, word)].view(7, 6)
        seen = [
            unit[shift + 3] * words[place + shift]
            for shift in range(-3, 4)
            if 0 <= place + shift < len(words)
        ]
        total = total + torch.stack(seen).amax(0)
    return network.output(total)


def test_a_word_weighs_its_neighbours_with_its_own_unit():
    network = small_model("region-embedding", hidden_size=6)
    assert_agrees(network, oracle, LONG)
