"""Scores: the same numbers as scikit-learn, also where a label does not occur."""

import json
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sklearn

from fathomer.errors import DataError
from fathomer.evaluate.metrics import Metrics, score
from fathomer.model.inference import Classified

LABELS = ("bad", "good", "so-so", "ugly")
ANSWERS = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=40)


def answers(predicted: list[int], *, certainty: float = 0.7, depths: list[int] = ()) -> Classified:
    """Make answers that give each predicted label the same probability, the others the rest."""
    probabilities = np.full((len(predicted), len(LABELS)), (1 - certainty) / (len(LABELS) - 1))
    probabilities[np.arange(len(predicted)), predicted] = certainty
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities).astype(np.float32)
    return Classified(logs, np.asarray(depths, dtype=np.int16))


def scored(predicted: list[int], true: list[int], **options) -> Metrics:
    return score(answers(predicted, **options), np.asarray(true, dtype=np.int64), LABELS)


@given(pairs=ANSWERS)
@settings(max_examples=150)
def test_the_scores_are_those_of_scikit_learn(pairs):
    predicted, true = map(list, zip(*pairs, strict=True))
    found = scored(predicted, true)
    assert found.examples == len(pairs)
    assert found.accuracy == pytest.approx(sklearn.accuracy_score(true, predicted))
    macro = sklearn.f1_score(true, predicted, average="macro", zero_division=0)
    assert found.macro_f1 == pytest.approx(macro)
    rows = zip(
        *sklearn.precision_recall_fscore_support(
            true, predicted, labels=range(len(LABELS)), zero_division=0
        ),
        strict=True,
    )
    assert list(found.per_label) == list(LABELS)
    for one, row in zip(found.per_label.values(), rows, strict=True):
        assert (one.precision, one.recall, one.f1, one.support) == pytest.approx(row)


@given(pairs=ANSWERS, certainty=st.floats(0.3, 0.99))
def test_the_loss_is_the_mean_negative_log_probability_of_the_truth(pairs, certainty):
    predicted, true = map(list, zip(*pairs, strict=True))
    found = scored(predicted, true, certainty=certainty)
    probabilities = np.exp(answers(predicted, certainty=certainty).log_probabilities)
    probabilities /= probabilities.sum(1, keepdims=True)
    expected = sklearn.log_loss(true, probabilities, labels=range(len(LABELS)))
    assert found.loss == pytest.approx(expected, rel=1e-4)


def test_a_label_that_occurs_nowhere_does_not_count_in_the_mean():
    found = scored([0, 1, 0], [0, 1, 1])
    assert found.per_label["ugly"].support == 0
    assert found.per_label["ugly"].f1 == found.per_label["ugly"].precision == 0.0
    assert found.macro_f1 == pytest.approx((2 / 3 + 2 / 3) / 2)


@pytest.mark.parametrize(("predicted", "true"), [([0, 3], [0, 0]), ([0, 0], [0, 3])])
def test_a_label_that_is_only_predicted_or_only_true_counts_as_wrong(predicted, true):
    found = scored(predicted, true)
    assert found.per_label["ugly"].f1 == 0.0
    assert found.macro_f1 == pytest.approx((2 / 3) / 2)


def test_all_right_and_all_wrong_are_one_and_zero():
    right, wrong = scored([0, 1, 2, 3], [0, 1, 2, 3]), scored([1, 0, 3, 2], [0, 1, 2, 3])
    assert (right.accuracy, right.macro_f1) == (1.0, 1.0)
    assert (wrong.accuracy, wrong.macro_f1) == (0.0, 0.0)


def test_the_depth_is_the_mean_over_words_and_zero_without_words():
    assert scored([0, 1], [0, 1], depths=[1, 2, 6]).mean_depth == 3.0
    assert scored([0, 1], [0, 1], depths=[]).mean_depth == 0.0


def test_certainty_in_a_wrong_answer_costs_infinitely_much():
    assert math.isinf(scored([0], [1], certainty=1.0).loss)


def test_no_texts_have_no_scores():
    with pytest.raises(DataError, match="there are no examples to score"):
        scored([], [])


def test_scores_are_plain_values():
    found = scored([0, 1], [0, 1], depths=[1, 2])
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert found.to_dict()["per_label"]["good"]["support"] == 1
