"""Labelled texts: summaries, checksums, and splits that keep each label's share."""

import hashlib
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.data.examples import Example, Examples, split_stratified


def numbered(labels: str, **skipped: int) -> Examples:
    """Return one example per letter, with its number as text."""
    items = [Example(str(number), label) for number, label in enumerate(labels)]
    return Examples(items, skipped)


def numbers(examples: Examples) -> list[int]:
    return [int(example.text) for example in examples]


@pytest.mark.parametrize(
    ("count", "skipped", "line"),
    [
        (0, {}, "0 examples read"),
        (1, {}, "1 example read"),
        (1234, {}, "1,234 examples read"),
        (2, {"empty label": 1}, "2 examples read, 1 skipped (1 empty label)"),
        (
            1,
            {"empty label": 1000, "empty text": 2},
            "1 example read, 1,002 skipped (1,000 empty label, 2 empty text)",
        ),
    ],
)
def test_the_summary_counts_what_was_read_and_skipped(count, skipped, line):
    assert Examples([Example("text", "label")] * count, skipped).summary() == line


def test_labels_are_counted_in_sorted_order():
    examples = numbered("cabca")
    assert list(examples.label_counts.items()) == [("a", 2), ("b", 1), ("c", 2)]
    assert len(examples) == len(list(examples)) == 5
    assert numbered("").label_counts == {}


@pytest.mark.parametrize(
    ("count", "fraction", "expected"),
    [(1, 0.1, 0), (1, 0.9, 0), (2, 0.1, 1), (2, 0.9, 1), (3, 0.9, 2), (10, 0.1, 1), (10, 0.33, 3),
     (100, 0.1, 10), (100, 0.9, 90), (10, 1.0, 9)],
)  # fmt: skip
def test_each_label_is_split_by_its_share_and_keeps_at_least_one(count, fraction, expected):
    larger, smaller = split_stratified(numbered("ab" * count), fraction=fraction, seed=0)
    assert smaller.label_counts == ({"a": expected, "b": expected} if expected else {})
    assert larger.label_counts == {"a": count - expected, "b": count - expected}


def test_a_fraction_of_zero_splits_nothing_off():
    assert len(split_stratified(numbered("aabb"), fraction=0, seed=0)[1]) == 0


@given(
    labels=st.text("abc", max_size=60),
    fraction=st.floats(0.01, 0.9),
    seed=st.integers(0, 9),
)
def test_a_split_loses_nothing_and_keeps_the_order(labels, fraction, seed):
    examples = numbered(labels)
    larger, smaller = split_stratified(examples, fraction=fraction, seed=seed)
    assert numbers(larger) == sorted(numbers(larger))
    assert numbers(smaller) == sorted(numbers(smaller))
    assert sorted(numbers(larger) + numbers(smaller)) == list(range(len(labels)))
    assert all(
        labels[int(example.text)] == example.label for part in (larger, smaller) for example in part
    )
    assert set(larger.label_counts) == set(labels)
    for label, count in Counter(labels).items():
        held = smaller.label_counts.get(label, 0)
        assert abs(held - fraction * count) <= 1 or (held, count) == (0, 1)


def test_the_seed_determines_the_split():
    examples = numbered("ab" * 50)
    splits = [numbers(split_stratified(examples, fraction=0.2, seed=s)[1]) for s in (1, 1, 2)]
    assert splits[0] == splits[1] != splits[2]


def test_a_split_is_drawn_from_all_examples():
    examples = numbered("a" * 100)
    drawn = {
        n for s in range(50) for n in numbers(split_stratified(examples, fraction=0.1, seed=s)[1])
    }
    assert len(drawn) > 95


def test_the_larger_part_keeps_the_count_of_skipped_rows():
    larger, smaller = split_stratified(numbered("aabb", empty=3), fraction=0.5, seed=0)
    assert larger.summary() == "2 examples read, 3 skipped (3 empty)"
    assert smaller.summary() == "2 examples read"


@given(
    sets=st.lists(st.sets(st.sampled_from("abcd"), max_size=3), max_size=30),
    fraction=st.floats(0.01, 0.9),
    seed=st.integers(0, 9),
)
def test_with_several_labels_each_label_keeps_an_example(sets, fraction, seed):
    texts = [Example(str(n), "|".join(sorted(labels))) for n, labels in enumerate(sets)]
    examples = Examples(texts, multi_label=True)
    larger, smaller = split_stratified(examples, fraction=fraction, seed=seed)
    assert set(larger.label_counts) == set(examples.label_counts)
    assert sorted(numbers(larger) + numbers(smaller)) == list(range(len(sets)))


def test_the_checksum_covers_texts_labels_and_order():
    sums = [numbered(labels).checksum() for labels in ("ab", "ab", "ba", "abb")]
    assert sums[0] == sums[1]
    assert len(set(sums)) == 3
    both = hashlib.sha256(b"a\x000\x00b\x001\x00").hexdigest()
    assert sums[0] == both  # stored in results, so it must never change
