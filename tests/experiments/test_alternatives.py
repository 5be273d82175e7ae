"""The comparison with what people would use instead."""

import pytest

from experiments.alternatives import FATHOMER, MINILM, STATIC, SYSTEMS, TFIDF, read_measured
from tests.tiny import TINY, tiny_examples, write_csv


@pytest.fixture
def encoder(tmp_path, monkeypatch):
    pytest.importorskip("transformers", reason="the extra vectors is not installed")
    from tests.text.encoders import write_encoder

    folder = write_encoder(tmp_path / "encoder")
    monkeypatch.setattr("experiments.alternatives.find_encoder", lambda name: folder)


def test_every_system_is_measured_once(run_experiments, encoder, monkeypatch, tmp_path):
    pytest.importorskip("wordllama", reason="the extra vectors is not installed")
    pytest.importorskip("fasttext", reason="the extra fasttext is not installed")
    monkeypatch.setattr("experiments.alternatives.TIMED_SECONDS", 0.05)
    write_csv(tmp_path / "d.csv", tiny_examples(200))
    small = TINY.updated({"train": {"epochs": 1}, "text": {"vector_words": 10}})
    options = [f"--set={name}={value}" for name, value in small.changed_values().items()]
    options += ["--out=o.jsonl", "--plot=o.png"]
    code, out, _ = run_experiments("alternatives", "d.csv", *options)
    assert code == 0
    assert all(name in out for name in SYSTEMS)
    found = read_measured(tmp_path / "o.jsonl")
    assert [each.system for each in found] == list(SYSTEMS)
    assert {each.examples for each in found} == {20}, "a fold is the test set"
    assert all(each.train_seconds > 0 and each.texts_per_second > 0 for each in found)
    accuracies = {each.system: each.accuracy for each in found}
    assert min(accuracies[TFIDF], accuracies[STATIC]) > 0.9
    sizes = {each.system: each.megabytes for each in found}
    assert sizes[TFIDF] < sizes[FATHOMER] < sizes[STATIC]
    assert sizes[MINILM] > 0.01
    assert (tmp_path / "o.png").read_bytes()[1:4] == b"PNG"
    assert run_experiments("alternatives", "d.csv", *options)[0] == 0
    assert read_measured(tmp_path / "o.jsonl") == found, "nothing is repeated"


def test_a_system_that_does_not_exist_is_one_line(run_experiments, tmp_path):
    code, _, err = run_experiments("alternatives", "demo", "--out=o.jsonl", "--system=bert")
    assert code == 2
    assert err.startswith("fathomer: unknown system 'bert'; choose from BiLSTM, Fathomer,")


def test_a_file_of_other_lines_is_refused(run_experiments, tmp_path):
    (tmp_path / "o.jsonl").write_text('{"corpus": "trec"}\n', encoding="utf-8")
    code, _, err = run_experiments("alternatives", "demo", "--out=o.jsonl", "--system=TF-IDF")
    assert (code, err) == (2, "fathomer: o.jsonl, line 1: not a result of this command\n")
