"""Disconnected windows of a GRU."""

import torch

from fathomer.nn.interface import trainable_parameters

from ..nn.networks import packed
from .expectations import (
    LONG,
    accuracy_on_seen_texts,
    assert_company_does_not_matter,
    assert_empty_texts_are_ordinary,
    assert_gradients_reach_everything,
    embedding_parameters,
    random_model,
    tokens_of,
)

WINDOW = 15


def gru_step(gru, token, state):
    """Write one step of a GRU out, gate by gate."""
    w_r, w_z, w_n = gru.weight_ih_l0.chunk(3)
    u_r, u_z, u_n = gru.weight_hh_l0.chunk(3)
    a_r, a_z, a_n = gru.bias_ih_l0.chunk(3)
    b_r, b_z, b_n = gru.bias_hh_l0.chunk(3)
    reset = torch.sigmoid(w_r @ token + a_r + u_r @ state + b_r)
    update = torch.sigmoid(w_z @ token + a_z + u_z @ state + b_z)
    new = torch.tanh(w_n @ token + a_n + reset * (u_n @ state + b_n))
    return (1 - update) * new + update * state


def oracle(network, text):
    """Start the GRU anew for each word."""
    tokens = tokens_of(network, text)
    best = torch.zeros(6)
    for place in range(len(tokens)):
        state = torch.zeros(6)
        for token in tokens[max(0, place - WINDOW + 1) : place + 1]:
            state = gru_step(network.gru, token, state)
        best = torch.maximum(best, network.hidden(state).relu())
    return network.output(best)


def test_each_word_is_read_with_the_fourteen_words_before_it():
    network = random_model("drnn")
    assert max(map(len, LONG)) > 2 * WINDOW
    for text in LONG:
        found = network(packed([text])).logits[0]
        torch.testing.assert_close(found, oracle(network, text), rtol=0, atol=1e-5)


def test_a_word_that_left_the_window_is_forgotten():
    network = random_model("drnn")
    first, second = packed([[1, *[5] * WINDOW]]), packed([[2, *[5] * WINDOW]])
    tokens = [network.embedding(batch) for batch in (first, second)]
    states = [
        network.windows(distinct[places], batch)
        for (distinct, places), batch in zip(tokens, (first, second), strict=True)
    ]
    assert torch.allclose(states[0][-1], states[1][-1], atol=1e-6)
    assert not torch.allclose(states[0][-2], states[1][-2], atol=1e-6)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(random_model("drnn"))
    assert_empty_texts_are_ordinary(random_model("drnn"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("drnn"))


def test_its_parameters_are_those_of_a_gru_and_two_layers():
    layers = 3 * (9 * 6 + 6 * 6 + 2 * 6) + 6 * 6 + 6 + 6 * 3 + 3
    assert trainable_parameters(random_model("drnn")) == embedding_parameters() + layers


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("drnn", epochs=15) >= 0.99
