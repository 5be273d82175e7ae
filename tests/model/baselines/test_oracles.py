"""The comparison models give what slow plain loops over their papers' equations give."""

import math

import pytest
import torch
from torch import nn

from experiments.rivals.adasent import LEVELS
from experiments.rivals.capsule import NGRAMS, CapsuleLayer, squash
from experiments.rivals.rcrn import listen
from experiments.rivals.star_transformer import HEADS as STAR_HEADS
from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.baselines.comparison import packed, padded
from fathomer.model.baselines.transformer import HEADS, LAYERS
from fathomer.model.model import sinusoids
from fathomer.model.registry import build_model
from tests.model.baselines.small import RAGGED, assert_close, small_config, small_model, tokens_of


def answers(network):
    """Give the logits for the ragged batch."""
    with torch.no_grad():
        return network(WordBatch.from_ids(RAGGED)).logits


def pooled(states, *more):
    """Give maximum and mean, as Eq. (15) does; of nothing, zeros."""
    if not len(states):
        return torch.zeros(2 * states.shape[1] + sum(map(len, more)), dtype=states.dtype)
    return torch.cat([states.max(0).values, states.mean(0), *more]).clamp(min=0)


def positions(count, size):
    return sinusoids(torch.arange(count, dtype=torch.float64), size)


def test_words_come_back_from_a_padded_table():
    batch = WordBatch.from_ids(RAGGED)
    words = torch.randn(batch.num_words, 3)
    table, here = padded(words, batch)
    assert here.sum(1).tolist() == [len(text) for text in RAGGED]
    assert not table[~here].any()
    assert torch.equal(packed(table, batch), words)


