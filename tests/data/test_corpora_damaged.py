"""Corpora that are missing, misspelled or damaged: one line that says what to do."""

import random

import pytest

from fathomer.data.corpora import CORPORA, open_source
from fathomer.errors import DataError, MissingFileError
from tests.data import small
from tests.data.small import message


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("trce", "trce: no such file or corpus; did you mean 'trec'?"),
        ("amazon16/book", "amazon16/book: no such file or corpus; did you mean 'amazon16/books'?"),
        ("dmo", "dmo: no such file or corpus; did you mean 'demo'?"),
    ],
)
def test_an_unknown_corpus_is_answered_with_the_nearest_name(tmp_path, name, problem, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert message(name, tmp_path) == problem


def test_a_file_is_found_without_its_suffix(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "trec.csv.bak").touch()
    (tmp_path / "test.csv").touch()
    assert message("test", tmp_path) == "test: no such file or corpus; did you mean 'test.csv'?"


def test_a_missing_corpus_says_which_file_to_put_where(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        open_source("mr", data_dir=tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/mr/rt-polarity.pos: not there; run fathomer data get mr, or put "
        f"rt-polaritydata.tar.gz (or rt-polarity.pos and rt-polarity.neg) into {tmp_path}/mr"
    )
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb/train/neg: not there; "
        "run fathomer data get imdb, or put aclImdb_v1.tar.gz into imdb"
    )
    assert "put train_5500.label and TREC_10.label into" in message("trec", tmp_path)


def test_a_missing_member_of_an_archive_is_named(tmp_path):
    small.write_archive(
        tmp_path / "ag_news" / "ag_news_csv.tgz", {"train.csv": small.AG["train.csv"]}
    )
    assert message("ag_news", tmp_path) == "ag_news/ag_news_csv.tgz: has no test.csv inside"
    files = {name: text for name, text in small.IMDB.items() if "test/neg" not in name}
    small.write_archive(tmp_path / "imdb" / "aclImdb_v1.tar.gz", files)
    assert message("imdb", tmp_path) == "imdb/aclImdb_v1.tar.gz: has no aclImdb/test/neg/ inside"


@pytest.mark.parametrize("kept", [0, 5, 60, -1500])
def test_a_damaged_archive_is_an_error_that_says_what_to_do(tmp_path, kept):
    path = tmp_path / "imdb" / "aclImdb_v1.tar.gz"
    noise = "".join(random.Random(0).choices("abcdefgh ", k=5000))
    small.write_archive(path, {**small.IMDB, "aclImdb/test/pos/1_9.txt": noise})
    path.write_bytes(path.read_bytes()[:kept])
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb_v1.tar.gz: a damaged or incomplete archive; "
        "delete it and run fathomer data get imdb"
    )


def test_a_damaged_gzip_file_is_an_error(tmp_path):
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    path = small.write_gz(tmp_path / "ag_news" / "train.csv.gz", small.AG["train.csv"])
    path.write_bytes(path.read_bytes()[:-9])
    problem = "ag_news/train.csv.gz: a damaged or incomplete gzip file"
    assert message("ag_news", tmp_path) == problem


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("trec", "train_5500.label", "DESC what\n", "line 1: 'COARSE:fine question' was expected"),
        ("trec", "train_5500.label", "NUM:x a\nODD:x b\n",
         "line 2: unknown label 'ODD'; trec has ABBR, DESC, ENTY, HUM, LOC, NUM"),
        ("amazon16/books", "books.task.train", "1 x\n",
         "line 1: a label, a tab and a text were expected"),
        ("ag_news", "train.csv", '"1","a","b"\n"2","b"\n',
         "line 2: 2 columns where 3 were expected"),
        ("ag_news", "train.csv", '"1","a","b\n\n',
         "line 1: not a csv row (unexpected end of data)"),
        ("yelp_full", "train.csv", '"1","a"\n"6","b"\n',
         "line 2: unknown label '6'; yelp_full has 1, 2, 3, 4, 5"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_named_with_its_line(tmp_path, name, file, content, problem):
    small.write_files(tmp_path / CORPORA[name].folder, {file: content})
    assert message(name, tmp_path) == f"{CORPORA[name].folder}/{file}, {problem}"


def test_an_empty_part_is_an_error(tmp_path):
    small.write_files(tmp_path / "trec", {**small.QUESTIONS, "TREC_10.label": "\n"})
    with pytest.raises(DataError, match="trec: the test part of trec is empty"):
        open_source("trec", data_dir=tmp_path)
