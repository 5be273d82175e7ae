"""Cross validation: the folds of corpora without a test part, and of a user's file."""

import random

import pytest

from fathomer.data.corpora import Fold, describe, open_source
from fathomer.errors import ConfigError
from tests.data import small
from tests.data.small import message, pairs


@pytest.fixture
def sentences(tmp_path):
    for label, count in (("pos", 57), ("neg", 46)):
        lines = {f"rt-polarity.{label}": "".join(f"{label} {n}\n" for n in range(count))}
        small.write_files(tmp_path / "mr", lines)
    return tmp_path


def test_the_folds_part_the_texts_and_keep_the_labels_apart_evenly(sentences):
    sources = [open_source("mr", data_dir=sentences, fold=k) for k in range(1, 11)]
    tested = [text for source in sources for _, text in pairs(source.test)]
    assert len(tested) == len(set(tested)) == 103
    for number, source in enumerate(sources, start=1):
        assert source.fold == Fold(number, 10)
        assert not set(pairs(source.train)) & set(pairs(source.test))
        assert len(source.train) + len(source.test) == 103
        assert len(source.test) in (10, 11)
        assert source.test.label_counts["positive"] in (5, 6)


def test_the_folds_are_the_same_whatever_the_state_of_random_numbers(sentences):
    first = pairs(open_source("mr", data_dir=sentences, fold=3).test)
    random.seed(7)
    assert pairs(open_source("mr", data_dir=sentences, fold=3).test) == first
    assert pairs(open_source("mr", data_dir=sentences, fold=4).test) != first


def test_without_a_fold_it_is_the_first_and_is_said_so(sentences):
    source = open_source("mr", data_dir=sentences)
    assert pairs(source.test) == pairs(open_source("mr", data_dir=sentences, fold=1).test)
    assert source.notes == ("mr: fold 1 of 10 is the test part; --fold chooses another",)
    assert describe(source)["fold"] == 1


def test_the_number_of_folds_is_a_setting(sentences):
    source = open_source("mr", data_dir=sentences, fold=5, folds=5)
    assert source.fold == Fold(5, 5)
    assert len(source.test) in (20, 21)


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"fold": 11}, "fold must be 1 to 10 for mr, not 11"),
        ({"fold": 0}, "fold must be 1 to 10 for mr, not 0"),
        ({"fold": 6, "folds": 5}, "fold must be 1 to 5 for mr, not 6"),
        ({"folds": 1}, "folds must be 2 to 103 for mr, not 1"),
        ({"folds": 104}, "folds must be 2 to 103 for mr, not 104"),
    ],
)
def test_a_fold_out_of_range_is_an_error(sentences, options, problem):
    assert message("mr", sentences, **options) == problem


def test_a_corpus_with_a_test_part_has_no_folds(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS)
    problem = "trec has a test part of its own; leave --fold and --folds out"
    assert message("trec", tmp_path, fold=1) == problem
    assert message("demo", tmp_path, fold=1).startswith("demo has a test part")


def test_a_file_may_be_cross_validated_too(tmp_path):
    path = tmp_path / "own.csv"
    path.write_text("text,label\n" + "good,1\nbad,0\n" * 6, encoding="utf-8")
    assert len(open_source(str(path), fold=2, folds=3).test) == 4
    with pytest.raises(ConfigError, match=r"own\.csv has no folds; say how many with --folds"):
        open_source(str(path), fold=2)
