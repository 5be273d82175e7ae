"""Pretrained vectors are centred and scaled for the training texts."""

import numpy as np
import pytest

from fathomer.text.conditioning import SPREAD, apply_conditioning, fit_conditioning


def conditioned(matrix, counts):
    matrix = np.array(matrix, dtype=np.float32)
    return apply_conditioning(matrix, fit_conditioning(matrix, np.array(counts)))


def test_the_mean_is_weighted_by_how_often_words_occur():
    matrix = np.array([[1.0, 4.0], [5.0, 8.0], [100.0, 100.0]], dtype=np.float32)
    found = fit_conditioning(matrix, np.array([3, 1, 0]))
    assert found.mean.tolist() == [2.0, 5.0]
    assert found.scale == pytest.approx(SPREAD / np.sqrt(3.0))  # (3 * 1 + 1 * 9) / 4 in each column


def test_conditioned_vectors_have_mean_zero_and_a_fixed_spread():
    random = np.random.default_rng(0)
    matrix = random.normal(3.0, 0.2, (500, 20)).astype(np.float32)
    counts = random.integers(1, 1000, 500)
    found = conditioned(matrix, counts)
    weights = counts / counts.sum()
    assert np.abs(weights @ found).max() < 1e-3
    assert np.sqrt(weights @ np.square(found).mean(1)) == pytest.approx(SPREAD, rel=1e-3)


def test_missing_numbers_stay_zero_and_do_not_move_the_mean():
    found = conditioned([[0.0, 0.0], [4.0, 0.0], [6.0, 1.0], [5.0, 3.0]], [9, 1, 1, 2])
    assert found[0].tolist() == [0.0, 0.0]
    assert found[1, 1] == 0.0
    assert found[3, 0] == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("matrix", [[[0.0, 0.0]], [[2.0, 2.0], [2.0, 2.0]]])
def test_vectors_without_any_spread_are_not_divided_by_zero(matrix):
    assert np.isfinite(conditioned(matrix, [1] * len(matrix))).all()


def test_words_that_do_not_occur_in_training_are_moved_too():
    found = conditioned([[1.0], [3.0], [4.0]], [1, 1, 0])
    assert found[2, 0] == pytest.approx(2.0)


def test_known_words_without_a_vector_get_random_ones():
    rng = np.random.default_rng(1)
    matrix = rng.normal(3.0, 1.0, (60, 50)).astype(np.float32)
    matrix[[0, 7, 9]] = 0  # the unknown word, and two known words without a vector
    found = conditioned(matrix, [1] * 60)
    assert not found[0].any()
    assert not np.array_equal(found[7], found[9])
    assert abs(np.sqrt(np.mean(found[[7, 9]] ** 2)) - SPREAD) < 0.2
    assert np.array_equal(found, conditioned(matrix, [1] * 60))
