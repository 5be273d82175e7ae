"""The region embedding."""

import math

import pytest
import torch

from fathomer.model import WordBatch
from fathomer.model.registry import build_model
from tests.model.baselines.small import LONG, assert_agrees, small_config, small_model, tokens_of


def oracle(network, text):
    """Compute the regions of one text in plain loops, and add them up."""
    words = [network.project(token) for token in tokens_of(network, text)]
    total = torch.zeros(6, dtype=torch.float64)
    for place, word in enumerate(text):
        unit = network.units.weight[max(0, word)].view(7, 6)
        weighted = [
            unit[shift + 3] * words[place + shift]
            for shift in range(-3, 4)
            if 0 <= place + shift < len(words)
        ]
        total = total + torch.stack(weighted).amax(0)
    return network.output(total)


def test_a_word_weights_its_neighbours_by_its_own_unit():
    network = small_model("region-embedding", hidden_size=6)
    assert_agrees(network, oracle, LONG)


@pytest.mark.parametrize("words", [10, 265])
def test_the_initial_loss_is_that_of_guessing_for_texts_of_any_length(words):
    torch.manual_seed(0)
    network = build_model(small_config("region-embedding", vocab_size=500, hidden_size=64)).eval()
    batch = WordBatch.from_ids(torch.randint(500, (30, words)).tolist())
    loss = torch.nn.functional.cross_entropy(network(batch).logits, torch.arange(30) % 3)
    assert loss.item() == pytest.approx(math.log(3), rel=0.1)
