"""The R-Transformer against PyTorch's GRU over each window."""

import torch

from experiments.rivals.r_transformer import WINDOW
from tests.model.baselines.small import LONG, assert_agrees, pooled, small_model, tokens_of


def run_plainly(network, text):
    """Compute the logits of one text; each window is read by itself."""
    x = network.input(tokens_of(network, text))
    for layer in network.layers:
        normed = layer.norm(x)
        windows = [normed[max(0, t - WINDOW + 1) : t + 1] for t in range(len(x))]
        x = x + torch.stack([layer.local(window[None])[1][0, 0] for window in windows])
        x = layer.attention(x[None])[0]
    return network.output(pooled(network.norm(x)))


def test_it_agrees_with_a_gru_over_each_window():
    texts = [text for text in LONG if text][:6]
    with torch.no_grad():
        assert_agrees(small_model("r-transformer"), run_plainly, texts)
