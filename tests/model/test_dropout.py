"""Dropout is applied where the paper says: to word embeddings and hidden states, in training."""

import pytest
import torch
from torch import Tensor, nn

from tests.model.networks import embedded, packed, random_depths, random_network

TEXTS = [[4, 8, 15, 16], [-1, 3, 19, 7, 2]] * 40


def inputs_of(module: nn.Module, network: nn.Module) -> list[Tensor]:
    """Run the network once in training mode and return the tensors passed to a module."""
    seen: list[Tensor] = []
    module.register_forward_pre_hook(
        lambda _, given: seen.extend(part.detach() for part in given if isinstance(part, Tensor))
    )
    torch.manual_seed(0)
    batch = packed(TEXTS)
    network.train()(batch, depths=random_depths(batch))
    return seen


def test_word_dropout_is_applied_to_the_tokens():
    network = random_network(word_dropout=0.4, hidden_dropout=0.0)
    given = inputs_of(network.sequence, network)[0]
    kept = given != 0
    assert abs(kept.float().mean() - 0.6) < 0.05
    undropped = embedded(network, packed(TEXTS))
    torch.testing.assert_close(given[kept], undropped[kept] / 0.6)


def test_the_s_lstm_gets_the_same_tokens_as_the_sequence_module():
    network = random_network(word_dropout=0.4, hidden_dropout=0.0)
    batch = packed(TEXTS)
    order = torch.argsort(random_depths(batch), descending=True, stable=True)
    sequence, *_ = inputs_of(network.sequence, network)
    _, x = inputs_of(network.slstm, network)
    tokens, embedding = x.split([9, 7], 1)
    assert torch.equal(tokens, sequence[order])
    assert embedding.all()  # no dropout on the depth embedding


@pytest.mark.parametrize("name", ["depth", "output"])
def test_hidden_dropout_is_applied_to_the_features_and_the_pooled_states(name):
    dropped = random_network(word_dropout=0.0, hidden_dropout=0.3)
    undropped = random_network(word_dropout=0.0, hidden_dropout=0.0)
    found, full = (inputs_of(net.get_submodule(name), net)[0] for net in (dropped, undropped))
    kept = found[full != 0] != 0  # without the zeros of the ReLU
    assert abs(kept.float().mean() - 0.7) < 0.05


def test_training_without_dropout_at_forced_depths_equals_prediction():
    network = random_network(word_dropout=0.0, hidden_dropout=0.0)
    batch = packed(TEXTS)
    depths = random_depths(batch)
    predicted = network.eval()(batch, depths=depths)
    trained = network.train()(batch, depths=depths)
    for found, expected in zip(trained, predicted, strict=True):
        torch.testing.assert_close(found, expected)
