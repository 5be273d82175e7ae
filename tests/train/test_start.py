"""A fresh network can tell texts apart, and gradients reach every part of it."""

import numpy as np
import pytest
import torch

from fathomer.config import Recipe
from fathomer.data.examples import Example, Examples
from fathomer.model.graph import WordBatch
from fathomer.model.model import pool_texts
from fathomer.train import prepare as prepare_module
from fathomer.train.prepare import prepare

SIZE, WORDS, TEXTS = 60, 400, 40
RECIPE = Recipe().updated(
    {
        "model": {"hidden_size": 60, "max_depth": 3, "char_size": 20, "depth_size": 20},
        "text": {"vector_words": 0},
        "train": {"held_out": 0.0},
    }
)


@pytest.fixture
def vectors(tmp_path):
    """Vectors as they are published: a common component twice as long as the differences."""
    random = np.random.default_rng(0)
    common = random.normal(size=SIZE)
    matrix = 0.5 * random.normal(size=(WORDS, SIZE)) + common
    lines = (f"w{n} " + " ".join(f"{x:.4f}" for x in row) for n, row in enumerate(matrix))
    (tmp_path / "vectors.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path / "vectors.txt"


@pytest.fixture
def examples():
    """Texts with word frequencies as in natural language."""
    random = np.random.default_rng(1)
    frequencies = 1 / np.arange(1, WORDS + 1)
    frequencies /= frequencies.sum()
    texts = [
        " ".join(f"w{n}" for n in random.choice(WORDS, random.integers(20, 80), p=frequencies))
        for _ in range(TEXTS)
    ]
    return Examples([Example(text, "ab"[number % 2]) for number, text in enumerate(texts)])


def feature_spread(prepared):
    """Return how much the pooled features differ between texts, relative to their size."""
    torch.manual_seed(0)
    batch = WordBatch.from_packed(prepared.train.texts.pack(range(TEXTS)))
    with torch.no_grad():
        output = prepared.network.eval()(batch)
        features = pool_texts(output.words, output.sentences, batch)
    return float(features.std(0).norm() / features.mean(0).norm())


def test_the_features_of_texts_differ_at_the_start(examples, vectors):
    assert feature_spread(prepare(examples, RECIPE, vectors=vectors)) > 0.18


def test_without_centring_they_hardly_do(examples, vectors, monkeypatch):
    monkeypatch.setattr(
        prepare_module, "condition_vectors", lambda words, _, **options: (words, None)
    )
    assert feature_spread(prepare(examples, RECIPE, vectors=vectors)) < 0.15


def test_gradients_reach_every_part_at_the_start(examples, vectors):
    prepared = prepare(examples, RECIPE, vectors=vectors)
    batch = WordBatch.from_packed(prepared.train.texts.pack(range(TEXTS)))
    torch.manual_seed(0)
    logits = prepared.network.train()(batch).logits
    torch.nn.functional.cross_entropy(logits, torch.arange(TEXTS) % 2).backward()
    weights = dict(prepared.network.named_parameters())
    output = weights["output.weight"].grad.norm()
    for name in ("sequence.input", "depth.inner.weight", "slstm.token.weight"):
        assert weights[name].grad.norm() > 0.01 * output, name
