"""Scores, compared with a plain loop that counts, including labels that never occur."""

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
    """Return answers in which every predicted label has the same probability."""
    probabilities = np.full((len(predicted), len(LABELS)), (1 - certainty) / (len(LABELS) - 1))
    probabilities[np.arange(len(predicted)), predicted] = certainty
    with np.errstate(divide="ignore"):
        logs = np.log(probabilities).astype(np.float32)
    return Classified(logs, np.asarray(depths, dtype=np.int16))


def scored(predicted: list[int], true: list[int], **options) -> Metrics:
    return score(answers(predicted, **options), np.asarray(true, dtype=np.int64), LABELS)


def counted(predicted: list[set[int]], true: list[set[int]], label: int) -> tuple[int, int, int]:
    """Count the right predictions of a label, all its predictions, and all its texts."""
    both = sum(label in p and label in t for p, t in zip(predicted, true, strict=True))
    return both, sum(label in p for p in predicted), sum(label in t for t in true)


def assert_scores_as_counted(found: Metrics, predicted: list[set[int]], true: list[set[int]]):
    counts = [counted(predicted, true, label) for label in range(len(found.per_label))]
    for one, (both, guessed, support) in zip(found.per_label.values(), counts, strict=True):
        assert one.precision == both / max(1, guessed)
        assert one.recall == both / max(1, support)
        assert one.f1 == 2 * both / max(1, guessed + support)
        assert one.support == support
    f1s = [2 * both / (p + t) for both, p, t in counts if p + t]
    assert found.macro_f1 == pytest.approx(np.mean(f1s) if f1s else 0.0, rel=1e-12)
    both, guessed, support = map(sum, zip(*counts, strict=True))
    assert found.micro_f1 == 2 * both / max(1, guessed + support)
    assert found.accuracy == np.mean([p == t for p, t in zip(predicted, true, strict=True)])
    assert found.examples == len(true)


@given(pairs=ANSWERS)
@settings(max_examples=150)
def test_the_scores_are_those_of_a_plain_count(pairs):
    predicted, true = map(list, zip(*pairs, strict=True))
    found = scored(predicted, true)
    assert list(found.per_label) == list(LABELS)
    assert_scores_as_counted(found, [{p} for p in predicted], [{t} for t in true])
    assert found.micro_f1 == found.accuracy


@given(data=st.data(), labels=st.sampled_from([1, 2, 4]))
def test_the_scores_of_several_labels_are_those_of_a_plain_count(data, labels):
    some = st.sets(st.integers(0, labels - 1))
    pairs = data.draw(st.lists(st.tuples(some, some), min_size=1, max_size=20))
    predicted, true = map(list, zip(*pairs, strict=True))
    targets, given_ = (
        np.array([[int(label in row) for label in range(labels)] for row in found])
        for found in (true, predicted)
    )
    logs = np.log(np.where(given_, 0.8, 0.3)).astype(np.float32)
    found = score(Classified(logs, np.zeros(0, dtype=np.int16)), targets, LABELS[:labels])
    assert_scores_as_counted(found, predicted, true)


@given(pairs=ANSWERS, certainty=st.floats(0.3, 0.99))
def test_the_loss_is_the_mean_negative_log_probability_of_the_truth(pairs, certainty):
    predicted, true = map(list, zip(*pairs, strict=True))
    found = scored(predicted, true, certainty=certainty)
    probabilities = np.exp(answers(predicted, certainty=certainty).log_probabilities)
    probabilities /= probabilities.sum(1, keepdims=True)
    expected = sklearn.log_loss(true, probabilities, labels=range(len(LABELS)))
    assert found.loss == pytest.approx(expected, rel=1e-4)


def test_a_label_that_never_occurs_is_not_part_of_the_mean():
    found = scored([0, 1, 0], [0, 1, 1])
    assert found.per_label["ugly"].support == 0
    assert found.per_label["ugly"].f1 == found.per_label["ugly"].precision == 0.0
    assert found.macro_f1 == pytest.approx((2 / 3 + 2 / 3) / 2)


@pytest.mark.parametrize(("predicted", "true"), [([0, 3], [0, 0]), ([0, 0], [0, 3])])
def test_a_label_that_is_only_predicted_or_only_true_counts_as_wrong(predicted, true):
    found = scored(predicted, true)
    assert found.per_label["ugly"].f1 == 0.0
    assert found.macro_f1 == pytest.approx((2 / 3) / 2)


def test_perfect_answers_score_one_and_wrong_answers_zero():
    right, wrong = scored([0, 1, 2, 3], [0, 1, 2, 3]), scored([1, 0, 3, 2], [0, 1, 2, 3])
    assert (right.accuracy, right.macro_f1) == (1.0, 1.0)
    assert (wrong.accuracy, wrong.macro_f1) == (0.0, 0.0)


def test_the_depth_is_the_mean_over_words_and_zero_without_words():
    assert scored([0, 1], [0, 1], depths=[1, 2, 6]).mean_depth == 3.0
    assert scored([0, 1], [0, 1], depths=[]).mean_depth == 0.0


def test_a_wrong_answer_with_probability_one_has_an_infinite_loss():
    assert math.isinf(scored([0], [1], certainty=1.0).loss)


def test_scoring_no_texts_is_an_error():
    with pytest.raises(DataError, match="there are no examples to score"):
        scored([], [])


def test_scores_are_plain_values():
    found = scored([0, 1], [0, 1], depths=[1, 2])
    assert json.loads(json.dumps(found.to_dict())) == found.to_dict()
    assert found.to_dict()["per_label"]["good"]["support"] == 1
