"""The published formats, in plain files and in archives, intact and damaged."""

import random

import pytest

from fathomer.data.datasets import CORPORA
from fathomer.data.layouts import is_present
from fathomer.data.opening import open_dataset
from fathomer.errors import DataError, MissingFileError
from tests.data import small
from tests.data.small import message, pairs


def test_a_question_has_its_coarse_class_as_label(tmp_path):
    small.write_files(tmp_path / "trec", small.QUESTIONS, encoding="latin-1")
    dataset = open_dataset("trec", data_dir=tmp_path)
    assert pairs(dataset.train) == [
        ("description", "How does a café earn money ?"),
        ("number", "When did it open ?"),
    ]
    assert pairs(dataset.test) == [("number", "When did it open ?"), ("location", "Where is it ?")]
    assert dataset.notes == ()


@pytest.mark.parametrize("where", ["files", "archive", "gz"])
def test_mr_is_read_from_plain_files_compressed_files_or_the_archive(tmp_path, where):
    folder = tmp_path / "mr"
    if where == "archive":
        name, inside = "rt-polaritydata.tar.gz", "rt-polaritydata/"
        small.write_archive(folder / name, small.MR, inside=inside, encoding="cp1252")
    elif where == "files":
        small.write_files(folder, small.MR, encoding="cp1252")
    else:
        for name, content in small.MR.items():
            small.write_gz(folder / f"{name}.gz", content.encode("cp1252").decode("latin-1"))
    dataset = open_dataset("mr", data_dir=tmp_path, folds=2)
    found = sorted(pairs(dataset.train) + pairs(dataset.test))
    assert len(found) == 5
    if where != "gz":  # whose bytes are UTF-8, not the encoding of the corpus
        assert ("positive", "a naïve but charming tale – and short .") in found
        assert ("positive", "worth every minute …") in found


def test_plots_are_objective_and_quotes_subjective(tmp_path):
    small.write_archive(tmp_path / "subj" / "rotten_imdb.tar.gz", small.SUBJ)
    dataset = open_dataset("subj", data_dir=tmp_path, folds=2)
    assert dataset.train.label_counts == {"objective": 1, "subjective": 1}


def test_an_amazon_domain_may_contain_an_empty_text(tmp_path):
    small.write_files(tmp_path / "amazon16", small.BOOKS)
    dataset = open_dataset("amazon16/books", data_dir=tmp_path)
    assert pairs(dataset.train) == [
        ("positive", "a fine novel , the best of naïve stories"),
        ("negative", "dull"),
        ("positive", ""),
    ]


def test_an_undecodable_byte_does_not_stop_a_corpus(tmp_path):
    files = {**small.BOOKS, "books.task.train": "1\tclich\xef\xbf '' and na\xc3\xafve\n"}
    small.write_files(tmp_path / "amazon16", files, encoding="latin-1")
    [example] = open_dataset("amazon16/books", data_dir=tmp_path).train
    assert example.text == "clich\ufffd '' and naïve"


def test_imdb_is_streamed_from_its_archive(tmp_path):
    small.write_archive(tmp_path / "imdb" / "aclImdb_v1.tar.gz", small.IMDB)
    dataset = open_dataset("imdb", data_dir=tmp_path)
    assert pairs(dataset.train) == [
        ("positive", "A gem.<br /><br />Naïve, but a gem."),
        ("negative", "A bore."),
    ]
    assert pairs(dataset.test) == [("positive", "Lovely."), ("negative", "A bore.")]
    assert sorted(path.name for path in (tmp_path / "imdb").iterdir()) == ["aclImdb_v1.tar.gz"]


def test_imdb_is_also_read_from_its_unpacked_folder(tmp_path):
    small.write_files(tmp_path / "imdb", small.IMDB)
    dataset = open_dataset("imdb", data_dir=tmp_path)
    assert sorted(pairs(dataset.test)) == [("negative", "A bore."), ("positive", "Lovely.")]


@pytest.mark.parametrize("where", ["files", "ag_news_csv.tgz", "ag_news_csv.tar.gz"])
def test_ag_news_has_titles_quotes_newlines_and_escapes(tmp_path, where):
    if where == "files":
        small.write_files(tmp_path / "ag_news", small.AG)
    else:
        small.write_archive(tmp_path / "ag_news" / where, small.AG, inside="ag_news_csv/")
    dataset = open_dataset("ag_news", data_dir=tmp_path)
    assert pairs(dataset.train) == [
        ("World", 'Talks "fail" The two sides met for $5, and\nparted.'),
        ("Sci/Tech", "A chip It is fast."),
    ]
    assert dataset.test.label_counts == {"Business": 1, "Sports": 1}


def test_yelp_has_two_columns_and_its_own_escapes(tmp_path):
    small.write_archive(
        tmp_path / "yelp_full" / "yelp_review_full_csv.tgz",
        small.YELP,
        inside="yelp_review_full_csv/",
    )
    dataset = open_dataset("yelp_full", data_dir=tmp_path)
    assert pairs(dataset.train) == [
        ("1 star", 'Cold food.\n\nNever "again".'),
        ("5 stars", "Lovely place, \ngood soup."),
    ]


