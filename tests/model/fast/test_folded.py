"""The network for prediction gives the answers of the network that was trained."""

import pytest
import torch

from fathomer.model import WordBatch
from fathomer.model.fast.folded import FEW_TEXTS, FoldedBiLSTM, folded
from tests.model.networks import RAGGED, UNKNOWN, packed, random_depths, random_network

TEXTS = {"one text": RAGGED[:1], "two texts": [[1, 2, 3], [4, 5]], "many texts": RAGGED}


@torch.inference_mode()
@pytest.mark.parametrize("texts", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("sequence", ["bilstm", "none", "sinusoidal"])
@pytest.mark.parametrize("depth_size", [2, 12], ids=["folded", "not folded"])
def test_folding_changes_nothing(texts, sequence, depth_size):
    network = random_network(sequence=sequence, depth_size=depth_size, hidden_size=12).eval()
    batch = packed(texts)
    depths = random_depths(batch)
    other = folded(network)
    for _ in range(2):  # when words are met for the first time, and again
        for expected, found in zip(
            network(batch, depths=depths), other(batch, depths=depths), strict=True
        ):
            torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)


@torch.inference_mode()
def test_words_that_are_met_again_pass_no_convolution():
    network = folded(random_network().eval())
    network(WordBatch.from_ids([[1, 2, 3]]))
    seen = []
    network.embedding.char.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    network(WordBatch.from_ids([[3, 1], [4]]))
    assert seen == [1, 0]  # the known word 4; no unknown one


@torch.inference_mode()
def test_unknown_words_are_spelled_by_the_batch_every_time():
    network = random_network().eval()
    other = folded(network)
    for spellings in (UNKNOWN, UNKNOWN.flip(0)):
        batch = WordBatch.from_ids([[-1, 1, -2]], unknown=spellings)
        torch.testing.assert_close(other(batch).logits, network(batch).logits)


def test_few_texts_are_read_by_torch_and_many_by_us(monkeypatch):
    network = folded(random_network().eval())
    assert isinstance(network.sequence, FoldedBiLSTM)
    called = []
    lstm = torch.lstm
    monkeypatch.setattr(torch, "lstm", lambda *a, **k: called.append(1) or lstm(*a, **k))
    with torch.inference_mode():
        network(WordBatch.from_ids([[1, 2]] * (FEW_TEXTS + 1)))
        assert not called
        network(WordBatch.from_ids([[1, 2]] * FEW_TEXTS))
        assert called


@torch.inference_mode()
def test_texts_without_any_word_are_answered():
    network = random_network().eval()
    for texts in ([], [[]], [[], []]):
        batch = WordBatch.from_ids(texts)
        torch.testing.assert_close(folded(network)(batch).logits, network(batch).logits)


def test_the_trained_network_stays_what_it_was():
    network = random_network().eval()
    names = [type(module).__name__ for module in network.modules()]
    folded(network)
    assert [type(module).__name__ for module in network.modules()] == names
