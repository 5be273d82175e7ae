"""fastText, through its package where that is installed."""

import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from fathomer.artifact import Artifact
from fathomer.config import ModelConfig
from fathomer.data.examples import Example, Examples
from fathomer.errors import ConfigError, MissingExtraError
from fathomer.model.registry import build_model
from fathomer.predictor import Predictor
from fathomer.text.encode import EncodedTexts
from fathomer.train.fit import fit
from tests.model.networks import SIZES, packed
from tests.tiny import TINY, tiny_examples

RECIPE = TINY.updated({"model": {"name": "fasttext"}})
TEXTS = [
    "The film was good.",
    "",
    "an awful book",
    "__label__0 </s> it was poor",
    "żółw \U0001f422",
]


@pytest.fixture(scope="module")
def artifact():
    pytest.importorskip("fasttext", reason="the package fasttext is not installed")
    return fit(tiny_examples(), RECIPE).artifact


def test_a_missing_package_is_one_line_that_says_what_to_do(monkeypatch, run):
    monkeypatch.setitem(sys.modules, "fasttext", None)
    code, out, err = run("train", "demo", "--model", "fasttext", "--out", "model")
    assert (code, out) == (2, "")
    wanted = "the model fasttext needs fasttext: pip install 'fathomer[fasttext]'"
    assert wanted in " ".join(err.split())
    assert "Traceback" not in err
    assert not Path("model").exists()


def test_a_trained_model_is_loaded_without_the_package_but_not_asked(
    artifact, tmp_path, monkeypatch
):
    artifact.save(tmp_path / "model")
    monkeypatch.setitem(sys.modules, "fasttext", None)
    predictor = Predictor(Artifact.load(tmp_path / "model"))
    with pytest.raises(MissingExtraError, match=r"pip install 'fathomer\[fasttext\]'$"):
        predictor.predict(["good"])


def test_the_folder_without_pickle_gives_the_same_answers(artifact, tmp_path):
    artifact.save(tmp_path / "model")
    loaded = Artifact.load(tmp_path / "model")
    assert loaded.network.model.dtype == torch.uint8
    assert torch.equal(loaded.network.model, artifact.network.model)
    assert Predictor(loaded).predict(TEXTS) == Predictor(artifact).predict(TEXTS)
    good, _, bad = (answer.label for answer in Predictor(loaded).predict(TEXTS[:3]))
    assert (good, bad) == ("positive", "negative")


def test_company_changes_nothing_and_probabilities_are_those_of_all_labels(artifact):
    predictor = Predictor(artifact)
    together = predictor.predict(TEXTS)
    assert together == [predictor.predict([text])[0] for text in TEXTS]
    first = artifact.network.probabilities("=The =film =was =good =.")
    assert sum(first.values()) == pytest.approx(1, abs=1e-3)
    assert set(first) == {0, 1}


def test_the_same_seed_gives_the_same_model(artifact):
    again = fit(tiny_examples(), RECIPE).artifact
    assert torch.equal(again.network.model, artifact.network.model)


def test_a_model_that_learns_anew_forgets_what_it_had_learned():
    pytest.importorskip("fasttext", reason="the package fasttext is not installed")
    network = build_model(ModelConfig(**{**SIZES, "name": "fasttext"}))
    texts = EncodedTexts(np.array([1, 2], np.int32), np.arange(3), np.zeros((0, 1), dtype=np.uint8))
    for first, second in ((0, 1), (1, 0)):
        network.learn(texts, np.array([first, second]), seed=0)
        assert network(packed([[1], [2]])).logits.argmax(1).tolist() == [first, second]


def test_what_fasttext_cannot_do_is_refused():
    with pytest.raises(ConfigError, match="does not support weights"):
        fit(tiny_examples(), RECIPE.updated({"train": {"class_weight": "balanced"}}))
    several = Examples([Example("good", "a|b"), Example("bad", "b")] * 10, multi_label=True)
    with pytest.raises(ConfigError, match="one label per text"):
        fit(several, RECIPE)


def test_a_word_that_looks_like_a_label_is_a_word(artifact):
    texts = [Example("__label__7 good", "positive"), Example("__label__7 bad", "negative")] * 10
    found = fit(Examples(texts), RECIPE).artifact
    assert found.network.loaded.get_labels() in (
        ["__label__0", "__label__1"],
        ["__label__1", "__label__0"],
    )


def test_texts_without_a_word_are_no_mistake():
    pytest.importorskip("fasttext", reason="the package fasttext is not installed")
    network = build_model(ModelConfig(**{**SIZES, "name": "fasttext"}))
    assert network(packed([[], [3]])).logits.shape == (2, 3)  # before it has learned anything
    empty = EncodedTexts(
        np.zeros(0, np.int32), np.zeros(5, np.int64), np.zeros((0, 1), dtype=np.uint8)
    )
    network.learn(empty, np.array([0, 1, 0, 0]), seed=0)
    logits = network(packed([[], [3]])).logits
    assert torch.isfinite(logits).all()
    assert logits[:, 2].tolist() == [-20.0, -20.0]  # no text has the third label
    assert network(packed([])).logits.shape == (0, 3)
