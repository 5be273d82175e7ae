"""Saving and loading: a model folder is complete, checked on loading, and stays readable."""

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import torch

import fathomer
from fathomer.artifact import FORMAT, Artifact
from fathomer.errors import ArtifactError, DepthError, MissingFileError
from fathomer.files import sha256_of
from fathomer.text.tokenizer import Tokenizer
from tests.tiny import tiny_artifact

FIRST_VERSION = Path(__file__).parent / "first_version"
"""A model written by version 0.1.0, and its answers to ten texts."""

TEXTS = ["The film was lovely.", "The meal was poor!", "", "unheard-of wörds 😀"]


@pytest.fixture
def folder(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    return tmp_path / "model"


def change_config(folder, **changes):
    path = folder / "config.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(config | changes), encoding="utf-8")


def test_a_failed_write_leaves_the_old_model_intact(folder, monkeypatch):
    """If the disk is full before the last file is written, the old model still loads."""
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    synced = []

    def full(descriptor):
        synced.append(descriptor)
        if len(synced) == 4:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("fathomer.files.os.fsync", full)
    changed = replace(tiny_artifact(), temperature=3.0, metrics={})
    with pytest.raises(OSError, match="No space left"):
        changed.save(folder)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_loaded_model_answers_like_the_one_that_was_saved(folder):
    saved = fathomer.Predictor(tiny_artifact()).predict(TEXTS)
    assert fathomer.load(folder).predict(TEXTS) == saved


def test_a_loaded_model_is_the_saved_one(folder):
    loaded = Artifact.load(folder)
    saved = tiny_artifact()
    assert (loaded.recipe, loaded.labels) == (saved.recipe, saved.labels)
    assert loaded.metrics == saved.metrics
    assert loaded.tokenizer.vocabulary == saved.tokenizer.vocabulary
    for name, tensor in saved.network.state_dict().items():
        assert torch.equal(loaded.network.state_dict()[name], tensor)


def test_saving_twice_gives_the_same_bytes(folder, tmp_path):
    Artifact.load(folder).save(tmp_path / "again")
    for path in folder.iterdir():
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes(), path.name


def test_the_folder_holds_the_documented_files_and_no_pickle(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "README.md",
        "config.json",
        "metrics.json",
        "metrics.jsonl",
        "model.safetensors",
        "tokenizer.json",
    }
    for path in folder.iterdir():
        assert not path.read_bytes().startswith((b"\x80", b"PK")), "a pickle or a torch archive"


def test_the_model_card_names_labels_and_scores(folder):
    card = (folder / "README.md").read_text(encoding="utf-8")
    held_out = tiny_artifact().metrics["held_out"]
    assert "`negative`, `positive`" in card
    assert f"| held out | {held_out['examples']} | {held_out['accuracy']:.4f} |" in card


def test_loading_does_not_touch_the_global_random_state(folder):
    before = torch.get_rng_state()
    fathomer.load(folder)
    assert torch.equal(torch.get_rng_state(), before)


def test_a_missing_folder_is_refused(tmp_path):
    with pytest.raises(MissingFileError, match=re.escape(f"{tmp_path / 'no'}: no such folder")):
        fathomer.load(tmp_path / "no")


def test_a_folder_that_is_not_a_model_is_refused(tmp_path):
    message = f"{tmp_path}: not a Fathomer model (it has no config.json)"
    with pytest.raises(ArtifactError, match=re.escape(message)):
        fathomer.load(tmp_path)


@pytest.mark.parametrize("content", ['{"model_type": "bert"}', "{}", '{"model_type": "fathomer"}'])
def test_a_model_of_another_library_is_refused(tmp_path, content):
    (tmp_path / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ArtifactError, match="not a Fathomer model"):
        fathomer.load(tmp_path)


@pytest.mark.parametrize("content", ["", "{", "[]", "\x00", '"text"'])
def test_a_config_that_is_not_a_json_object_is_refused(folder, content):
    (folder / "config.json").write_text(content, encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"config\.json: not "):
        fathomer.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
def test_a_missing_file_is_named(folder, name):
    (folder / name).unlink()
    with pytest.raises(ArtifactError, match=f"{name} is missing"):
        fathomer.load(folder)


@pytest.mark.parametrize("name", ["model.safetensors", "tokenizer.json"])
@pytest.mark.parametrize("damage", [lambda b: b[:-1], lambda b: b[:9] + b"\x00" + b[10:]])
def test_a_truncated_or_changed_file_is_named(folder, name, damage):
    (folder / name).write_bytes(damage((folder / name).read_bytes()))
    with pytest.raises(ArtifactError, match=f"{name} is damaged"):
        fathomer.load(folder)


def test_a_file_without_a_checksum_is_refused(folder):
    change_config(folder, files={})
    with pytest.raises(ArtifactError, match=r"tokenizer\.json is damaged"):
        fathomer.load(folder)


@pytest.mark.parametrize("content", ["{}", "[]", "no json", '{"version": "9.0"}'])
def test_an_invalid_tokenizer_is_refused(folder, content):
    (folder / "tokenizer.json").write_text(content, encoding="utf-8")
    weights = sha256_of(folder / "model.safetensors")
    files = {"tokenizer.json": sha256_of(folder / "tokenizer.json"), "model.safetensors": weights}
    change_config(folder, files=files)
    with pytest.raises(ArtifactError, match=r"not a model that can be loaded \(not a tokenizer"):
        fathomer.load(folder)


def test_a_vocabulary_of_another_size_is_refused(folder):
    (folder / "tokenizer.json").write_text(Tokenizer.from_words(["a"]).to_json(), encoding="utf-8")
    names = ("tokenizer.json", "model.safetensors")
    change_config(folder, files={name: sha256_of(folder / name) for name in names})
    with pytest.raises(ArtifactError, match="2 words, but"):
        fathomer.load(folder)


def test_a_newer_format_is_refused(folder):
    change_config(folder, format=FORMAT + 1)
    with pytest.raises(ArtifactError, match=f"written in format {FORMAT + 1}"):
        fathomer.load(folder)


@pytest.mark.parametrize(
    "changes",
    [
        {"labels": None},
        {"recipe": {"model": {"hidden_size": 14, "vocab_size": 3, "num_labels": 2}}},
        {"recipe": {"model": {"sise": 3}}},
        {"recipe": 3},
        {"labels": ["a", "b", "c"]},
        {"labels": ["a", "a"]},
        {"labels": "ab"},
        {"labels": [1, 2]},
    ],
)
def test_settings_that_do_not_fit_the_weights_are_refused_in_one_line(folder, changes):
    change_config(folder, **changes)
    with pytest.raises(ArtifactError, match="not a model that can be loaded") as caught:
        fathomer.load(folder)
    assert "\n" not in str(caught.value)


def test_a_model_of_the_first_version_has_no_depth_budgets():
    predictor = fathomer.load(FIRST_VERSION / "model")
    with pytest.raises(DepthError, match="no table of depth budgets; train it with --target-depth"):
        predictor.predict(["a good film"], depth_budget=2)


def test_a_model_of_the_first_version_loads_and_answers_the_same():
    lines = (FIRST_VERSION / "answers.jsonl").read_text(encoding="utf-8").splitlines()
    expected = [json.loads(line) for line in lines]
    predictions = fathomer.load(FIRST_VERSION / "model").predict([e["text"] for e in expected])
    assert len({word.depth for found in predictions for word in found.words}) == 4
    for found, answer in zip(predictions, expected, strict=True):
        assert found.label == answer["label"]
        assert found.truncated == answer["truncated"]
        assert [word.to_dict() for word in found.words] == answer["words"]
        assert found.probabilities == pytest.approx(answer["probabilities"], abs=1e-6)
