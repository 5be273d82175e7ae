"""The pyramid of convolutions."""

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


def convolved(layer, places):
    """Look at each place and its two neighbours."""
    outputs = []
    for middle in range(len(places)):
        response = layer.bias.clone()
        for offset in (-1, 0, 1):
            if 0 <= middle + offset < len(places):
                response = response + layer.weight[:, :, offset + 1] @ places[middle + offset]
        outputs.append(response)
    return outputs


def oracle(network, text):
    """Climb the pyramid by hand."""
    places = convolved(network.region, tokens_of(network, text))
    layers = list(network.convolutions)
    for block in range(7):
        if block:
            places = [torch.stack(places[i : i + 3]).amax(0) for i in range(0, len(places), 2)]
        inner = convolved(layers[2 * block], [place.relu() for place in places])
        change = convolved(layers[2 * block + 1], [place.relu() for place in inner])
        places = [place + more for place, more in zip(places, change, strict=True)]
    return network.output(torch.stack(places).amax(0))


def tame(network):
    """Make the weights so small that fourteen layers do not blow a rounding error up."""
    with torch.no_grad():
        for layer in network.convolutions:
            layer.weight.mul_(0.5)
    return network


def test_it_halves_the_places_before_each_block_but_the_first():
    network = tame(random_model("dpcnn"))
    for text in (text for text in LONG if text):
        found = network(packed([text])).logits[0]
        torch.testing.assert_close(found, oracle(network, text), rtol=1e-5, atol=1e-5)


def test_company_and_emptiness_change_nothing():
    assert_company_does_not_matter(tame(random_model("dpcnn")))
    assert_empty_texts_are_ordinary(random_model("dpcnn"))


def test_gradients_reach_every_parameter():
    assert_gradients_reach_everything(random_model("dpcnn", hidden_size=12))


def test_its_parameters_are_those_of_fifteen_weight_layers_and_the_output():
    layers = 3 * 9 * 6 + 6 + 14 * (3 * 6 * 6 + 6) + 6 * 3 + 3
    assert trainable_parameters(random_model("dpcnn")) == embedding_parameters() + layers


def test_it_learns_what_it_has_seen():
    assert accuracy_on_seen_texts("dpcnn", epochs=20, rate=0.005) >= 0.99
