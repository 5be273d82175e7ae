"""The disconnected recurrent network."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from experiments.rivals.drnn import WINDOW, window_states
from tests.model.baselines.small import LONG, assert_agrees, small_model, tokens_of
from tests.model.networks import packed


def gru_step(gru, token, state):
    """Compute one step of a GRU, gate by gate."""
    w_r, w_z, w_n = gru.weight_ih_l0.chunk(3)
    u_r, u_z, u_n = gru.weight_hh_l0.chunk(3)
    a_r, a_z, a_n = gru.bias_ih_l0.chunk(3)
    b_r, b_z, b_n = gru.bias_hh_l0.chunk(3)
    reset = torch.sigmoid(w_r @ token + a_r + u_r @ state + b_r)
    update = torch.sigmoid(w_z @ token + a_z + u_z @ state + b_z)
    new = torch.tanh(w_n @ token + a_n + reset * (u_n @ state + b_n))
    return (1 - update) * new + update * state


def oracle(network, text):
    """Restart the GRU at the window of each word."""
    tokens = tokens_of(network, text)
    best = torch.zeros(6, dtype=torch.float64)
    for place in range(len(tokens)):
        state = torch.zeros(6, dtype=torch.float64)
        for token in tokens[max(0, place - WINDOW + 1) : place + 1]:
            state = gru_step(network.gru, token, state)
        best = torch.maximum(best, network.hidden(state).relu())
    return network.output(best)


def test_each_word_is_read_with_the_fourteen_words_before_it():
    network = small_model("drnn", hidden_size=6)
    assert max(map(len, LONG)) > 2 * WINDOW
    assert_agrees(network, oracle, LONG)


def test_a_word_outside_the_window_has_no_influence():
    network = small_model("drnn", hidden_size=6)
    first, second = packed([[1, *[5] * WINDOW]]), packed([[2, *[5] * WINDOW]])
    states = [
        window_states(network.gru, network.embedding(batch), batch, WINDOW)
        for batch in (first, second)
    ]
    assert torch.allclose(states[0][-1], states[1][-1], atol=1e-6)
    assert not torch.allclose(states[0][-2], states[1][-2], atol=1e-6)


def test_a_word_is_projected_once_not_in_every_window():
    network, words = small_model("drnn", hidden_size=6), 40
    tokens = torch.zeros(words, 9, dtype=torch.float64)
    with FlopCounterMode(display=False) as counter:
        window_states(network.gru, tokens, packed([[1] * words]), WINDOW)
    steps = sum(min(place, WINDOW) for place in range(1, words + 1))
    assert counter.get_total_flops() == 2 * 18 * (9 * words + 6 * steps)
