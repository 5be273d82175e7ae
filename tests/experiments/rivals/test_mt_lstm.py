"""The MT-LSTM: the published layout, and what it learns from translations."""

import numpy as np
import pytest
import safetensors.torch
import torch

from experiments.rivals import mt_lstm
from experiments.rivals.mt_lstm import (
    MTLSTM,
    START,
    Decoder,
    pretrain_on_translations,
    read_published,
)
from fathomer.errors import DataError, MissingFileError
from fathomer.model import WordBatch
from fathomer.model.initialise import initialise
from tests.model.baselines.small import assert_close


def published(word_size, *, seed=0):
    """Return weights in the published layout, as PyTorch's own LSTM."""
    torch.manual_seed(seed)
    return torch.nn.LSTM(word_size, word_size, 2, bidirectional=True, batch_first=True).double()


def test_published_weights_give_the_states_of_pytorchs_lstm():
    original, found = published(4), MTLSTM(4).double()
    found.load_published(original.state_dict())
    x = torch.randn(3 + 5, 4, dtype=torch.float64)
    batch = WordBatch.from_ids([[1, 2, 3], [], [4, 5, 6, 7, 8]])
    wanted = torch.cat([original(x[:3][None])[0][0], original(x[3:][None])[0][0]])
    assert_close(found(x, batch), wanted)


@pytest.mark.parametrize("prefix", ["", "rnn."])
def test_a_file_is_read_with_and_without_a_prefix(prefix, tmp_path):
    tensors = published(4).state_dict()
    path = tmp_path / "mt.safetensors"
    safetensors.torch.save_file({prefix + name: t for name, t in tensors.items()}, path)
    found = read_published(path)
    assert set(found) == set(tensors)
    assert torch.equal(found["weight_hh_l1_reverse"], tensors["weight_hh_l1_reverse"])


def test_weights_that_do_not_fit_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"expected \[20, 5\] for word vectors of 5 numbers"):
        MTLSTM(5).load_published(published(4).state_dict())
    with pytest.raises(ValueError, match="the tensor weight_ih_l0 is missing"):
        MTLSTM(4).load_published({})
    with pytest.raises(MissingFileError, match="no such file of MT-LSTM weights"):
        read_published(tmp_path / "none")
    (tmp_path / "bad").write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a safetensors file"):
        read_published(tmp_path / "bad")


def test_the_decoder_agrees_with_plain_loops():
    torch.manual_seed(0)
    decoder = Decoder(size=4, vocab_size=6, word_size=3).double()
    batch, m = WordBatch.from_ids([[1, 2], [3, 4, 5]]), torch.randn(5, 4, dtype=torch.float64)
    before = torch.tensor([[START, 3, 0], [START, 2, 5]])
    found = decoder(m, batch, before)
    for text, words in enumerate((m[:2], m[2:])):
        state = None
        for t in range(3):
            h, state = decoder.lstm(decoder.words(before[text, t])[None], state)
            weights = torch.softmax(words @ (decoder.attention.weight @ h[0]), 0)
            joined = torch.cat(
                [sum(a * word for a, word in zip(weights, words, strict=True)), h[0]]
            )
            logits = decoder.output(torch.tanh(decoder.joined(joined)))
            assert_close(found[text, t], logits)


def test_it_learns_to_translate_and_is_fixed_afterwards(monkeypatch):
    """A language in which every word has its own word, in the opposite order."""
    monkeypatch.setattr(mt_lstm, "EPOCHS", 20)
    monkeypatch.setattr(mt_lstm, "RATE", 0.02)
    random = np.random.default_rng(0)
    texts = [random.integers(1, 8, random.integers(2, 5)).tolist() for _ in range(150)]
    translations = [[f"w{word}" for word in reversed(text)] for text in texts]
    torch.manual_seed(0)
    encoder, words = MTLSTM(8), torch.nn.Embedding(8, 8)
    initialise(encoder)
    for weight in encoder.parameters():
        weight.requires_grad_(False)
    before = words.weight.detach().clone()
    loss = pretrain_on_translations(encoder, words, texts, translations, learn_words=False)
    assert loss < 0.3 * np.log(7)
    assert torch.equal(words.weight, before)
    assert not any(weight.requires_grad for weight in encoder.parameters())
