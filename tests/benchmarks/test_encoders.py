"""The comparison is fair: encoders ignore padding, have equal size and take their fast path."""

import pytest
import torch

from benchmarks.encoders import TorchBiLSTM, TorchTransformer, build_with_parameters
from benchmarks.speed import COMPLETE
from fathomer.model import DepthAdaptiveNetwork
from fathomer.model.interface import trainable_parameters
from tests.model.networks import RAGGED, packed, random_network

TEXTS = [text for text in RAGGED if text]


def small(kind):
    torch.manual_seed(0)
    return kind(random_network().embedding, size=kind.STEP, num_labels=3).eval()


@pytest.mark.parametrize("kind", [TorchBiLSTM, TorchTransformer])
def test_padding_does_not_change_the_logits_of_an_encoder(kind):
    model = small(kind)
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
    model = small(TorchTransformer)
    with torch.inference_mode():
        model(packed(TEXTS))
        model(packed(TEXTS[:1]))
    layers = len(model.encoder.layers)
    assert taken == [True] * layers + [False] * layers


def test_encoders_have_as_many_parameters_as_the_network_without_word_vectors():
    with torch.device("meta"):
        network = DepthAdaptiveNetwork(COMPLETE.model, spellings=torch.zeros(30_000, 8).byte())
    outside = sum(p.numel() for p in network.parameters()) - network.embedding.word.weight.numel()
    assert trainable_parameters(network) == outside == pytest.approx(7.5e6, rel=0.01)
    for kind in (TorchBiLSTM, TorchTransformer):

        def build(size, kind=kind):
            with torch.device("meta"):
                return kind(network.embedding, size=size, num_labels=2)

        found = trainable_parameters(build_with_parameters(build, outside, step=kind.STEP))
        assert found == pytest.approx(outside, rel=0.05)


def test_the_size_with_the_nearest_number_of_parameters_is_built():
    def build(size):
        return torch.nn.Linear(size, 1, bias=False)

    assert [build_with_parameters(build, n, step=4).in_features for n in (1, 5, 7, 8, 11)] == [
        4,
        4,
        8,
        8,
        12,
    ]
