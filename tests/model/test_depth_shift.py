"""Shifting the average depth of a network."""

import pytest
import torch

from fathomer.model.depth_shift import shift_depths
from fathomer.model.fast import fast_network
from tests.model.networks import RAGGED, packed, random_network


@torch.inference_mode()
@pytest.mark.parametrize("fast", [False, True], ids=["plain", "engine"])
def test_a_shifted_network_selects_the_depths_of_shifted_logits(fast):
    plain = random_network(depth="supervised")
    network = fast_network(plain) if fast else plain
    batch = packed(RAGGED)
    logits = plain(batch).depth_logits
    shifted = shift_depths(network, 0.7)(batch)
    expected = (logits + 0.7 * torch.arange(4)).argmax(1) + 1
    assert shifted.depths.tolist() == expected.tolist() != network(batch).depths.tolist()
    forced = plain(batch, depths=expected)
    torch.testing.assert_close(shifted.logits, forced.logits, rtol=0, atol=1e-5)


@torch.inference_mode()
def test_the_average_depth_rises_with_the_shift_from_the_first_to_the_last():
    network, batch = random_network(depth="supervised"), packed(RAGGED)
    means = [
        shift_depths(network, shift)(batch).depths.double().mean().item()
        for shift in (-100.0, -1.0, -0.3, 0.0, 0.3, 1.0, 100.0)
    ]
    assert means == sorted(means)
    assert (means[0], means[-1]) == (1, 4)


def test_the_network_itself_stays_as_it_is():
    network = random_network(depth="supervised")
    before = network.depth.scores.bias.clone()
    shifted = shift_depths(network, 2.0)
    assert torch.equal(network.depth.scores.bias, before)
    assert shifted.depth.scores.weight is network.depth.scores.weight
