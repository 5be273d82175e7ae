"""Invariances of the network, and how far a change spreads in the graph."""

import pytest
import torch
from torch import Tensor

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.graph import sort_by_depth
from fathomer.model.model import SLSTM, States
from tests.model.networks import (
    RAGGED,
    copied_into,
    in_float64,
    packed,
    random_depths,
    random_network,
)

SEQUENCES = ["bilstm", "none", "sinusoidal", "learned"]


def assert_same_numbers(found: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-12)


def read_texts(network: DepthAdaptiveNetwork, texts: list[list[int]], depths: list[Tensor]):
    """Return, for each text, its logits, sentence node, word states and depths."""
    batch = packed(texts)
    with torch.no_grad():
        output = network(batch, depths=torch.cat(depths) if depths else None)
    lengths = batch.lengths.tolist()
    words = zip(output.words.split(lengths), output.depths.split(lengths), strict=True)
    return list(zip(output.logits, output.sentences, *zip(*words, strict=True), strict=True))


def forced_depths(texts: list[list[int]]) -> list[Tensor]:
    batch = packed(texts)
    return list(random_depths(batch).split(batch.lengths.tolist()))


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("forced", [False, True])
def test_the_order_of_texts_in_the_batch_does_not_matter(sequence, forced):
    network = in_float64(random_network(sequence=sequence))
    order = [3, 6, 1, 0, 5, 2, 4]
    depths = forced_depths(RAGGED) if forced else []
    in_order = read_texts(network, RAGGED, depths)
    shuffled = read_texts(network, [RAGGED[k] for k in order], [depths[k] for k in order if forced])
    for text, k in zip(shuffled, order, strict=True):
        for found, expected in zip(text, in_order[k], strict=True):
            assert_same_numbers(found, expected)


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("forced", [False, True])
def test_a_text_gets_the_same_result_alone_and_in_a_batch(sequence, forced):
    network = in_float64(random_network(sequence=sequence))
    depths = forced_depths(RAGGED) if forced else []
    together = read_texts(network, RAGGED, depths)
    for k, text in enumerate(RAGGED):
        [alone] = read_texts(network, [text], depths[k : k + 1])
        for found, expected in zip(alone, together[k], strict=True):
            assert_same_numbers(found, expected)


def test_forced_full_depth_equals_the_full_depth_network():
    network = random_network(depth="gumbel")
    full = copied_into(network, depth="full")
    batch = packed(RAGGED)
    forced = network(batch, depths=torch.full((batch.num_words,), 4))
    for found, expected in zip(forced, full(batch), strict=True):
        assert torch.equal(found, expected)


def test_a_greater_max_depth_does_not_change_results_at_the_same_depths():
    network = random_network(max_depth=4)
    deeper = copied_into(network, max_depth=9)
    batch = packed(RAGGED)
    depths = random_depths(batch)
    small, large = network(batch, depths=depths), deeper(batch, depths=depths)
    for name in ("logits", "depths", "words", "sentences"):
        assert torch.equal(getattr(small, name), getattr(large, name)), name


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_a_word_vector_affects_only_its_own_text(sequence):
    network = random_network(sequence=sequence)
    depths = forced_depths(RAGGED)
    before = read_texts(network, RAGGED, depths)
    with torch.no_grad():
        network.embedding.word.weight[8] += 1  # a word of the first text
    after = read_texts(network, RAGGED, depths)
    assert not torch.equal(before[0][0], after[0][0])
    for old, new in zip(before[1:], after[1:], strict=True):
        assert all(torch.equal(a, b) for a, b in zip(old, new, strict=True))


@pytest.mark.parametrize("moved", range(7))
def test_one_step_carries_a_state_to_the_word_and_its_two_neighbours(moved):
    """Words 0-2 and 3-6 are two texts; the sentence nodes stay fixed."""
    slstm = random_network().slstm
    graph = sort_by_depth(WordBatch.from_ids([[0] * 3, [0] * 4]), torch.tensor([2] * 7))
    g, c_g = torch.randn(2, 2, 6)

    def step(h, c, from_token):
        with torch.no_grad():
            sums = h[graph.window].flatten(1) @ slstm.window.weight.T + from_token
            from_node = slstm.sentence(g) + slstm.window.bias
            return slstm.word_transition(States(h, c, g, c_g), sums, from_node, graph)[0]

    h, c = (torch.nn.functional.pad(torch.randn(7, 6), (0, 0, 0, 1)) for _ in "hc")
    inputs = [h, c, torch.randn(7, 42)]
    texts = [0] * 3 + [1] * 4
    near = {w for w in (moved - 1, moved, moved + 1) if 0 <= w < 7 and texts[w] == texts[moved]}
    for part in range(3):  # h, c, token
        changed = [tensor.clone() for tensor in inputs]
        changed[part][moved] += 1
        reached = torch.nonzero((step(*inputs) != step(*changed)).any(1))[:, 0].tolist()
        assert set(reached) == ({moved} if part == 2 else near)


def run(slstm: SLSTM, batch: WordBatch, depths: Tensor, inner: Tensor, from_token: Tensor):
    """Run only the layers of the S-LSTM, on words in text order."""
    graph = sort_by_depth(batch, depths)
    with torch.no_grad():
        words, sentences = slstm(inner[graph.order], from_token[graph.order], graph)
    return words[graph.ranks], sentences


def random_inputs(batch: WordBatch) -> tuple[Tensor, Tensor]:
    """Draw the inner vector and U x of Eq. (2) for each word."""
    generator = torch.Generator().manual_seed(1)
    shapes = [(batch.num_words, 7), (batch.num_words, 42)]
    return tuple(torch.randn(s, generator=generator, dtype=torch.float64) for s in shapes)


def test_a_stopped_word_keeps_the_state_of_its_last_step():
    """Capping all depths shows the states after that step; the tokens stay fixed."""
    slstm = in_float64(random_network()).slstm
    batch = packed(RAGGED)
    depths = random_depths(batch)
    inputs = random_inputs(batch)
    last, _ = run(slstm, batch, depths, *inputs)
    for step in range(1, 5):
        then, _ = run(slstm, batch, depths.clamp(max=step), *inputs)
        stopped = depths <= step
        assert_same_numbers(last[stopped], then[stopped])
        assert not torch.isclose(last[~stopped], then[~stopped]).all(1).any()


def test_a_sentence_node_stops_with_the_deepest_word_of_its_text():
    slstm = in_float64(random_network()).slstm
    batch = WordBatch.from_ids([[1, 2], [3, 4, 5], []])
    depths = torch.tensor([2, 1, 4, 1, 3])
    inputs = random_inputs(batch)
    _, last = run(slstm, batch, depths, *inputs)
    _, then = run(slstm, batch, depths.clamp(max=2), *inputs)
    _, early = run(slstm, batch, depths.clamp(max=1), *inputs)
    assert_same_numbers(last[0], then[0])
    assert not torch.isclose(last[0], early[0]).all()
    assert not torch.isclose(last[1], then[1]).all()
    assert not last[2].any()


@pytest.mark.parametrize("deepest", [1, 2, 3, 4])
def test_a_deeper_text_in_the_batch_does_not_change_a_sentence_node(deepest):
    network = in_float64(random_network())
    texts = [[1, 2, 3], [4, 5]]
    alone = read_texts(network, texts[:1], [torch.tensor([1, 2, 1])])[0]
    together = read_texts(network, texts, [torch.tensor([1, 2, 1]), torch.tensor([deepest, 1])])[0]
    for found, expected in zip(together, alone, strict=True):
        assert_same_numbers(found, expected)
