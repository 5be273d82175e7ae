"""Opening corpora and files by name, and the folds of a cross-validation."""

import random

import pytest

from fathomer.data.opening import Fold, held_out_fold, open_dataset, training_texts
from fathomer.data.reading import ReadOptions
from fathomer.errors import ConfigError
from tests.data import small
from tests.data.small import message, pairs


@pytest.fixture
def sentences(tmp_path):
    for label, count in (("pos", 57), ("neg", 46)):
        lines = {f"rt-polarity.{label}": "".join(f"{label} {n}\n" for n in range(count))}
        small.write_files(tmp_path / "mr", lines)
    return tmp_path


def test_every_text_is_in_one_fold_and_labels_are_spread_evenly(sentences):
    datasets = [open_dataset("mr", data_dir=sentences, fold=k) for k in range(1, 11)]
    tested = [text for dataset in datasets for _, text in pairs(dataset.test)]
    assert len(tested) == len(set(tested)) == 103
    for number, dataset in enumerate(datasets, start=1):
        assert dataset.fold == Fold(number, 10)
        assert not set(pairs(dataset.train)) & set(pairs(dataset.test))
        assert len(dataset.train) + len(dataset.test) == 103
        assert len(dataset.test) in (10, 11)
        assert dataset.test.label_counts["positive"] in (5, 6)


def test_the_folds_do_not_depend_on_the_random_state(sentences):
    first = pairs(open_dataset("mr", data_dir=sentences, fold=3).test)
    random.seed(7)
    assert pairs(open_dataset("mr", data_dir=sentences, fold=3).test) == first
    assert pairs(open_dataset("mr", data_dir=sentences, fold=4).test) != first


def test_the_first_fold_is_the_default_and_a_note_says_so(sentences):
    dataset = open_dataset("mr", data_dir=sentences)
    assert pairs(dataset.test) == pairs(open_dataset("mr", data_dir=sentences, fold=1).test)
    assert dataset.notes == ("mr: fold 1 of 10 is the test part; --fold chooses another",)
    assert dataset.describe()["fold"] == 1


def test_the_number_of_folds_is_a_setting(sentences):
    dataset = open_dataset("mr", data_dir=sentences, fold=5, folds=5)
    assert dataset.fold == Fold(5, 5)
    assert len(dataset.test) in (20, 21)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fold": 11}, "fold must be from 1 to 10 for mr, not 11"),
        ({"fold": 0}, "fold must be from 1 to 10 for mr, not 0"),
        ({"fold": 6, "folds": 5}, "fold must be from 1 to 5 for mr, not 6"),
        ({"folds": 1}, "folds must be from 2 to 103 for mr, not 1"),
        ({"folds": 104}, "folds must be from 2 to 103 for mr, not 104"),
    ],
)
def test_a_fold_out_of_range_is_an_error(sentences, options, problem):
    assert message("mr", sentences, **options) == problem


def test_a_corpus_with_a_test_set_has_no_folds(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS)
    problem = "trec has its own test set; remove --fold and --folds"
    assert message("trec", tmp_path, fold=1) == problem
    assert message("demo", tmp_path, fold=1).startswith("demo has its own test set")


def test_a_file_can_be_cross_validated(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,label\n" + "good,1\nbad,0\n" * 6, encoding="utf-8")
    assert len(open_dataset(str(path), fold=2, folds=3).test) == 4
    with pytest.raises(ConfigError, match=r"own\.csv has no folds; pass their number with --folds"):
        open_dataset(str(path), fold=2)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("trce", "trce: no such file or corpus; did you mean 'trec'?"),
        ("amazon16/book", "amazon16/book: no such file or corpus; did you mean 'amazon16/books'?"),
        ("dmo", "dmo: no such file or corpus; did you mean 'demo'?"),
    ],
)
def test_an_unknown_corpus_is_reported_with_the_nearest_name(tmp_path, name, problem, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message(name, tmp_path) == problem


def test_a_file_named_without_its_suffix_is_suggested(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trec.csv.bak").touch()
    (tmp_path / "test.csv").touch()
    assert message("test", tmp_path) == "test: no such file or corpus; did you mean 'test.csv'?"


def test_a_corpus_has_one_label_per_text(tmp_path):
    problem = "trec has one label per text; remove --multi-label"
    assert message("trec", tmp_path, options=ReadOptions(multi_label=True)) == problem


def test_the_training_texts_of_a_test_set_are_read_when_needed(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS)
    dataset = open_dataset("trec", data_dir=tmp_path, only="test")
    assert len(list(training_texts(dataset, data_dir=tmp_path))) == 2
    (tmp_path / "trec" / "train_5500.label").unlink()
    assert training_texts(dataset, data_dir=tmp_path) is None


def test_a_fold_that_a_downloaded_model_names_may_be_anything():
    trained = {"data_name": "mr", "fold": "x", "folds": [10]}
    assert held_out_fold(trained, "mr", None, None) == (None, None)
    assert held_out_fold({**trained, "fold": 3, "folds": 10}, "mr", None, None) == (3, 10)
    assert held_out_fold({**trained, "fold": 3}, "mr", 2, 5) == (2, 5)
