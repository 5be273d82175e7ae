"""Batches stay within the budget and contain every text once; unknown words keep their spelling."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.text.encode import EncodedTexts, _divisible, plan_batches
from fathomer.text.tokenizer import Tokenizer, Words
from fathomer.train.processes import divide

LENGTHS = st.lists(st.integers(0, 30), max_size=60).map(lambda n: np.asarray(n, dtype=np.int64))
BUDGETS = st.integers(1, 40)
SEEDS = st.none() | st.integers(0, 9)


def plan(lengths, budget: int, seed: int | None = None, parts: int = 1) -> list[list[int]]:
    shuffle = None if seed is None else np.random.default_rng(seed)
    lengths = np.asarray(lengths, dtype=np.int64)
    return list(plan_batches(lengths, budget=budget, shuffle=shuffle, parts=parts))


def a_text(names: list[str | int]) -> Words:
    """Return the words of a text: a number is a known word, a string an unknown one."""
    unknown = [name for name in names if isinstance(name, str)]
    spelled = iter(range(1, len(unknown) + 1))
    ids = [-next(spelled) if isinstance(name, str) else name for name in names]
    return Words(ids, unknown, False)


def unpacked(packed) -> list[list[str | int]]:
    """Return the words of packed texts, one by one."""
    texts, at = [], 0
    for length in packed.lengths:
        text = []
        for word in packed.words[at : at + length]:
            spelling = packed.unknown[-1 - word].tobytes().rstrip(b"\0") if word < 0 else b""
            text.append(spelling.decode() if word < 0 else int(word))
        texts.append(text)
        at += length
    assert at == len(packed.words)
    return texts


@given(lengths=LENGTHS, budget=BUDGETS, seed=SEEDS)
def test_no_batch_exceeds_the_budget_unless_it_is_a_single_text(lengths, budget, seed):
    for batch in plan(lengths, budget, seed):
        assert batch
        assert len(batch) == 1 or sum(max(1, lengths[index]) for index in batch) <= budget


@given(lengths=LENGTHS, budget=BUDGETS, seed=SEEDS)
def test_every_text_is_in_exactly_one_batch(lengths, budget, seed):
    planned = [index for batch in plan(lengths, budget, seed) for index in batch]
    assert sorted(planned) == list(range(len(lengths)))
    assert all(type(index) is int for index in planned)


@given(lengths=LENGTHS, budget=BUDGETS)
def test_without_shuffling_longer_texts_come_first_and_batches_are_full(lengths, budget):
    batches = plan(lengths, budget)
    order = [index for batch in batches for index in batch]
    assert order == sorted(range(len(lengths)), key=lambda index: -lengths[index])
    cost = [sum(max(1, lengths[index]) for index in batch) for batch in batches]
    following = [max(1, lengths[batch[0]]) for batch in batches[1:]]
    assert all(c + f > budget for c, f in zip(cost, following, strict=False))


def test_the_seed_determines_the_batches():
    lengths = np.random.default_rng(0).integers(0, 50, 500)
    assert plan(lengths, 100, 1) == plan(lengths, 100, 1)
    assert plan(lengths, 100, 1) != plan(lengths, 100, 2)


def test_the_next_epoch_has_other_batches():
    generator = np.random.default_rng(0)
    lengths = np.arange(200)
    first, second = (list(plan_batches(lengths, budget=400, shuffle=generator)) for _ in range(2))
    assert first != second


def test_shuffled_batches_are_in_random_order_with_texts_of_similar_length():
    lengths = np.random.default_rng(0).integers(1, 100, 2000)
    batches = plan(lengths, 500, 0)
    longest = [max(lengths[batch]) for batch in batches]
    assert longest != sorted(longest)
    assert longest != sorted(longest, reverse=True)
    padding = sum(max(lengths[batch]) * len(batch) for batch in batches)
    assert padding < 1.1 * lengths.sum()


def test_batches_that_are_divided_by_two_processes_have_equal_parts():
    lengths = np.random.default_rng(0).integers(50, 600, 2000)

    def idle(parts):
        """Return the share of the words that the busier process has more than the other one."""
        batches = plan(lengths, 2000, 0, parts)
        assert sorted(index for batch in batches for index in batch) == list(range(2000))
        assert max(lengths[batch].sum() for batch in batches) <= 2000
        parts_of = [divide(batch, lengths, 2) for batch in batches]
        busier = sum(max(lengths[part].sum() for part in pair) for pair in parts_of)
        return 2 * busier / lengths.sum() - 1

    assert idle(1) > 0.09
    assert idle(2) < 0.01


@given(st.integers(1, 99), st.integers(1, 20))
def test_a_batch_loses_at_most_a_third_of_its_texts_and_never_all(texts, parts):
    kept = _divisible(texts, parts)
    assert 3 * kept >= 2 * texts
    assert kept == texts or kept % parts == 0


@pytest.mark.parametrize("seed", [None, 0])
def test_an_empty_text_counts_as_one_word_and_no_texts_need_no_batch(seed):
    assert sorted(map(len, plan([0] * 10, 4, seed))) == [2, 4, 4]
    assert plan([], 4, seed) == []


NAMES = st.sampled_from(["a", "b", "é", "word", "longer"]) | st.integers(0, 9)
NAMED_TEXTS = st.lists(st.lists(NAMES, max_size=8), max_size=6)


@given(data=st.data(), texts=NAMED_TEXTS)
def test_packed_texts_are_unchanged_and_have_only_their_own_unknown_words(data, texts):
    encoded = EncodedTexts.from_words(map(a_text, texts), max_chars=16)
    chosen = data.draw(st.lists(st.sampled_from(range(len(texts))), max_size=8)) if texts else []
    packed = encoded.pack(chosen)
    assert unpacked(packed) == [texts[index] for index in chosen]
    spelled = {name for index in chosen for name in texts[index] if isinstance(name, str)}
    assert len(packed.unknown) == len(spelled)
    assert (packed.words.dtype, packed.lengths.dtype) == (np.int64, np.int64)
    assert packed.unknown.dtype == np.uint8


@given(texts=NAMED_TEXTS)
def test_encoded_texts_contain_every_text_and_each_unknown_word_once(texts):
    encoded = EncodedTexts.from_words(map(a_text, texts), max_chars=16)
    assert len(encoded) == len(texts)
    assert encoded.lengths.tolist() == list(map(len, texts))
    rows = [row.tobytes().rstrip(b"\0").decode() for row in encoded.unknown]
    assert rows == list(dict.fromkeys(n for text in texts for n in text if isinstance(n, str)))


def test_packing_does_not_change_the_texts():
    encoded = EncodedTexts.from_words([a_text(["a", 1]), a_text(["b", "a"])], max_chars=4)
    before = encoded.ids.copy()
    encoded.pack([1])
    assert (encoded.ids == before).all()


def test_a_batch_contains_the_words_that_the_tokenizer_found():
    texts = ["good film", "", "good grief, good film"]
    words = Tokenizer.from_words(["good", "film"]).encode(texts, max_words=3)
    packed = EncodedTexts.from_words(words, max_chars=3).pack([2, 1, 0])
    assert unpacked(packed) == [[1, "gri", ","], [], [1, 2]]


def test_values_of_words_are_gathered_and_scattered_by_text():
    texts = EncodedTexts(
        ids=np.array([5, 6, 7, -1, 8], dtype=np.int32),
        starts=np.array([0, 2, 2, 5]),
        unknown=np.zeros((1, 1), dtype=np.uint8),
    )
    values = np.arange(5) * 10
    assert texts.gather([2, 1, 0], values).tolist() == [20, 30, 40, 0, 10]
    back = np.zeros(5, dtype=np.int64)
    texts.scatter([2, 1, 0], np.array([20, 30, 40, 0, 10]), back)
    assert back.tolist() == values.tolist()
    taken = texts.take([2, 0])
    assert (taken.ids.tolist(), taken.starts.tolist()) == ([7, -1, 8, 5, 6], [0, 3, 5])
    assert len(texts.take([])) == 0
