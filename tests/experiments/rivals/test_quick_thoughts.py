"""Quick thoughts: splitting into sentences, the loss, and what the encoders learn."""

import numpy as np
import pytest
import torch

from experiments.rivals import quick_thoughts
from experiments.rivals.quick_thoughts import (
    LONGEST,
    Channel,
    Sentences,
    channels_of,
    neighbour_loss,
    pretrain,
    read_channels,
    write_channels,
)
from fathomer.errors import DataError, MissingFileError

END = 1
IS_END = np.arange(30) == END


def split(texts):
    """Split texts given as lists of ids; return sentences as lists, with the text of each."""
    words = np.array([word for text in texts for word in text], dtype=np.int32)
    return Sentences.split(words, np.array([len(text) for text in texts], dtype=np.int64), IS_END)


def sentences_of(texts):
    found = split(texts)
    table, lengths = found.table(np.arange(len(found)))
    return [
        (int(text), row[:length].tolist())
        for text, row, length in zip(found.text_of, table, lengths, strict=True)
    ]


def test_texts_are_split_after_the_words_that_end_sentences():
    texts = [[5, 6, END, 7, END, END, 8], [], [END], [9, -3]]
    wanted = [(0, [5, 6, END]), (0, [7, END, END]), (0, [8]), (2, [END]), (3, [9, 0])]
    assert sentences_of(texts) == wanted
    assert sentences_of([]) == []


def test_a_sentence_without_end_is_split():
    lengths = [len(sentence) for _, sentence in sentences_of([[5] * (2 * LONGEST + 3)])]
    assert lengths == [LONGEST, LONGEST, 3]


def test_the_loss_agrees_with_plain_loops():
    generator = torch.Generator().manual_seed(0)
    f, g = torch.randn(2, 5, 3, generator=generator, dtype=torch.float64)
    texts = [0, 0, 0, 1, 2]  # sentences 3 and 4 have no neighbours
    losses = []
    for i in range(3):
        others = [j for j in range(5) if j != i]
        total = sum(torch.exp(f[i] @ g[j]) for j in others)
        near = [j for j in others if abs(i - j) == 1 and texts[i] == texts[j]]
        losses.append(-sum(torch.log(torch.exp(f[i] @ g[j]) / total) for j in near) / len(near))
    found = neighbour_loss(f, g, torch.tensor(texts))
    torch.testing.assert_close(found, sum(losses) / 3)


def test_encoders_learn_which_sentences_are_neighbours(monkeypatch):
    """The second sentence of a text repeats a word of the first; the loss of guessing is ln 99."""
    random = np.random.default_rng(0)
    topics = random.integers(5, 30, 400).tolist()
    texts = [[topic, int(random.integers(2, 5)), END, 4, topic, END] for topic in topics]
    torch.manual_seed(0)
    monkeypatch.setattr(quick_thoughts, "RATE", 0.02)
    loss = pretrain(Channel(30, 8, 16, fixed=False), split(texts), epochs=10, seed=0)
    assert loss < 0.5 * np.log(99)


def test_fixed_vectors_do_not_change():
    channel = Channel(30, 4, 4, fixed=True)
    before = channel.words.weight.clone()
    pretrain(channel, split([[5, END, 6, END]] * 3), epochs=1, seed=0)
    assert torch.equal(channel.words.weight, before)


def test_texts_of_one_sentence_are_nothing_to_learn_from():
    with pytest.raises(DataError, match="no text has several sentences"):
        pretrain(Channel(30, 4, 4, fixed=False), split([[5, END], [6]]), epochs=1, seed=0)


def test_encoders_are_read_as_they_were_written_for_other_words(tmp_path):
    channels = {name: Channel(3, 4, 6, fixed=name == "fixed") for name in ("trained", "fixed")}
    path = tmp_path / "qt.safetensors"
    write_channels(path, channels, ["<unk>", "good", "Film"], {"size": 6})
    found = read_channels(path, ["<unk>", "Film", "Good", "new"])
    rows = torch.tensor([0, 2, 1, 0])
    for name, channel in channels.items():
        assert torch.equal(found[name].words.weight, channel.words.weight[rows])
        assert torch.equal(found[name].g.gru.weight_hh_l0, channel.g.gru.weight_hh_l0)
    assert not found["fixed"].words.weight.requires_grad


def test_another_file_is_one_line(tmp_path):
    path = tmp_path / "qt.safetensors"
    with pytest.raises(MissingFileError, match="pretrain-qt makes one"):
        read_channels(path, [])
    path.write_bytes(b"nonsense")
    with pytest.raises(DataError, match="not a file of sentence encoders") as caught:
        read_channels(path, [])
    assert "\n" not in str(caught.value)


def test_weights_that_do_not_fit_are_refused():
    tensors = torch.nn.ModuleDict({"trained": Channel(3, 4, 6, fixed=False)}).state_dict()
    wrong = {**tensors, "trained.f.gru.weight_ih_l0": torch.zeros(9, 5)}
    with pytest.raises(ValueError, match=r"trained\.f\.gru\.weight_ih_l0 does not fit"):
        channels_of(wrong)
