"""Kim's convolution over words."""

import torch

from fathomer.baselines.text_cnn import WIDTHS
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
    """Slide each filter over the text by hand, with zeros before and after it."""
    features = []
    tokens = tokens_of(network, text)
    for width, layer in zip(WIDTHS, network.convolutions, strict=True):
        best = torch.zeros(layer.out_channels)
        for first in range(-width + 1, len(tokens)) if tokens else ():
            response = layer.bias.clone()
            for offset in range(width):
                if 0 <= first + offset < len(tokens):
                    response = response + layer.weight[:, :, offset] @ tokens[first + offset]
            best = torch.maximum(best, response.relu())
        features.append(best)
    return network.output(torch.cat(features))


def test_it_slides_its_filters_over_the_words_and_keeps_the_strongest_response():
    network = random_model("text-cnn", hidden_size=12)
    for text in LONG:
        found = network(packed([text])).logits[0]
        torch.testing.assert_close(found, oracle(network, text), rtol=0, atol=1e-5)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(random_model("text-cnn", hidden_size=12))
    assert_empty_texts_are_ordinary(random_model("text-cnn"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("text-cnn", hidden_size=12))


def test_there_are_a_hundred_maps_of_each_width_at_the_default_size():
    network = random_model("text-cnn", hidden_size=400)
    assert [layer.out_channels for layer in network.convolutions] == [100, 100, 100]
    convolutions = (3 + 4 + 5) * 9 * 100 + 300
    assert trainable_parameters(network) == embedding_parameters() + convolutions + 300 * 3 + 3


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("text-cnn", epochs=15) >= 0.99
