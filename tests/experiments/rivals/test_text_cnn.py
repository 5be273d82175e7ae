"""The CNN over words."""

import torch

from experiments.rivals.text_cnn import WIDTHS
from tests.model.baselines.small import LONG, assert_agrees, small_model, tokens_of


def max_over_time(convolutions, tokens):
    """Slide each filter over the text and the zeros around it, in plain loops."""
    features = []
    for width, layer in zip(WIDTHS, convolutions, strict=True):
        best = torch.zeros(layer.out_channels, dtype=torch.float64)
        for first in range(-width + 1, len(tokens)) if len(tokens) else ():
            response = layer.bias.clone()
            for offset in range(width):
                if 0 <= first + offset < len(tokens):
                    response = response + layer.weight[:, :, offset] @ tokens[first + offset]
            best = torch.maximum(best, response.relu())
        features.append(best)
    return torch.cat(features)


def oracle(network, text):
    return network.output(max_over_time(network.convolutions, tokens_of(network, text)))


def test_it_agrees_with_plain_loops():
    network = small_model("text-cnn", hidden_size=12)
    assert_agrees(network, oracle, LONG)


def test_each_width_has_a_hundred_feature_maps_at_the_default_size():
    network = small_model("text-cnn", hidden_size=400)
    assert [layer.out_channels for layer in network.convolutions] == [100, 100, 100]
