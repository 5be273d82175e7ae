"""Skip-gram on a user's texts: our words, the same vectors every time."""

import numpy as np
import pytest

from fathomer.errors import DataError, MissingExtraError
from fathomer.text.skipgram import SkipgramSettings, train_skipgram
from tests.tiny import tiny_examples

pytest.importorskip("fasttext", reason="the extra vectors is not installed")

TEXTS = [example.text for example in tiny_examples()] + ["It's __label__x </s> DON'T"] * 3
SMALL = SkipgramSettings(size=8, epochs=2)


def test_the_words_are_those_of_our_tokenizer_in_lower_case_most_frequent_first():
    found = train_skipgram(TEXTS, SMALL)
    assert found.words[0] in ("the", "was", ".")
    assert {"good", "it", "'s", "do", "n't", "__label__x"} <= set(found.words)
    assert "</s>" not in found.words
    assert (found.matrix.shape, found.matrix.dtype) == ((len(found.words), 8), np.float32)
    assert found.matrix.any(1).all()


def test_the_same_seed_gives_the_same_vectors_and_another_does_not():
    first, second = train_skipgram(TEXTS, SMALL), train_skipgram(iter(TEXTS), SMALL)
    np.testing.assert_array_equal(first.matrix, second.matrix)
    other = train_skipgram(TEXTS, SkipgramSettings(size=8, epochs=2, seed=1))
    assert not np.array_equal(first.matrix, other.matrix)


def test_words_in_the_same_places_get_similar_vectors():
    texts = [f"the {animal} {verb} in the garden" for animal in ("cat", "dog")
             for verb in ("sleeps", "runs", "eats")] * 200  # fmt: skip
    texts += [f"we {verb} two bills of {name}" for verb in ("paid", "sent")
              for name in ("rent", "tax")] * 200  # fmt: skip
    found = train_skipgram(texts, SkipgramSettings(size=16, epochs=30))
    centred = found.matrix - found.matrix.mean(0)
    unit = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    cat, dog, tax = (unit[found.words.index(word)] for word in ("cat", "dog", "tax"))
    assert cat @ dog > cat @ tax + 0.2


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([], "the texts have no words"),
        ([" ", ""], "the texts have no words"),
        (["a b c"], "no word occurs 3 times"),
    ],
)
def test_too_little_text_is_one_line(texts, problem):
    with pytest.raises(DataError, match=problem):
        train_skipgram(texts, SMALL)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("fathomer.errors.find_spec", lambda name: None)
    with pytest.raises(
        MissingExtraError, match=r"needs fasttext: pip install 'fathomer\[vectors\]'"
    ):
        train_skipgram(TEXTS, SMALL)
