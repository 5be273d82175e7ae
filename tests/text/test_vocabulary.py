"""The known words of a model, with and without vectors, and their spelling in bytes."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.config import TextConfig
from fathomer.text.encode import spell
from fathomer.text.tokenizer import UNKNOWN
from fathomer.text.vocabulary import Vocabulary, build_vocabulary

TEXTS = ["the film the", "the film , Apple", "Zebra"]


def known(vocabulary: Vocabulary) -> list[str]:
    assert vocabulary.tokenizer.vocabulary[0] == UNKNOWN
    return vocabulary.tokenizer.vocabulary[1:]


def vectors_file(folder: Path, *words: str) -> Path:
    """Write a file in which word number n has the vector (n, -n)."""
    path = folder / "vectors.txt"
    lines = [f"{word} {n} -{n}\n" for n, word in enumerate(words, start=1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def vector_of(vocabulary: Vocabulary, word: str) -> float:
    assert vocabulary.vectors is not None
    first, second = vocabulary.vectors[vocabulary.tokenizer.id_of(word)]
    assert first == -second
    return float(first)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"min_count": 1}, ["the", "film", ",", "Apple", "Zebra"]),
        ({"min_count": 2}, ["the", "film"]),
        ({"min_count": 3}, ["the"]),
        ({"min_count": 4}, []),
        ({"min_count": 1, "max_vocabulary": 1}, ["the"]),
        ({"min_count": 1, "max_vocabulary": 3}, ["the", "film", ","]),
    ],
)
def test_without_vectors_the_frequent_words_are_known_the_most_frequent_first(settings, expected):
    vocabulary = build_vocabulary(TEXTS, TextConfig(**settings))
    assert known(vocabulary) == expected
    assert vocabulary.vectors is None


def test_the_order_of_the_texts_does_not_matter():
    config = TextConfig(min_count=1)
    assert known(build_vocabulary(TEXTS, config)) == known(build_vocabulary(TEXTS[::-1], config))


def test_texts_may_be_a_stream_or_none():
    assert known(build_vocabulary(iter(TEXTS), TextConfig())) == ["the", "film"]
    assert known(build_vocabulary([], TextConfig())) == []


def test_with_vectors_each_known_word_has_the_vector_of_its_own_form(tmp_path):
    path = vectors_file(tmp_path, "apple", "Apple", "the", "zebra")
    vocabulary = build_vocabulary(TEXTS, TextConfig(vector_words=0), vectors=path)
    assert known(vocabulary)[:4] == ["the", "film", "Apple", "Zebra"]
    assert (
        vector_of(vocabulary, "Apple") == 2
    )  # as written, although the lower-case form comes first
    assert vector_of(vocabulary, "apple") == 1
    assert vector_of(vocabulary, "Zebra") == vector_of(vocabulary, "zebra") == 4
    assert vector_of(vocabulary, "THE") == 3


def test_a_frequent_training_word_without_a_vector_is_known_but_a_rare_one_is_not(tmp_path):
    path = vectors_file(tmp_path, "film")
    vocabulary = build_vocabulary(["the the the film once"], TextConfig(), vectors=path)
    assert known(vocabulary) == ["the", "film"]
    assert vector_of(vocabulary, "film") == 1
    assert vector_of(vocabulary, "the") == vector_of(vocabulary, "once") == 0


def test_with_vectors_a_rare_training_word_is_known(tmp_path):
    vocabulary = build_vocabulary(
        ["once"], TextConfig(min_count=5, vector_words=0), vectors=vectors_file(tmp_path, "once")
    )
    assert known(vocabulary) == ["once"]


@pytest.mark.parametrize("first", range(5))
def test_the_first_words_of_the_vectors_are_known_beside_the_training_words(tmp_path, first):
    words = ["of", "and", "film", "rare"]
    vocabulary = build_vocabulary(
        ["film"], TextConfig(vector_words=first), vectors=vectors_file(tmp_path, *words)
    )
    expected = ["film", *(word for word in words[:first] if word != "film")]
    assert known(vocabulary) == expected
    assert [vector_of(vocabulary, word) for word in expected] == [
        words.index(word) + 1 for word in expected
    ]


@pytest.mark.parametrize("words", [["the", "film"], [UNKNOWN, "the"], ["the", UNKNOWN, "of"], []])
def test_there_is_one_row_for_each_known_word_and_the_first_is_zero(tmp_path, words):
    path = vectors_file(tmp_path, *words, "last")
    vocabulary = build_vocabulary(["the"], TextConfig(), vectors=path)
    assert vocabulary.vectors is not None
    assert vocabulary.vectors.dtype == np.float32
    assert vocabulary.vectors.shape == (len(vocabulary.tokenizer), 2)
    assert not vocabulary.vectors[0].any()
    assert vector_of(vocabulary, "last") == len(words) + 1


@pytest.mark.parametrize(
    ("words", "max_chars", "expected"),
    [
        (["no", "yes"], 8, [b"no\0", b"yes"]),
        (["long", "a"], 2, [b"lo", b"a\0"]),
        (["é", "€"], 8, ["é".encode() + b"\0", "€".encode()]),
        (["a€"], 3, [b"a\xe2\x82"]),
        (["🎬🎬"], 4, ["🎬".encode()]),
        (["", "a"], 8, [b"\0", b"a"]),
        ([""], 8, [b"\0"]),
        (["\ud800"], 8, [b"?"]),
        (["a" * 300_000], 8, [b"a" * 8]),
    ],
)
def test_words_are_spelled_in_rows_of_equal_width(words, max_chars, expected):
    spelled = spell(words, max_chars=max_chars)
    assert spelled.dtype == np.uint8
    assert [row.tobytes() for row in spelled] == expected


def test_no_words_have_no_spellings():
    assert spell([], max_chars=8).shape == (0, 1)


@given(words=st.lists(st.text(), max_size=6), max_chars=st.integers(1, 9))
def test_a_spelling_is_the_start_of_the_word_in_utf_8(words, max_chars):
    spelled = spell(words, max_chars=max_chars)
    plain = [word.encode()[:max_chars] for word in words]
    width = max([1, *map(len, plain)])
    assert spelled.shape == (len(words), width)
    assert [row.tobytes() for row in spelled] == [word.ljust(width, b"\0") for word in plain]
