"""The baselines agree with PyTorch's layers or with our network, where they must."""

import pytest
import torch
from torch import nn

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.baselines.comparison import packed, padded
from fathomer.model.baselines.transformer import HEADS, LAYERS
from tests.model.baselines.small import (
    RAGGED,
    assert_close,
    pooled,
    ragged_logits,
    small_config,
    small_model,
    tokens_of,
    transformer_input,
)


def test_packing_reverses_padding():
    batch = WordBatch.from_ids(RAGGED)
    words = torch.randn(batch.num_words, 3)
    table, here = padded(words, batch)
    assert here.sum(1).tolist() == [len(text) for text in RAGGED]
    assert not table[~here].any()
    assert torch.equal(packed(table, batch), words)


def test_the_s_lstm_is_our_network_at_full_depth_without_a_sequence():
    """The initial states come from ReLU(W x + b), which keeps the tokens if W = [I; -I].

    The depth embedding is the same for all words and therefore acts like a bias.
    """
    s_lstm = small_model("s-lstm")
    token = 9
    settings = {"depth": "full", "sequence": "none", "depth_size": 2 * token}
    ours = DepthAdaptiveNetwork(small_config("fathomer", **settings)).double().eval()
    mine = dict(s_lstm.named_parameters())
    with torch.no_grad():
        for name, parameter in ours.named_parameters():
            if name in mine and mine[name].shape == parameter.shape:
                parameter.copy_(mine[name])
        eye, initial = torch.eye(token, dtype=torch.float64), s_lstm.slstm.initial.weight
        ours.depth.inner.weight.copy_(torch.cat([eye, -eye]))
        ours.slstm.initial.weight.copy_(torch.cat([initial, -initial], 1))
        ours.slstm.token.weight[:, :token] = s_lstm.slstm.token.weight
        by_depth = ours.slstm.token.weight[:, token:] @ ours.depth.embedding()[-1]
        ours.slstm.window.bias -= by_depth
    batch = WordBatch.from_ids(RAGGED)
    with torch.no_grad():
        assert_close(s_lstm(batch).logits, ours(batch).logits)
    assert set(ours(batch).depths.tolist()) == {ours.config.max_depth}
    s_lstm.slstm.node.bias.data += 1
    assert not torch.allclose(s_lstm(batch).logits, ours(batch).logits, atol=1e-4)


@pytest.mark.parametrize("hidden_size", [16, 13])
def test_the_bilstms_are_those_of_pytorch_over_each_text(hidden_size):
    network = small_model("bilstm", hidden_size=hidden_size, sequence="none")
    size, token = hidden_size // 2, tokens_of(network, [4]).shape[1]
    oracle = nn.LSTM(token, size, num_layers=3, bidirectional=True, batch_first=True).double()
    weights = {}
    for number, layer in enumerate(network.layers):
        for direction, name in enumerate(("", "_reverse")):
            for ours, theirs in (
                ("input", "weight_ih"),
                ("recurrent", "weight_hh"),
                ("bias", "bias_ih"),
            ):
                g, i, f, o = getattr(layer, ours)[direction].chunk(4)
                weights[f"{theirs}_l{number}{name}"] = torch.cat([i, f, g, o])
            weights[f"bias_hh_l{number}{name}"] = torch.zeros(4 * size)
    oracle.load_state_dict(weights)
    for text, found in zip(RAGGED, ragged_logits(network), strict=True):
        tokens = tokens_of(network, text)
        states = oracle(tokens[None])[0][0] if text else tokens.new_zeros(0, 2 * size)
        assert_close(found, network.output(pooled(states)))


def test_the_bilstms_have_dropout_only_between_layers_and_before_the_output():
    network = small_model("bilstm", hidden_dropout=0.5).train()
    network.embedding.dropout.p = 0.0
    seen = []
    network.hidden_dropout.register_forward_hook(
        lambda _, inputs, __: seen.append(inputs[0].shape[1])
    )
    network(WordBatch.from_ids(RAGGED))
    assert seen == [16, 16, 32]


@pytest.mark.parametrize("hidden_size", [16, 12, 18])
def test_the_transformer_is_the_encoder_of_pytorch_over_each_text(hidden_size):
    network = small_model("transformer", hidden_size=hidden_size)
    size = network.size
    assert size == {16: 16, 12: 16, 18: 24}[hidden_size]
    layer = nn.TransformerEncoderLayer(size, HEADS, 4 * size, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(size), enable_nested_tensor=False)
    encoder.double().eval().load_state_dict(network.encoder.state_dict())
    for text, found in zip(RAGGED, ragged_logits(network), strict=True):
        x = transformer_input(network, text)
        states = encoder(x[None])[0] if text else x
        assert_close(found, network.output(pooled(states)))
