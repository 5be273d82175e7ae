"""The dense network computes the same function as the sparse one."""

import pytest
import torch

from benchmarks.dense import DensePadded
from tests.model.networks import RAGGED, packed, random_depths, random_network


@pytest.mark.parametrize("seed", range(3))
def test_the_dense_network_equals_the_sparse_one(seed):
    network, batch = random_network(seed=seed), packed(RAGGED)
    depths = random_depths(batch, seed=seed)
    with torch.inference_mode():
        found, wanted = DensePadded(network)(batch, depths), network(batch, depths=depths).logits
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    assert wanted.std() > 0.1


def test_the_gradients_of_the_dense_network_equal_those_of_the_sparse_one():
    network, batch = random_network(), packed(RAGGED)
    depths = random_depths(batch)
    gradients = []
    for classify in (DensePadded(network), lambda b, d: network(b, depths=d).logits):
        network.zero_grad()
        classify(batch, depths).square().sum().backward()
        gradients.append([p.grad for p in network.parameters() if p.grad is not None])
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)
