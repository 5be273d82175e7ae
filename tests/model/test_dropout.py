"""Dropout is applied where the paper says: to word embeddings and hidden states, in training."""

import pytest
import torch
from torch import Tensor, nn

from fathomer.model import WordBatch
from tests.model.baselines.small import small_model
from tests.model.networks import embedded, packed, random_depths, random_network

TEXTS = [[4, 8, 15, 16], [-1, 3, 19, 7, 2]] * 40
MANY_WORDS = [[*range(200)], [*range(100, 400)], [7, 7, 7], [*range(399, -1, -3)]]


def inputs_of(
    module: nn.Module, network: nn.Module, batch: WordBatch | None = None
) -> list[Tensor]:
    """Run the network once in training mode and return the tensors passed to a module."""
    seen: list[Tensor] = []
    hook = module.register_forward_pre_hook(
        lambda _, given: seen.extend(part.detach() for part in given if isinstance(part, Tensor))
    )
    torch.manual_seed(0)
    batch = packed(TEXTS) if batch is None else batch
    depths = random_depths(batch) if network.knows_depth else None
    network.train()(batch, depths=depths)
    hook.remove()
    return seen


def first_rows(batch: WordBatch) -> Tensor:
    """Return, for each word, the row where the same word occurs first."""
    words = batch.words.tolist()
    return torch.tensor([words.index(word) for word in words])


def assert_dropped(given: Tensor, undropped: Tensor, batch: WordBatch, *, rate: float) -> None:
    """Check that each distinct word lost numbers of its own, the same wherever it occurs."""
    assert torch.equal(given, given[first_rows(batch)])
    once = torch.unique(first_rows(batch))
    kept = given[once] != 0
    assert abs(kept.float().mean() - (1 - rate)) < 0.05
    assert (kept.float().mean(0) - (1 - rate)).abs().max() < 0.15  # whole columns are not dropped
    assert (~kept).all(1).float().mean() < 0.05  # nor whole words
    torch.testing.assert_close(given[once][kept], undropped[once][kept] / (1 - rate))


def test_word_dropout_is_applied_to_the_tokens_of_distinct_words():
    network = random_network(word_dropout=0.4, hidden_dropout=0.0, vocab_size=400)
    batch = WordBatch.from_ids(MANY_WORDS)
    undropped = embedded(network, batch)
    given = inputs_of(network.sequence, network, batch)[0]
    assert_dropped(given, undropped, batch, rate=0.4)


def test_every_batch_drops_other_numbers_of_a_word():
    embedding = random_network(word_dropout=0.4).embedding.train()
    torch.manual_seed(0)
    one, other = (embedding(packed(TEXTS)) != 0 for _ in range(2))
    assert not torch.equal(one, other)


def test_unknown_words_drop_numbers_of_their_own():
    """They share a word vector but not the numbers that it loses."""
    embedding = random_network(word_dropout=0.4, word_size=50).embedding.train()
    torch.manual_seed(0)
    one, other, again = embedding(packed([[-1, -2, -1]]))[:, :50]
    assert torch.equal(one, again)
    assert not torch.equal(one, other)


def test_u_x_of_the_s_lstm_is_computed_from_the_tokens_of_the_sequence_module():
    """These are the dropped tokens; there is no dropout on the depth embedding."""
    network = random_network(word_dropout=0.4, hidden_dropout=0.0)
    batch = packed(TEXTS)
    depths = random_depths(batch)
    order = torch.argsort(depths, descending=True, stable=True)
    sequence, *_ = inputs_of(network.sequence, network)
    _, from_token = inputs_of(network.slstm, network)
    x = torch.cat([sequence, network.depth.embedding()[depths - 1]], 1)  # Eq. (13)
    torch.testing.assert_close(from_token, network.slstm.token(x)[order], rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["bilstm", "s-lstm", "transformer"])
def test_the_comparison_models_drop_words_in_the_same_way(name, monkeypatch):
    network = small_model(name, word_dropout=0.4, hidden_dropout=0.0, vocab_size=400)
    batch = WordBatch.from_ids(MANY_WORDS)
    undropped, score, seen = embedded(network, batch), network.score, []
    monkeypatch.setattr(network, "score", lambda x, batch: seen.append(x) or score(x, batch))
    torch.manual_seed(0)
    network.train()(batch)
    assert_dropped(seen[0], undropped, batch, rate=0.4)


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


def test_whole_words_are_dropped_wherever_they_occur_in_the_batch():
    network = random_network(word_dropout=0.0, whole_word_dropout=0.4, hidden_dropout=0.0)
    texts = [[word % 20 for word in range(40)]] * 3
    batch = packed(texts)
    undropped = network.eval().embedding(batch)
    dropped = 0.0
    for seed in range(30):
        torch.manual_seed(seed)
        found = network.train().embedding(batch)
        gone = (found == 0).all(1)
        torch.testing.assert_close(found[~gone], undropped[~gone] / 0.6)
        assert torch.equal(gone[:20], gone[20:40])
        dropped += gone.float().mean() / 30
    assert abs(dropped - 0.4) < 0.05
