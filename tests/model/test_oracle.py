"""The network agrees with a slow, word-by-word implementation of the paper's equations."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.model import WordBatch
from fathomer.model.fast import fast_network
from tests.model.networks import (
    RAGGED,
    UNKNOWN,
    assert_same,
    in_float64,
    packed,
    random_depths,
    random_network,
    random_texts,
)
from tests.model.oracle import read

SEQUENCES = ["bilstm", "none", "sinusoidal", "learned"]
SELECTIONS = ["gumbel", "hard", "soft", "full", "supervised"]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("depth", SELECTIONS)
def test_the_network_and_the_fast_engine_agree_with_the_oracle(sequence, depth):
    network = random_network(sequence=sequence, depth=depth, max_positions=4)
    expected = read(network, RAGGED, unknown=UNKNOWN)
    assert_same(network(packed(RAGGED)), expected)
    assert_same(fast_network(network)(packed(RAGGED)), expected)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("seed", range(3))
def test_the_network_agrees_with_the_oracle_at_forced_depths(sequence, seed):
    network = random_network(seed=seed, sequence=sequence, max_positions=4)
    texts = random_texts(seed=seed)
    batch = packed(texts)
    depths = random_depths(batch, seed=seed)
    expected = read(network, texts, unknown=UNKNOWN, depths=depths.tolist())
    assert_same(network(batch, depths=depths), expected)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("forced", [False, True])
def test_the_network_agrees_with_the_oracle_in_float64(sequence, forced):
    network = in_float64(random_network(sequence=sequence, max_positions=4))
    batch = packed(RAGGED)
    depths = random_depths(batch) if forced else None
    expected = read(network, RAGGED, unknown=UNKNOWN, depths=depths.tolist() if forced else None)
    torch.set_default_dtype(torch.float64)  # used for the frequencies of sinusoidal positions
    try:
        assert_same(network(batch, depths=depths), expected, atol=1e-10)
    finally:
        torch.set_default_dtype(torch.float32)


@settings(max_examples=40)
@given(data=st.data())
def test_any_batch_at_any_depths_agrees_with_the_oracle(data):
    word = st.integers(-3, 19)
    texts = data.draw(st.lists(st.lists(word, max_size=6), min_size=1, max_size=5))
    batch = packed(texts)
    sizes = {"min_size": batch.num_words, "max_size": batch.num_words}
    depths = data.draw(st.lists(st.integers(1, 4), **sizes))
    network = random_network(sequence=data.draw(st.sampled_from(SEQUENCES)))
    found = network(batch, depths=torch.tensor(depths, dtype=torch.long))
    assert_same(found, read(network, texts, unknown=UNKNOWN, depths=depths))


@pytest.mark.parametrize("texts", [[[]], [[], []], [[5]], [[-2]], [[], [5]], [[5], []]], ids=str)
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_empty_texts_and_single_words_are_ordinary_input(texts, sequence):
    network = random_network(sequence=sequence)
    assert_same(network(packed(texts)), read(network, texts, unknown=UNKNOWN))


def test_a_batch_without_texts_has_an_empty_output():
    output = random_network()(WordBatch.from_ids([]))
    assert output.logits.shape == (0, 3)
    assert output.words.shape == (0, 6)


def test_the_logits_of_an_empty_text_are_the_bias():
    network = random_network()
    torch.testing.assert_close(network(WordBatch.from_ids([[]])).logits[0], network.output.bias)


@pytest.mark.parametrize("settings", [{"depth_size": 1}, {"hidden_size": 2}, {"max_depth": 1}])
def test_the_smallest_sizes_agree_with_the_oracle(settings):
    network = random_network(**settings)
    assert_same(network(packed(RAGGED)), read(network, RAGGED, unknown=UNKNOWN))


def test_a_long_text_at_the_depth_of_the_paper_agrees_with_the_oracle():
    network = random_network(max_depth=9)
    texts = [list(range(20)) * 10, [3]]
    batch = packed(texts)
    depths = random_depths(batch, max_depth=9)
    assert_same(network(batch, depths=depths), read(network, texts, depths=depths.tolist()))


def test_an_id_without_a_spelling_is_refused():
    with pytest.raises(ValueError, match=r"^id -3, but 2 unknown words are spelled$"):
        WordBatch.from_ids([[1, -3]], unknown=UNKNOWN[:2])
