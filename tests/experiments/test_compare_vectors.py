"""The comparison of word vectors on one corpus."""

import pytest

from experiments.compare_vectors import Choice, compare, make_vectors, table
from fathomer.data.datasets import corpora_named
from fathomer.data.opening import open_dataset
from tests.tiny import TINY, tiny_examples


@pytest.fixture
def corpus(tmp_path, monkeypatch):
    """A corpus of short opinions in the place of amazon16/books."""
    [books] = corpora_named("amazon16/books")
    folder = tmp_path / "amazon16"
    folder.mkdir()
    lines = [f"{int(e.label == 'positive')}\t{e.text}\n" for e in tiny_examples()]
    for file in books.files:
        (folder / file.name).write_text("".join(lines), encoding="utf-8")
    unlabelled = "splendid hotel it was\n" * 4
    (folder / "books.task.unlabel").write_text(unlabelled, encoding="utf-8")
    return "amazon16/books"


def test_each_choice_is_trained_and_tested(corpus, tmp_path, monkeypatch):
    for package in ("fasttext", "wordllama", "transformers"):
        pytest.importorskip(package, reason="the extra vectors is not installed")
    from tests.text.encoders import write_encoder

    encoder = write_encoder(tmp_path / "encoder")
    monkeypatch.setattr("experiments.compare_vectors.find_encoder", lambda name: encoder)
    choices = make_vectors(corpus, tmp_path / "work", tmp_path)
    again = make_vectors(corpus, tmp_path / "work", tmp_path)
    assert choices == again
    small = [f"{name}={value}" for name, value in TINY.changed_values().items()]
    small += ["train.epochs=1", "text.vector_words=10"]
    dataset = open_dataset(corpus, data_dir=tmp_path)
    wanted = {name: choices[name] for name in ("none", "own texts + distilled + `wordllama`")}
    log = []
    found = list(compare(dataset, wanted, assignments=small, log=log.append))
    assert [choice.size for choice in found] == [8, 150 + 16 + 256]
    assert len(log) == 2


def test_the_table_is_markdown():
    assert (
        table([Choice("none", 100, 0.5, 0.25)]).splitlines()[-1] == "| none | 100 | 50.0% | 25.0% |"
    )
