"""The comparison is honest: rivals compute what they should, at equal size, in their fast way."""

import pytest
import torch

from benchmarks.dense import (
    BiLSTMRival,
    DensePadded,
    TransformerRival,
    of_equal_size,
)
from benchmarks.speed import COMPLETE
from fathomer.model import DepthAdaptiveNetwork
from fathomer.model.interface import trainable_parameters
from tests.model.networks import RAGGED, packed, random_depths, random_network

TEXTS = [text for text in RAGGED if text]


def rival(kind):
    torch.manual_seed(0)
    return kind(random_network().embedding, size=kind.STEP, num_labels=3).eval()


@pytest.mark.parametrize("seed", range(3))
def test_the_dense_network_gives_the_sparse_ones_answers(seed):
    network, batch = random_network(seed=seed), packed(RAGGED)
    depths = random_depths(batch, seed=seed)
    with torch.inference_mode():
        found, wanted = DensePadded(network)(batch, depths), network(batch, depths=depths).logits
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-5)
    assert wanted.std() > 0.1


def test_the_dense_network_gives_the_sparse_ones_gradients():
    network, batch = random_network(), packed(RAGGED)
    depths = random_depths(batch)
    gradients = []
    for classify in (DensePadded(network), lambda b, d: network(b, depths=d).logits):
        network.zero_grad()
        classify(batch, depths).square().sum().backward()
        gradients.append([p.grad for p in network.parameters() if p.grad is not None])
    for found, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(found, wanted, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("kind", [BiLSTMRival, TransformerRival])
def test_padding_changes_no_answer_of_a_rival(kind):
    model = rival(kind)
    with torch.inference_mode():
        together = model(packed(TEXTS))
        alone = torch.cat([model(packed([text])) for text in TEXTS])
    torch.testing.assert_close(together, alone, rtol=0, atol=1e-5)
    assert together.std() > 0.01


def test_the_transformer_takes_its_fast_path(monkeypatch):
    taken = []
    fast = torch._transformer_encoder_layer_fwd

    def spy(states, *arguments, **named):
        taken.append(states.is_nested)
        return fast(states, *arguments, **named)

    monkeypatch.setattr(torch, "_transformer_encoder_layer_fwd", spy)
    model = rival(TransformerRival)
    with torch.inference_mode():
        model(packed(TEXTS))
        model(packed(TEXTS[:1]))
    layers = len(model.encoder.layers)
    assert taken == [True] * layers + [False] * layers


def test_rivals_have_as_many_parameters_as_the_network_outside_the_word_vectors():
    with torch.device("meta"):
        network = DepthAdaptiveNetwork(COMPLETE.model, spellings=torch.zeros(30_000, 8).byte())
    outside = sum(p.numel() for p in network.parameters()) - network.embedding.word.weight.numel()
    assert trainable_parameters(network) == outside == pytest.approx(7.5e6, rel=0.01)
    for kind in (BiLSTMRival, TransformerRival):

        def build(size, kind=kind):
            with torch.device("meta"):
                return kind(network.embedding, size=size, num_labels=2)

        found = trainable_parameters(of_equal_size(build, outside, step=kind.STEP))
        assert found == pytest.approx(outside, rel=0.05)


def test_the_size_is_the_nearest_one():
    def build(size):
        return torch.nn.Linear(size, 1, bias=False)

    assert [of_equal_size(build, n, step=4).in_features for n in (1, 5, 7, 8, 11)] == [
        4,
        4,
        8,
        8,
        12,
    ]
