"""Pooled words without order."""

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
    """Pool the refined words by hand."""
    words = [network.refine(token).relu().tolist() for token in tokens_of(network, text)]
    highest = [max(word[i] for word in words) for i in range(6)]
    mean = [sum(word[i] for word in words) / len(words) for i in range(6)]
    return network.output(network.hidden(torch.tensor([*highest, *mean])).relu())


def test_it_pools_maximum_and_mean_of_the_refined_words():
    network = random_model("swem-concat")
    for text in (text for text in LONG if text):
        found = network(packed([text])).logits[0]
        torch.testing.assert_close(found, oracle(network, text), rtol=0, atol=1e-5)


def test_word_order_has_no_part_in_it():
    network = random_model("swem-concat")
    there, back = network(packed([[1, 2, 3, -1], [-1, 3, 1, 2]])).logits
    torch.testing.assert_close(there, back, rtol=0, atol=1e-6)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(random_model("swem-concat"))
    assert_empty_texts_are_ordinary(random_model("swem-concat"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("swem-concat"))


def test_its_parameters_are_those_of_two_layers():
    layers = 9 * 6 + 6 + 12 * 6 + 6 + 6 * 3 + 3
    assert trainable_parameters(random_model("swem-concat")) == embedding_parameters() + layers


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("swem-concat") >= 0.99
