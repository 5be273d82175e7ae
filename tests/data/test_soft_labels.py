"""Soft labels: from files and arrays, matched with their texts."""

import numpy as np
import pytest

from fathomer.data.examples import Example, Examples, split_stratified
from fathomer.data.soft_labels import (
    add_guessed,
    check_soft_labels,
    read_soft_labels,
    with_soft_labels,
)
from fathomer.errors import DataError

LABELS = ["no", "yes"]
EXAMPLES = Examples([Example("a", "yes"), Example("b", "no"), Example("c", "no")])
SOFT = np.array([[0.1, 0.9], [0.6, 0.4], [0.8, 0.2]], dtype=np.float32)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("s.csv", "yes,no\n0.9,0.1\n0.4,0.6\n0.2,0.8\n"),
        ("s.tsv", "no\tyes\n0.1\t0.9\n0.6\t0.4\n0.8\t0.2\n"),
        ("s.jsonl", '{"yes": 0.9, "no": 0.1}\n{"yes": 0.4, "no": 0.6}\n{"yes": 0.2, "no": 0.8}\n'),
        ("s.csv", "text,yes,no\nc,0.2,0.8\nb,0.4,0.6\na,0.9,0.1\n"),
    ],
)
def test_a_file_gives_each_text_its_row_in_the_order_of_the_labels(tmp_path, name, content):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    found = read_soft_labels(path, LABELS).of(EXAMPLES.texts, "s")
    np.testing.assert_allclose(found, SOFT, rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("yes\n1\n", "line 2: no column 'no'"),
        ("yes,no\n1,x\n", "line 2: a probability is not a number"),
        ("yes,no\n1,1e400\n", "row 1 .* does not hold probabilities"),
        ("yes,no\n1,1\n", r"row 1 \(1, 1\) does not hold probabilities that sum to one"),
        ("yes,no\nnan,1\n", "row 1"),
        ("yes,no\n1.5,-0.5\n", "row 1"),
        ("yes,no\n", "no rows after the header"),
        ("yes,no\n0.5,0.5\n", "1 rows for 3 training texts"),
        ("text,yes,no\na,0.5,0.5\nb,1,0\n", "1 texts have no row, such as 'c'"),
    ],
)
def test_a_mistake_in_a_file_is_one_line(tmp_path, content, problem):
    path = tmp_path / "s.csv"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=problem) as caught:
        read_soft_labels(path, LABELS).of(EXAMPLES.texts, str(path))
    assert "\n" not in str(caught.value)


def test_an_array_of_another_shape_is_one_line():
    with pytest.raises(DataError, match="expected 3 rows of 2 probabilities"):
        check_soft_labels(SOFT[:, :1], shape=(3, 2))


def test_a_split_keeps_rows_and_texts_together():
    many = Examples([Example(str(n), LABELS[n % 2]) for n in range(40)])
    soft = np.linspace(0, 1, 40, dtype=np.float32)[:, None] * [1, 0]
    parts = split_stratified(with_soft_labels(many, soft), fraction=0.5, seed=0)
    for part in parts:
        expected = [int(example.text) / 39 for example in part]
        np.testing.assert_allclose(part.soft[:, 0], expected, rtol=1e-5)
        assert part.given.all()


def test_unlabelled_texts_follow_with_the_teachers_best_label():
    both = add_guessed(with_soft_labels(EXAMPLES, SOFT), ["new"], SOFT[:1], LABELS)
    assert [tuple(each) for each in both][-2:] == [("c", "no"), ("new", "yes")]
    assert both.given.tolist() == [True, True, True, False]
    assert both.soft.shape == (4, 2)
    weighted = with_soft_labels(EXAMPLES.weighted([1, 2, 3]), SOFT)
    assert add_guessed(weighted, ["new"], SOFT[:1], LABELS).weights.tolist() == [1, 2, 3, 2]


def test_a_whole_number_too_large_for_a_float_is_one_line(tmp_path):
    path = tmp_path / "s.jsonl"
    path.write_text(f'{{"yes": 1{"0" * 400}, "no": 0}}\n', encoding="utf-8")
    with pytest.raises(DataError, match="line 1: a probability is not a number"):
        read_soft_labels(path, LABELS)
