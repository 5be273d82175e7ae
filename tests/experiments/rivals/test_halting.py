"""Adaptive computation time against plain loops, in the S-LSTM and the Universal Transformer."""

import pytest
import torch

from experiments.rivals.halting import COST, THRESHOLD, HaltingUnit, with_ponder_cost
from experiments.rivals.universal_transformer import POSITIONS
from fathomer.model.graph import WordBatch
from fathomer.model.positions import sinusoids
from tests.model.baselines.small import RAGGED, assert_close, pooled, small_model, tokens_of
from tests.model.networks import packed


def halt_plainly(unit, states):
    """Return what is read from one word, its number of steps and its ponder, given all its states."""
    read, total = torch.zeros_like(states[0]), 0.0
    for number, h in enumerate(states, start=1):
        p = torch.sigmoid(unit.unit(h))
        if total + p >= THRESHOLD or number == len(states):
            return read + (1 - total) * h, number, number + 1 - total
        read, total = read + p * h, total + p
    raise AssertionError


def test_a_word_halts_when_its_probabilities_add_up_to_one():
    torch.manual_seed(0)
    unit = HaltingUnit(4).double()
    states = 4 * torch.randn(6, 30, 4, dtype=torch.float64)
    halted = unit(lambda number, _: states[number], 30, 6)
    assert len(set(halted.steps.tolist())) > 2
    for word in range(30):
        read, steps, ponder = halt_plainly(unit, states[:, word])
        assert_close(halted.states[word], read)
        assert int(halted.steps[word]) == steps
        assert_close(halted.ponder[word], ponder.squeeze())


def test_the_ponder_cost_is_in_the_gradient_only():
    batch = WordBatch.from_ids([[1, 2], [3], []])
    logits = torch.randn(3, 2, requires_grad=True)
    ponder = torch.tensor([2.0, 4.0, 5.0], requires_grad=True)
    costed = with_ponder_cost(logits, ponder, batch)
    assert torch.equal(costed, logits)
    costed.sum().backward()
    assert torch.equal(logits.grad, torch.ones(3, 2))
    assert_close(ponder.grad, COST / 3 * torch.tensor([0.5, 0.5, 1.0]))


def always(network, halts):
    """Let the words halt after the first step, or never."""
    torch.nn.init.zeros_(network.halting.unit.weight)
    torch.nn.init.constant_(network.halting.unit.bias, 50.0 if halts else -50.0)


def test_an_s_lstm_whose_words_never_halt_is_the_s_lstm():
    act, plain = small_model("act-s-lstm"), small_model("s-lstm")
    plain.load_state_dict(act.state_dict(), strict=False)
    always(act, halts=False)
    batch = WordBatch.from_ids(RAGGED)
    with torch.no_grad():
        assert_close(act(batch).logits, plain(batch).logits)


def test_an_s_lstm_whose_words_halt_at_once_takes_one_step():
    act, plain = small_model("act-s-lstm"), small_model("s-lstm", max_depth=1)
    plain.load_state_dict(act.state_dict(), strict=False)
    always(act, halts=True)
    batch = WordBatch.from_ids(RAGGED)
    with torch.no_grad():
        assert_close(act(batch).logits, plain(batch).logits)


@pytest.mark.parametrize("halts", [True, False])
def test_the_universal_transformer_repeats_one_layer(halts):
    network = small_model("universal-transformer")
    always(network, halts)
    steps = 1 if halts else network.config.max_depth
    times = sinusoids(torch.arange(1, steps + 1, dtype=torch.float64), network.size)
    for text in filter(None, RAGGED):
        places = sinusoids(torch.arange(len(text), dtype=torch.float64), network.size)
        with torch.no_grad():
            h = network.input(tokens_of(network, text))
            for number in range(steps):
                h = network.layer((h + POSITIONS * (places + times[number]))[None])[0]
            assert_close(network(packed([text])).logits[0], network.output(pooled(network.norm(h))))
