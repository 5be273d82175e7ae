"""The deep pyramid CNN."""

import torch

from tests.model.baselines.small import WORDY, assert_agrees, small_model, tokens_of


def convolved(layer, places):
    """Convolve each place with its two neighbours."""
    outputs = []
    for middle in range(len(places)):
        response = layer.bias.clone()
        for offset in (-1, 0, 1):
            if 0 <= middle + offset < len(places):
                response = response + layer.weight[:, :, offset + 1] @ places[middle + offset]
        outputs.append(response)
    return outputs


def oracle(network, text):
    """Compute the pyramid of one text in plain loops."""
    places = convolved(network.region, tokens_of(network, text))
    layers = list(network.convolutions)
    for block in range(7):
        if block:
            places = [torch.stack(places[i : i + 3]).amax(0) for i in range(0, len(places), 2)]
        inner = convolved(layers[2 * block], [place.relu() for place in places])
        change = convolved(layers[2 * block + 1], [place.relu() for place in inner])
        places = [place + more for place, more in zip(places, change, strict=True)]
    return network.output(torch.stack(places).amax(0))


def test_it_halves_the_positions_before_each_block_but_the_first():
    network = small_model("dpcnn", hidden_size=6)
    assert_agrees(network, oracle, WORDY)
