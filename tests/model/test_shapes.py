"""Wrong shapes are caught: the annotations of `fathomer.model` are checked in the tests."""

import numpy as np
import pytest
import torch
from jaxtyping import TypeCheckError

from fathomer.model import WordBatch
from fathomer.model.graph import sort_by_depth
from fathomer.model.model import States, pool_texts, select_depths
from fathomer.text.encode import PackedWords
from tests.model.networks import packed, random_depths, random_network

WORDS = torch.zeros(3, dtype=torch.long)
NO_UNKNOWN = torch.zeros(0, 1, dtype=torch.uint8)


@pytest.mark.parametrize(
    "parts",
    [
        (WORDS[None], WORDS, NO_UNKNOWN),
        (WORDS.float(), WORDS, NO_UNKNOWN),
        (WORDS, torch.tensor(3), NO_UNKNOWN),
        (WORDS, WORDS, NO_UNKNOWN.long()),
        (WORDS, WORDS, NO_UNKNOWN[:, 0]),
    ],
)
def test_a_batch_of_wrong_shapes_is_caught(parts):
    with pytest.raises(TypeCheckError):
        WordBatch(*parts)


def test_states_of_different_widths_are_caught():
    batch = WordBatch.from_ids([[1, 2, 3]])
    pool_texts(torch.zeros(3, 6), torch.zeros(1, 6), batch)
    with pytest.raises(TypeCheckError):
        pool_texts(torch.zeros(3, 6), torch.zeros(1, 5), batch)


def test_states_with_a_missing_axis_are_caught():
    batch = WordBatch.from_ids([[1, 2, 3]])
    graph = sort_by_depth(batch, WORDS + 1)
    assert graph.text_mean(torch.zeros(3, 6)).shape == (1, 6)
    with pytest.raises(TypeCheckError):
        graph.text_mean(torch.zeros(3))


def test_gates_of_the_wrong_number_of_words_are_caught():
    slstm = random_network().slstm
    graph = sort_by_depth(WordBatch.from_ids([[1, 2, 3]]), WORDS + 1)
    slstm(torch.zeros(3, 7), torch.zeros(3, 42), graph)
    with pytest.raises(TypeCheckError):
        slstm(torch.zeros(3, 7), torch.zeros(2, 42), graph)


def test_gates_of_different_widths_are_caught():
    slstm = random_network().slstm
    graph = sort_by_depth(WordBatch.from_ids([[1, 2, 3]]), WORDS + 1)
    word, node = torch.zeros(4, 6), torch.zeros(1, 6)
    states = States(h=word, c=word, g=node, c_g=node)
    slstm.word_transition(states, torch.zeros(3, 42), torch.zeros(1, 42), graph)
    with pytest.raises(TypeCheckError):
        slstm.word_transition(states, torch.zeros(3, 42), torch.zeros(1, 1), graph)


def test_rows_and_depths_of_different_numbers_of_words_are_caught():
    slstm = random_network().slstm
    tokens, embedding = torch.zeros(2, 9), torch.zeros(4, 7)
    assert slstm.token_sums(tokens, WORDS, embedding, WORDS + 1).shape == (3, 42)
    with pytest.raises(TypeCheckError):
        slstm.token_sums(tokens, WORDS, embedding, WORDS[:1] + 1)


def test_logits_of_a_single_word_need_two_axes():
    with pytest.raises(TypeCheckError):
        select_depths(torch.zeros(4), how="hard", sample=False)


def test_float_depths_are_caught():
    batch = packed([[1, 2]])
    with pytest.raises(TypeCheckError):
        random_network()(batch, depths=random_depths(batch).float())


def test_packed_words_give_the_same_batch_as_their_ids():
    packed_words = PackedWords(
        words=np.array([4, -1, 8]),
        lengths=np.array([2, 0, 1]),
        unknown=np.frombuffer(b"ab", dtype=np.uint8).reshape(1, 2).copy(),
    )
    batch = WordBatch.from_packed(packed_words)
    expected = WordBatch.from_ids([[4, -1], [], [8]], unknown=batch.unknown)
    for name in ("words", "lengths", "text_of", "positions", "word_counts"):
        assert torch.equal(getattr(batch, name), getattr(expected, name)), name
    assert batch.text_of.tolist() == [0, 0, 2]
    assert batch.positions.tolist() == [0, 1, 0]
    assert [side.tolist() for side in batch.neighbours] == [[3, 0, 3], [1, 3, 3]]
    assert (batch.num_texts, batch.num_words) == (3, 3)
