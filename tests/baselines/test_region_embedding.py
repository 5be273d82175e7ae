"""Regions seen with the eyes of their middle word."""

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


def oracle(network, text):
    """Take the maximum of each region by hand, and add the regions up."""
    words = [network.project(token) for token in tokens_of(network, text)]
    total = torch.zeros(6)
    for place, word in enumerate(text):
        unit = network.units.weight[max(0, word)].view(7, 6)
        seen = [
            unit[shift + 3] * words[place + shift]
            for shift in range(-3, 4)
            if 0 <= place + shift < len(words)
        ]
        total = total + torch.stack(seen).amax(0)
    return network.output(total)


def test_a_word_weighs_its_neighbours_with_its_own_unit():
    network = random_model("region-embedding")
    for text in LONG:
        found = network(packed([text])).logits[0]
        torch.testing.assert_close(found, oracle(network, text), rtol=1e-5, atol=1e-5)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(random_model("region-embedding"))
    assert_empty_texts_are_ordinary(random_model("region-embedding"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("region-embedding"))


def test_most_of_its_parameters_are_seven_columns_for_every_known_word():
    layers = 9 * 6 + 6 + 20 * 7 * 6 + 6 * 3 + 3
    assert trainable_parameters(random_model("region-embedding")) == embedding_parameters() + layers


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("region-embedding", epochs=10) >= 0.99
