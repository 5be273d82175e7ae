"""Unlabelled texts: from files and corpora, without those of a test set."""

import pytest

from fathomer.data.reading import ReadOptions
from fathomer.data.unlabelled import (
    KeptTexts,
    frequent_words,
    gather_texts,
    read_word_list,
    unlabelled_texts,
)
from fathomer.errors import ConfigError, DataError


def test_texts_of_a_test_set_are_left_out_whatever_their_case_and_spaces():
    texts = KeptTexts([["one", "TWO  three"], ["Four"]])
    texts.exclude(["two three"])
    assert list(texts) == list(texts) == ["one", "Four"]
    assert texts.summary() == ("2 texts; 1 left out because they are in a test or held-out set")


def test_files_of_all_kinds_are_read(tmp_path):
    (tmp_path / "a.txt").write_text("one\n\ntwo\n", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,body\n1,three\n", encoding="utf-8")
    (tmp_path / "c.jsonl").write_text('{"body": "four"}\n', encoding="utf-8")
    names = [str(tmp_path / name) for name in ("a.txt", "b.csv", "c.jsonl")]
    texts = unlabelled_texts(names, "data.csv", ReadOptions(text_column="body"))
    assert list(texts) == ["one", "two", "three", "four"]


def test_the_unlabelled_part_of_a_corpus_is_read(tmp_path):
    folder = tmp_path / "amazon16"
    folder.mkdir()
    (folder / "books.task.unlabel").write_bytes("caf\xe9\n".encode("cp1252"))
    texts = unlabelled_texts(["corpus"], "amazon16/books", ReadOptions(), data_dir=tmp_path)
    assert list(texts) == ["café"]


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        ("reviews.csv", "reviews.csv is not a corpus"),
        ("amazon16", "amazon16 is not a corpus"),
        ("trec", "trec has no unlabelled part"),
    ],
)
def test_a_missing_unlabelled_part_is_one_line(data, problem):
    with pytest.raises(ConfigError, match=f"--unlabelled corpus: {problem}"):
        unlabelled_texts(["corpus"], data, ReadOptions())


def test_a_file_without_texts_is_one_line(tmp_path):
    (tmp_path / "a.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"a\.txt: holds no texts"):
        list(unlabelled_texts([str(tmp_path / "a.txt")], "data.csv", ReadOptions()))


def test_the_demo_corpus_is_read_without_its_test_set():
    assert len(list(gather_texts(["demo"], ReadOptions()))) == 4000


def test_words_are_sorted_by_frequency():
    assert frequent_words(["The film, the book", "b a"])[:3] == ["the", ",", "a"]


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("list.txt", "good\ncatch 22\nbad\n", ["good", "catch 22", "bad"]),
        ("glove.txt", "good 0.1 -0.2\nbad 0.3 0.4\n", ["good", "bad"]),
        ("header.txt", "2 2\ngood 0.1 -0.2\nbad 0.3 0.4\n", ["good", "bad"]),
    ],
)
def test_words_are_read_from_a_list_or_from_vectors_as_text(tmp_path, name, content, words):
    (tmp_path / name).write_text(content, encoding="utf-8")
    assert read_word_list(tmp_path / name) == words
