"""Predictions make their words only when somebody reads them."""

import copy
import pickle
from dataclasses import FrozenInstanceError

import numpy as np
import pytest

from fathomer import prediction
from fathomer.prediction import Prediction, Word, make_predictions
from fathomer.text.tokenizer import Tokenizer

TEXTS = ["good film", "", "bad film, really"]
DEPTHS = np.array([1, 2, 3, 4, 5], dtype=np.int16)
EFFECTS = np.array([0.5, 0.0, -0.5, 0.25, 1.0])


def predictions(multi_label=False, contributions=None):
    tokenizer, texts = Tokenizer.from_words(["good", "bad"]), TEXTS.copy()
    found = make_predictions(
        texts,
        tokenizer.encode(texts, max_words=3),
        np.array([[0.2, 0.7], [0.5, 0.5], [0.75, 0.6]]),
        np.array([[False, True], [False, False], [True, multi_label]]),
        DEPTHS,
        labels=("no", "yes"),
        multi_label=multi_label,
        spans=tokenizer.spans,
        contributions=contributions,
    )
    texts.clear()  # a caller may use its list again before the words are made
    return found


def test_an_answer_has_the_words_of_its_text():
    first, second, third = predictions()
    assert first.words == (Word("good", 0, 4, 1), Word("film", 5, 9, 2))
    assert second.words == ()
    assert second.mean_depth is None
    assert third.words == (Word("bad", 0, 3, 3), Word("film", 4, 8, 4), Word(",", 8, 9, 5))
    assert third.mean_depth == 4
    assert third.truncated
    assert not first.truncated


def test_an_answer_has_the_most_probable_of_the_chosen_labels():
    assert [answer.label for answer in predictions()] == ["yes", None, "no"]
    several = predictions(multi_label=True)
    assert [answer.label for answer in several] == ["yes", None, "no"]
    assert [answer.labels for answer in several] == [("yes",), (), ("no", "yes")]


def test_words_are_made_once_and_only_if_they_are_read(monkeypatch):
    made = []
    words = prediction.WordSource.words
    monkeypatch.setattr(
        prediction.WordSource, "words", lambda source, n: made.append(n) or words(source, n)
    )
    first, *_ = predictions(contributions=EFFECTS)
    assert first.to_dict()["label"] == "yes"
    assert not made
    assert first.words is first.words
    assert made == [0]
    assert [word.contribution for word in first.words] == [0.5, 0.0]


@pytest.mark.parametrize(
    "copied", [copy.copy, copy.deepcopy, lambda p: pickle.loads(pickle.dumps(p))]
)
def test_an_answer_equals_its_copy_and_one_made_by_hand(copied):
    answer = predictions()[0]
    by_hand = Prediction("yes", {"no": 0.2, "yes": 0.7}, predictions()[0].words, False)
    assert copied(answer) == answer == by_hand
    assert repr(answer) == repr(by_hand)


def test_an_answer_cannot_be_changed_and_has_no_other_attributes():
    answer = predictions()[0]
    with pytest.raises(FrozenInstanceError):
        answer.words = ()
    with pytest.raises(AttributeError, match="no attribute 'depth'"):
        _ = answer.depth
