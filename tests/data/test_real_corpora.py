"""The real corpora contain what the table says; a test is skipped where its corpus is missing."""

import pytest

from fathomer.data.check import check_corpus
from fathomer.data.datasets import CORPORA
from fathomer.data.opening import open_dataset
from tests.data.real import real_data, real_folder

QUICK = [name for name in CORPORA if name not in ("imdb", "ag_news")]
SHARED = {  # distinct texts in both training and test set
    "trec": 10, "mr": 0, "subj": 0,
    "amazon16/magazines": 163, "amazon16/video": 66, "amazon16/camera": 64,
    "amazon16/software": 61, "amazon16/health": 29, "amazon16/sports": 26,
}  # fmt: skip
DAMAGED = {"amazon16/sports": {"empty": 1}, "amazon16/dvd": {"undecodable": 1}}
"""Texts that are empty, or that cannot be decoded."""


@pytest.mark.parametrize("name", QUICK)
def test_a_real_corpus_contains_what_its_entry_says(name):
    corpus = CORPORA[name]
    report = check_corpus(corpus, real_data(name))
    assert (report["train"], report["test"]) == corpus.sizes
    assert corpus.words in (None, (report["average_words"], report["longest_words"]))
    assert list(report["labels"]) == sorted(corpus.labels.values())
    assert report["checksum_ok"] is True
    if name in SHARED:
        assert report["duplicates_across_splits"] == SHARED[name]
    else:
        assert report["duplicates_across_splits"] <= 14
    for finding, texts in DAMAGED.get(name, {}).items():
        assert report[finding] == texts


def test_the_questions_of_trec_are_those_of_the_paper():
    report = check_corpus(CORPORA["trec"], real_data("trec"))
    assert {label: counts["train"] for label, counts in report["labels"].items()} == {
        "abbreviation": 86,
        "description": 1162,
        "entity": 1250,
        "human": 1223,
        "location": 835,
        "number": 896,
    }
    assert report["duplicates"] == {"train": 71, "test": 0}
    assert "5,452 training texts, but the paper says 5,952" in report["warnings"]


def test_the_folds_of_mr_have_a_tenth_of_each_label():
    dataset = open_dataset("mr", data_dir=real_data("mr"), fold=10)
    assert (len(dataset.train), len(dataset.test)) == (9_596, 1_066)
    assert dataset.test.label_counts == {"negative": 533, "positive": 533}


def test_the_real_imdb_is_streamed_from_its_archive():
    dataset = open_dataset("imdb", data_dir=real_data("imdb"))
    assert dataset.train.label_counts == {"negative": 12_500, "positive": 12_500}
    assert dataset.test.label_counts == {"negative": 12_500, "positive": 12_500}


def test_the_official_test_set_of_ag_news_is_read():
    folder = real_folder()
    if not (folder / "ag_news" / "test.csv").is_file():
        pytest.skip(f"the real ag_news is missing: {folder / 'ag_news'}")
    dataset = open_dataset("ag_news", data_dir=folder, only="test")
    assert dataset.test.label_counts == dict.fromkeys(
        ["Business", "Sci/Tech", "Sports", "World"], 1_900
    )