def test_the_s_lstm_is_our_network_at_full_depth_without_a_sequence():
    """Our initial states come from ReLU(W x + b): with W = [I; -I] that carries the tokens over.

    Our depth embedding is the same for all words, and so acts as a part of the bias.
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
def test_the_stack_of_bilstms_is_pytorch_s_over_each_text(hidden_size):
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
    for text, found in zip(RAGGED, answers(network), strict=True):
        tokens = tokens_of(network, text)
        states = oracle(tokens[None])[0][0] if text else tokens.new_zeros(0, 2 * size)
        assert_close(found, network.output(pooled(states)))


def test_the_stack_of_bilstms_drops_between_its_layers_only():
    network = small_model("bilstm", hidden_dropout=0.5).train()
    network.word_dropout.p = 0.0
    seen = []
    network.hidden_dropout.register_forward_hook(
        lambda _, inputs, __: seen.append(inputs[0].shape[1])
    )
    network(WordBatch.from_ids(RAGGED))
    assert seen == [16, 16, 32]  # between three layers, and before the output


@pytest.mark.parametrize("hidden_size", [16, 12, 18])
def test_the_transformer_is_pytorch_s_encoder_over_each_text(hidden_size):
    network = small_model("transformer", hidden_size=hidden_size)
    size = network.size
    assert size == {16: 16, 12: 16, 18: 24}[hidden_size]
    layer = nn.TransformerEncoderLayer(size, HEADS, 4 * size, batch_first=True, norm_first=True)
    encoder = nn.TransformerEncoder(layer, LAYERS, nn.LayerNorm(size), enable_nested_tensor=False)
    encoder.double().eval().load_state_dict(network.encoder.state_dict())
    for text, found in zip(RAGGED, answers(network), strict=True):
        x = network.input(tokens_of(network, text)) + positions(len(text), size)
        states = encoder(x[None])[0] if text else x
        assert_close(found, network.output(pooled(states)))


def attend(attention, node, context):
    """Attend from one vector to a list of vectors, one head after another."""
    query = attention.query(node).chunk(STAR_HEADS)
    keys = [attention.key(each).chunk(STAR_HEADS) for each in context]
    values = [attention.value(each).chunk(STAR_HEADS) for each in context]
    heads = []
    for head in range(STAR_HEADS):
        scores = [torch.exp(query[head] @ k[head] / math.sqrt(len(query[head]))) for k in keys]
        parts = [score / sum(scores) * v[head] for score, v in zip(scores, values, strict=True)]
        heads.append(sum(parts))
    return attention.norm(torch.relu(attention.output(torch.cat(heads))))


def test_the_star_transformer_agrees_with_plain_loops():
    network = small_model("star-transformer")
    for text, found in zip(RAGGED, answers(network), strict=True):
        x = network.input(tokens_of(network, text)) + positions(len(text), network.size)
        e = h = list(x)
        s = sum(e, torch.zeros(network.size, dtype=torch.float64)) / max(1, len(e))
        for cycle in network.cycles if text else []:
            h = [
                attend(cycle.satellite, h[i], [h[i - 1], h[i], h[(i + 1) % len(h)], e[i], s])
                for i in range(len(h))
            ]
            s = attend(cycle.relay, s, [s, *h])
        assert_close(found, network.output(pooled(torch.stack(h) if h else x, s)))


def test_the_listener_of_rcrn_agrees_with_plain_loops():
    batch = WordBatch.from_ids(RAGGED)
    forget, heard = torch.rand(batch.num_words, 6), torch.randn(batch.num_words, 6)
    found = listen(forget, heard, batch).split(batch.lengths.tolist())
    sequences = (rows.split(batch.lengths.tolist()) for rows in (forget, heard))
    for cells, f, x in zip(found, *sequences, strict=True):
        there, back = torch.zeros(3), torch.zeros(3)
        for t in range(len(f)):
            there = f[t, :3] * there + (1 - f[t, :3]) * x[t, :3]
            torch.testing.assert_close(cells[t, :3], there)
        for t in reversed(range(len(f))):
            back = f[t, 3:] * back + (1 - f[t, 3:]) * x[t, 3:]
            torch.testing.assert_close(cells[t, 3:], back)


def test_rcrn_gates_the_listener_by_both_controllers():
    network = small_model("rcrn")
    for text, found in zip(RAGGED, answers(network), strict=True):
        batch, tokens = WordBatch.from_ids([text]), tokens_of(network, text)
        parts = (network.forget, network.expose, network.listener)
        forget, expose, heard = (part(tokens, torch.arange(len(text)), batch) for part in parts)
        states = expose.sigmoid() * listen(forget.sigmoid(), heard, batch)
        assert_close(found, network.output(pooled(states)))


@pytest.mark.parametrize("levels", [LEVELS, 3])
def test_adasent_agrees_with_plain_loops(monkeypatch, levels):
    monkeypatch.setattr("experiments.rivals.adasent.LEVELS", levels)
    network = small_model("adasent")
    for text, found in zip(RAGGED, answers(network), strict=True):
        level = [torch.tanh(network.words(token)) for token in tokens_of(network, text)]
        means = [sum(level) / len(level) if level else torch.zeros(16, dtype=torch.float64)]
        while len(level) > 1 and len(means) < levels:
            level = [compose(network, level[j], level[j + 1]) for j in range(len(level) - 1)]
            means.append(sum(level) / len(level))
        belief = torch.cat([network.belief(mean) for mean in means]).softmax(0)
        said = [network.output(mean).softmax(0) for mean in means]
        total = sum(b * p for b, p in zip(belief, said, strict=True))
        assert_close(found.exp(), total)


def compose(network, left, right):
    both = torch.cat([left, right])
    by_left, by_right, new = network.gate(both).softmax(0)
    return by_left * left + by_right * right + new * torch.tanh(network.compose(both))


@torch.no_grad()
def route(layer, children):
    """Route the capsules of one group, given as a list of rows of capsules."""
    below, above, size, _ = layer.transform.shape
    votes = {
        (r, k, p): layer.transform[k, p] @ children[r][k]
        for r in range(len(children))
        for k in range(below)
        for p in range(above)
    }
    b = dict.fromkeys(votes, 0.0)
    parents = []
    for _ in range(3):
        sums = [torch.zeros(size, dtype=torch.float64) for _ in range(above)]
        for (r, k, p), vote in votes.items():
            total = 1 + sum(math.exp(b[r, k, other]) for other in range(above))
            present = children[r][k].norm() / len(children)
            sums[p] = sums[p] + present * math.exp(b[r, k, p]) / total * vote
        parents = [squash(each) for each in sums]
        b = {(r, k, p): b[r, k, p] + float(parents[p] @ vote) for (r, k, p), vote in votes.items()}
    return torch.stack(parents)


def test_routing_agrees_with_plain_loops():
    layer = CapsuleLayer(3, 4).double()
    torch.nn.init.normal_(layer.transform)
    capsules = torch.randn(5, 3, 8, dtype=torch.float64)
    found = layer(capsules, torch.tensor([0, 0, 2, 2, 2]), 3)
    assert_close(found[0], route(layer, capsules[:2]))
    assert not found[1].any()
    assert_close(found[2], route(layer, capsules[2:]))


def first_gradient(name, words):
    """Give the norm of a fresh model's gradient for texts of so many words."""
    torch.manual_seed(0)
    sizes = {"vocab_size": 500, "word_size": 100, "hidden_size": 64}
    network = build_model(small_config(name, **sizes)).eval()
    batch = WordBatch.from_ids(torch.randint(500, (30, words)).tolist())
    nn.functional.cross_entropy(network(batch).logits, torch.arange(30) % 3).backward()
    return nn.utils.get_total_norm(p.grad for p in network.parameters())


def test_capsules_of_long_texts_learn_from_the_first_step():
    assert first_gradient("capsule-b", words=265) > first_gradient("capsule-b", words=10) / 10


def test_capsules_see_n_grams_of_their_text_alone():
    network = small_model("capsule-b")
    text = [3, 9, 4]
    tokens = tokens_of(network, text)
    lengths = []
    for width, ngram, label in zip(NGRAMS, network.ngrams, network.output, strict=True):
        nothing = torch.zeros(width, 9, dtype=torch.float64)
        row = torch.cat([nothing, tokens, nothing])
        primary = []
        for i in range(len(text)):
            start = width + i - (width - 1) // 2
            window = row[start : start + width].T
            maps = torch.relu(
                (ngram.convolution.weight * window).sum((1, 2)) + ngram.convolution.bias
            )
            primary.append(squash(ngram.primary(maps).view(8, 8)))
        none = torch.zeros(8, 8, dtype=torch.float64)
        around = [none, *primary, none]
        words = [route(ngram.layer, [torch.cat(around[i : i + 3])]) for i in range(len(text))]
        lengths.append(route(label, words).norm(dim=1)[:3])
    with torch.no_grad():
        found = network(WordBatch.from_ids([[5], text, [7, 7]])).logits[1]
    assert_close(found.exp(), sum(lengths) / 3)
