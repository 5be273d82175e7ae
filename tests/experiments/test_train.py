"""A rival is trained, saved, loaded and used like any other model."""

import json
import os
import subprocess
import sys

import pytest

import fathomer
from fathomer.data.demo import demo_corpus
from fathomer.errors import ConfigError
from fathomer.model import registry
from fathomer.model.registry import MODELS
from tests.tiny import TINY


@pytest.fixture
def trained(run_experiments, monkeypatch, tmp_path):
    """Train a small text-cnn on the command line; return its folder."""
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    (tmp_path / "tiny.toml").write_text(TINY.to_toml(), encoding="utf-8")
    code, out, err = run_experiments(
        "train", "demo", "--model", "text-cnn", "--out", "m", "--recipe", "tiny.toml", "--json"
    )
    assert code == 0, err
    command = "python -m experiments train demo --model text-cnn --out m --recipe tiny.toml --json"
    assert json.loads(out)["command"] == command
    return tmp_path / "m"


def in_new_process(code, folder):
    command = [sys.executable, *code]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env=os.environ)


def test_a_trained_rival_is_loaded_and_predicts(trained):
    texts = ["a lovely film", ""]
    answers = fathomer.load(trained).predict(texts)
    assert {answer.label for answer in answers} <= {"positive", "negative"}
    assert [len(answer.words) for answer in answers] == [3, 0]
    card = (trained / "README.md").read_text(encoding="utf-8")
    assert f"The model `text-cnn` ({MODELS['text-cnn'].paper})" in card


def test_in_a_clone_the_package_finds_a_rival_by_itself(trained):
    done = in_new_process(["-m", "fathomer", "evaluate", "m", "demo", "--json"], trained.parent)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["examples"] > 0


def test_without_a_clone_a_rival_is_one_line_that_names_them(monkeypatch, tmp_path):
    monkeypatch.setattr(registry, "CLONE", tmp_path)
    monkeypatch.delitem(MODELS, "text-cnn")
    with pytest.raises(ConfigError, match="unknown model 'text-cnn'") as caught:
        registry.find_model("text-cnn")
    assert "belong to experiments: in a clone, import experiments.rivals or run" in str(
        caught.value
    )
    assert "\n" not in str(caught.value)