def test_dbpedia_has_fourteen_labels(tmp_path):
    rows = [f'"{n}","Name {n}"," It is what ""{n}"" is."\n' for n in range(1, 15)]
    small.write_files(tmp_path / "dbpedia", {"train.csv": "".join(rows), "test.csv": rows[0]})
    dataset = open_dataset("dbpedia", data_dir=tmp_path)
    assert len(dataset.train.label_counts) == 14
    assert pairs(dataset.test) == [("Company", 'Name 1  It is what "1" is.')]


def test_the_test_set_can_be_read_without_the_training_file(tmp_path):
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    dataset = open_dataset("ag_news", data_dir=tmp_path, only="test")
    assert (len(dataset.train), len(dataset.test)) == (0, 2)
    assert not is_present(CORPORA["ag_news"], tmp_path)


def test_a_missing_corpus_is_reported_with_which_file_to_put_where(tmp_path):
    with pytest.raises(MissingFileError) as caught:
        open_dataset("mr", data_dir=tmp_path)
    assert str(caught.value) == (
        f"{tmp_path}/mr/rt-polarity.pos: no such file; run fathomer data get mr, or put "
        f"rt-polaritydata.tar.gz (or rt-polarity.pos and rt-polarity.neg) into {tmp_path}/mr"
    )
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb/train/neg: no such file; "
        "run fathomer data get imdb, or put aclImdb_v1.tar.gz into imdb"
    )
    assert "put train_5500.label and TREC_10.label into" in message("trec", tmp_path)


def test_a_missing_member_of_an_archive_is_named(tmp_path):
    small.write_archive(
        tmp_path / "ag_news" / "ag_news_csv.tgz", {"train.csv": small.AG["train.csv"]}
    )
    assert message("ag_news", tmp_path) == "ag_news/ag_news_csv.tgz: the archive lacks test.csv"
    files = {name: text for name, text in small.IMDB.items() if "test/neg" not in name}
    small.write_archive(tmp_path / "imdb" / "aclImdb_v1.tar.gz", files)
    assert (
        message("imdb", tmp_path) == "imdb/aclImdb_v1.tar.gz: the archive lacks aclImdb/test/neg/"
    )


@pytest.mark.parametrize("kept", [0, 5, 60, -1500])
def test_a_damaged_archive_is_reported_with_what_to_do(tmp_path, kept):
    path = tmp_path / "imdb" / "aclImdb_v1.tar.gz"
    noise = "".join(random.Random(0).choices("abcdefgh ", k=5000))
    small.write_archive(path, {**small.IMDB, "aclImdb/test/pos/1_9.txt": noise})
    path.write_bytes(path.read_bytes()[:kept])
    assert message("imdb", tmp_path) == (
        "imdb/aclImdb_v1.tar.gz: the archive is damaged or incomplete; "
        "delete it and run fathomer data get imdb"
    )


def test_a_damaged_gzip_file_is_an_error(tmp_path):
    small.write_files(tmp_path / "ag_news", {"test.csv": small.AG["test.csv"]})
    path = small.write_gz(tmp_path / "ag_news" / "train.csv.gz", small.AG["train.csv"])
    path.write_bytes(path.read_bytes()[:-9])
    problem = "ag_news/train.csv.gz: the compressed file is damaged or incomplete"
    assert message("ag_news", tmp_path) == problem


@pytest.mark.parametrize(
    ("name", "file", "content", "problem"),
    [
        ("trec", "train_5500.label", "DESC what\n", "line 1: expected 'COARSE:fine question'"),
        ("trec", "train_5500.label", "NUM:x a\nODD:x b\n",
         "line 2: unknown label 'ODD'; trec has ABBR, DESC, ENTY, HUM, LOC, NUM"),
        ("amazon16/books", "books.task.train", "1 x\n",
         "line 1: expected a label, a tab and a text"),
        ("ag_news", "train.csv", '"1","a","b"\n"2","b"\n', "line 2: expected 3 columns, found 2"),
        ("ag_news", "train.csv", '"1","a","b\n\n',
         "line 1: a quoted field starts in this row and is never closed"),
        ("yelp_full", "train.csv", '"1","a"\n"6","b"\n',
         "line 2: unknown label '6'; yelp_full has 1, 2, 3, 4, 5"),
    ],
)  # fmt: skip
def test_a_wrong_row_is_reported_with_its_line(tmp_path, name, file, content, problem):
    small.write_files(tmp_path / CORPORA[name].folder, {file: content})
    assert message(name, tmp_path) == f"{CORPORA[name].folder}/{file}, {problem}"


def test_an_empty_part_is_an_error(tmp_path):
    small.write_files(tmp_path / "trec", {**small.QUESTIONS, "TREC_10.label": "\n"})
    with pytest.raises(DataError, match="trec: the test part of trec is empty"):
        open_dataset("trec", data_dir=tmp_path)
