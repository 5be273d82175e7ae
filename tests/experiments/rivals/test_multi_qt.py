"""Logistic regression on quick thoughts."""

import pytest
import torch

from experiments.rivals.multi_qt import FILE
from fathomer.config import Recipe
from fathomer.data.examples import Example, Examples
from fathomer.errors import DataError
from fathomer.model import WordBatch
from fathomer.model.interface import trainable_parameters
from fathomer.model.registry import build_model
from fathomer.predictor import Predictor
from fathomer.text.encode import spell
from fathomer.train.fit import fit
from tests.model.baselines.small import assert_close, small_config

WORDS = ["<unk>", ".", "good", "bad", "film", "we", "saw"]
SMALL = Recipe().updated(
    {
        "model": {"name": "multi-qt", "word_size": 8, "hidden_size": 16},
        "text": {"min_count": 1},
        "train": {"held_out": 0.0},
    }
)


def network(**settings):
    config = small_config("multi-qt", vocab_size=len(WORDS), **settings)
    spellings = torch.from_numpy(spell(WORDS, max_chars=10).copy())
    return build_model(config, spellings=spellings).double().eval()


def reviews(count):
    """Return reviews of two sentences whose words say the label."""
    for number in range(count):
        label = ("good", "bad")[number % 2]
        yield Example(f"we saw film {number % 7} . it was {label} .", label)


def test_a_text_is_the_mean_of_its_sentences_in_all_encoders():
    model = network(fixed_words=True)
    model.weight.copy_(torch.randn(model.weight.shape))
    found = model(WordBatch.from_ids([[5, 6, 4, 1, 4, 2, 1], []])).logits
    vectors = []
    for sentence in ([5, 6, 4, 1], [4, 2, 1]):
        parts = []
        for channel in (model.channels["trained"], model.channels["fixed"]):
            words = channel.words(torch.tensor([sentence]))
            for encoder in (channel.f, channel.g):
                states = encoder.gru(words)[0]
                forward, backward = states[0].chunk(2, 1)
                parts += [forward[-1], backward[0]]
        vectors.append(torch.cat(parts))
    assert_close(found[0], sum(vectors) / 2 @ model.weight + model.bias)
    assert_close(found[1], model.bias)


def test_there_are_encoders_over_given_vectors_only_if_vectors_are_given():
    assert list(network().channels) == ["trained"]
    assert network().word_vectors is None
    both = network(fixed_words=True)
    assert list(both.channels) == ["trained", "fixed"]
    assert both.word_vectors is both.channels["fixed"].words


@pytest.mark.parametrize("fixed", [False, True])
def test_it_has_as_many_parameters_as_its_formula(fixed):
    model = network(fixed_words=fixed)
    word, half, encoders = 5, 8, 4 if fixed else 2
    gru = 2 * (3 * half * (word + half) + 2 * 3 * half)
    assert trainable_parameters(model) == len(WORDS) * word + encoders * gru


def test_without_a_file_it_is_pretrained_on_the_training_texts(monkeypatch):
    monkeypatch.delenv(FILE, raising=False)
    examples = Examples(list(reviews(60)))
    artifact = fit(examples, SMALL).artifact
    assert Predictor(artifact).evaluate(examples).accuracy == 1
    assert artifact.network.channels["trained"].f.gru.bias_ih_l0.any()  # zeros at the start


def test_short_texts_need_a_file_and_the_error_says_how_to_make_it(monkeypatch):
    monkeypatch.delenv(FILE, raising=False)
    short = Examples([Example("good film", "good"), Example("bad film", "bad")] * 4)
    with pytest.raises(DataError, match="pretrain-qt TEXTS on longer texts and set FATHOMER_QT"):
        fit(short, SMALL)
