"""A rival is trained, saved, loaded and used like any other model."""

import json
import os
import subprocess
import sys

import pytest

import fathomer
from fathomer.data.demo import demo_corpus
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


@pytest.mark.parametrize("command", [["evaluate", "m", "demo"], ["explain", "m", "not bad"]])
def test_without_the_experiments_a_rival_is_one_line_that_names_them(trained, command):
    done = in_new_process(["-m", "fathomer", *command], trained.parent)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert "unknown model 'text-cnn'" in done.stderr
    assert "belong to experiments: in a clone, import experiments.rivals or run" in done.stderr
