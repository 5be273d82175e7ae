"""fastText, through its package where that is installed."""

import json
import math
import sys
from contextlib import suppress
from pathlib import Path
from random import Random

import numpy as np
import pytest
import safetensors.torch
import torch

from fathomer.artifact import Artifact
from fathomer.config import ModelConfig
from fathomer.data.examples import Example, Examples
from fathomer.errors import ArtifactError, ConfigError
from fathomer.files import sha256_of
from fathomer.model import WordBatch
from fathomer.model.baselines.fasttext_file import read_model_file
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


def test_a_trained_model_answers_without_the_package(artifact, tmp_path, monkeypatch):
    artifact.save(tmp_path / "model")
    expected = Predictor(artifact).predict(TEXTS)
    monkeypatch.setitem(sys.modules, "fasttext", None)
    assert Predictor(Artifact.load(tmp_path / "model")).predict(TEXTS) == expected


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Return an artifact, the file that the package wrote in its training, and the package's model."""
    package = pytest.importorskip("fasttext", reason="the package fasttext is not installed")
    kept = []
    with pytest.MonkeyPatch.context() as patch:
        name = "fathomer.model.baselines.fasttext.read_model_file"
        patch.setattr(name, lambda content: kept.append(content) or read_model_file(content))
        rare = RECIPE.updated({"text": {"min_count": 8}})  # some training words are unknown
        artifact = fit(tiny_examples(), rare).artifact
    file = tmp_path_factory.mktemp("fasttext") / "model.bin"
    file.write_bytes(kept[0])
    return artifact, kept[0], package.FastText._FastText(model_path=str(file))


def test_answers_are_those_of_the_package(trained):
    artifact, _, package = trained
    texts = [e.text for e in tiny_examples()] + TEXTS + ["=film", "book the was good bad unseen"]
    words = artifact.tokenizer.encode(texts, max_words=50)
    encoded = EncodedTexts.from_words(words, max_chars=artifact.recipe.text.max_chars)
    logits = artifact.network(WordBatch.from_packed(encoded.pack(range(len(texts))))).logits
    unknown = torch.from_numpy(encoded.unknown.copy())
    lines = list(artifact.network.lines(encoded, np.arange(len(encoded)), unknown))
    assert (encoded.ids < 0).any()
    for line, row in zip(lines, logits, strict=True):
        for probability, label in package.f.predict(line + "\n", -1, 0.0, "strict"):
            number = int(label.removeprefix("__label__"))
            assert row[number].item() == pytest.approx(math.log(probability), abs=1e-5)


def first_version(artifact, content, folder):
    """Write the model as the first version did: with the package's file as a tensor."""
    artifact.save(folder)
    blob = torch.frombuffer(bytearray(content), dtype=torch.uint8)
    tensors = {"spellings": artifact.network.spellings, "model": blob}
    (folder / "model.safetensors").write_bytes(safetensors.torch.save(tensors))
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    config["files"]["model.safetensors"] = sha256_of(folder / "model.safetensors")
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return folder


def test_a_model_of_the_first_version_answers_as_before(trained, tmp_path):
    artifact, content, _ = trained
    folder = first_version(artifact, content, tmp_path / "model")
    assert Predictor(Artifact.load(folder)).predict(TEXTS) == Predictor(artifact).predict(TEXTS)


def test_a_damaged_file_of_the_package_is_one_line(trained):
    """Given to the package, many of these end the process."""
    _, content, _ = trained
    header = 400
    for place in range(0, header, 4):
        damaged = bytearray(content)
        damaged[place : place + 4] = (0x7FFFFFF0).to_bytes(4, "little")
        with suppress(ValueError):
            read_model_file(bytes(damaged))
    for length in range(0, len(content), len(content) // 20):
        with pytest.raises(ValueError, match="not a readable fastText model"):
            read_model_file(content[:length])


def test_foreign_bytes_are_never_given_to_the_package(trained, tmp_path, monkeypatch):
    artifact, content, _ = trained
    damaged = content[:8] + (2**30).to_bytes(4, "little") + content[12:]
    folder = first_version(artifact, damaged, tmp_path / "model")
    monkeypatch.setitem(sys.modules, "fasttext", None)
    with pytest.raises(ArtifactError, match="not a readable fastText model"):
        Artifact.load(folder)


def test_the_folder_without_pickle_gives_the_same_answers(artifact, tmp_path):
    artifact.save(tmp_path / "model")
    loaded = Artifact.load(tmp_path / "model")
    for name, tensor in artifact.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], tensor)
    assert Predictor(loaded).predict(TEXTS) == Predictor(artifact).predict(TEXTS)
    good, _, bad = (answer.label for answer in Predictor(loaded).predict(TEXTS[:3]))
    assert (good, bad) == ("positive", "negative")


def test_company_changes_nothing_and_probabilities_are_those_of_all_labels(artifact):
    predictor = Predictor(artifact)
    together = predictor.predict(TEXTS)
    assert together == [predictor.predict([text])[0] for text in TEXTS]
    assert sum(together[0].probabilities.values()) == pytest.approx(1)
    assert set(together[0].probabilities) == {"positive", "negative"}


def test_the_same_seed_gives_the_same_model(artifact):
    again = fit(tiny_examples(), RECIPE).artifact
    assert torch.equal(again.network.embeddings, artifact.network.embeddings)


def test_texts_that_are_sorted_by_label_are_learned_as_well_as_others(artifact):
    """Every text has a word that tells its label three times out of four."""
    random, items = Random(0), []
    for label, other in (("a", "b"), ("b", "a")):
        for _ in range(3000):
            noise = [f"w{random.randrange(300)}" for _ in range(4)]
            sign = label if random.random() < 0.75 else other
            items.append(Example(" ".join([*noise, f"{sign}{random.randrange(30)}"]), label))
    unseen = items[::5]
    train = Examples([item for place, item in enumerate(items) if place % 5])
    answers = Predictor(fit(train, RECIPE).artifact).predict([item.text for item in unseen])
    right = [answer.label == item.label for answer, item in zip(answers, unseen, strict=True)]
    assert np.mean(right) > 0.65, "0.54 in the order of the file"


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
    assert sorted(found.network.seen.tolist()) == [0, 1]
    assert "=__label__7" in found.network.row_of


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
