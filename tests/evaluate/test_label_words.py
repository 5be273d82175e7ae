"""The words that push most towards each label."""

import numpy as np

from fathomer.evaluate.label_words import (
    LABEL_WORDS,
    SAMPLED_TEXTS,
    LabelWord,
    find_label_words,
    sample_texts,
)
from fathomer.prediction import Prediction, Word


def answer(label, *effects):
    words = tuple(Word(text, 0, len(text), 1, effect) for text, effect in effects)
    return Prediction(label, {"bad": 0.1, "good": 0.1} | {label: 0.9}, words, False)


def test_contributions_are_summed_by_word_and_predicted_label():
    found = find_label_words(
        [
            answer("good", ("Fine", 1.0), ("but", -0.5)),
            answer("good", ("fine", 2.0), ("lovely", 4.0)),
            answer("bad", ("fine", -1.0), ("dull", 0.5)),
        ],
        ["bad", "good", "other"],
    )
    assert found.texts == 3
    assert found.labels == {
        "bad": (LabelWord("dull", 0.5, 1),),
        "good": (LabelWord("lovely", 4.0, 1), LabelWord("fine", 3.0, 2)),
        "other": (),
    }


def test_only_the_strongest_words_are_returned():
    many = answer("good", *((f"word {n}", 1.0 + n) for n in range(50)))
    words = find_label_words([many], ["good"]).labels["good"]
    assert [word.word for word in words] == [f"word {49 - n}" for n in range(LABEL_WORDS)]


def test_the_sample_is_bounded_by_its_texts_and_their_costs():
    assert len(sample_texts([1] * 1000, budget=10**6)) == SAMPLED_TEXTS
    assert len(sample_texts([300] * 1000, budget=1000)) == 3
    assert len(sample_texts([300], budget=1)) == 1
    assert len(sample_texts([], budget=1)) == 0
    assert len(np.unique(sample_texts([1] * 50, budget=100))) == 50
