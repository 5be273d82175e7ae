"""A slow reference implementation of the network: one text, one word and one gate at a time.

It is written from the paper's equations, uses the weights of a network and shares no code with it.
Where the paper is silent, it follows the decisions of the network: b_2 only in supervised depth, row 0
of the vectors for unknown words, and the last row for positions beyond the learned ones. States are
lists of vectors.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from fathomer.model import DepthAdaptiveNetwork

GATES = "lrfsiou"
States = list[Tensor]


class ReadText(NamedTuple):
    """The outputs of the oracle for one text."""

    logits: Tensor
    depths: list[int]
    depth_logits: States
    words: States
    sentence: Tensor


def read(
    network: DepthAdaptiveNetwork,
    ids: Sequence[Sequence[int]],
    *,
    unknown: Tensor | None = None,
    depths: Sequence[int] | None = None,
) -> list[ReadText]:
    """Read texts one by one, without dropout and noise; `depths` forces the depths of all words."""
    found, start = [], 0
    with torch.no_grad():
        for text in ids:
            forced = None if depths is None else list(depths[start : start + len(text)])
            found.append(_read_text(network, text, unknown, forced))
            start += len(text)
    return found


def _read_text(
    network: DepthAdaptiveNetwork,
    text: Sequence[int],
    unknown: Tensor | None,
    depths: list[int] | None,
) -> ReadText:
    tokens = [token(network, word, unknown) for word in text]
    features = sequential(network, tokens)
    w1, b1, w2 = network.depth.inner.weight, network.depth.inner.bias, network.depth.scores.weight
    b2 = 0 if network.depth.scores.bias is None else network.depth.scores.bias
    inner = [(w1 @ h + b1).clamp(min=0) for h in features]
    logits = [w2 @ vector + b2 for vector in inner]  # Eq. (6)
    if depths is None:
        depths = [select(each.tolist(), network.config.depth) for each in logits]
    x = [  # Eq. (13)
        torch.cat([tokens[i], w2[d - 1] + sinusoid(d, len(w2[0])).to(w2)])
        for i, d in enumerate(depths)
    ]
    h = [network.slstm.initial.weight @ vector + network.slstm.initial.bias for vector in inner]
    words, sentence = adaptive_steps(network.slstm, h, x, depths, like=network.slstm.initial.bias)
    size = network.config.hidden_size
    highest = sentence.new_tensor(
        [max((h[j].item() for h in words), default=0) for j in range(size)]
    )
    pooled = torch.cat([highest, mean(words, sentence), sentence]).clamp(min=0)
    scores = network.output.weight @ pooled + network.output.bias  # Eq. (15)
    return ReadText(scores, depths, logits, words, sentence)


def mean(vectors: States, like: Tensor) -> Tensor:
    """Return the mean of vectors, or zeros if there are none."""
    total = torch.zeros_like(like)
    for vector in vectors:
        total = total + vector
    return total / max(1, len(vectors))


def token(network: DepthAdaptiveNetwork, word: int, unknown: Tensor | None) -> Tensor:
    """Eq. (4): the word vector (row 0 for an unknown word) and the output of the character CNN."""
    embedding = network.embedding
    if word >= 0:
        spelling = embedding.spellings[word]
    else:
        assert unknown is not None
        spelling = unknown[-1 - word]
    characters = char_cnn(embedding.char, [int(byte) for byte in spelling if byte])
    return torch.cat([embedding.word.weight[max(word, 0)], characters])


def char_cnn(cnn: torch.nn.Module, spelling: list[int]) -> Tensor:
    """Apply the filters of three characters at each position, and take the maximum."""
    weight, bias = cnn.convolution.weight, cnn.convolution.bias
    padding = torch.zeros_like(weight[0, :, 0])
    vectors = [padding, *(cnn.bytes.weight[byte] for byte in spelling), padding]
    responses = []
    for i in range(len(spelling)):
        before, here, after = vectors[i : i + 3]
        responses.append(
            weight[:, :, 0] @ before + weight[:, :, 1] @ here + weight[:, :, 2] @ after + bias
        )
    if not responses:
        return torch.zeros_like(bias)
    return torch.stack(responses).max(0).values


def sequential(network: DepthAdaptiveNetwork, tokens: States) -> States:
    """Eq. (5), or the option that replaces it."""
    kind = network.config.sequence
    if kind == "bilstm":
        forward = _lstm(network.sequence, tokens, direction=0)
        backward = _lstm(network.sequence, tokens[::-1], direction=1)[::-1]
        return [torch.cat(pair) for pair in zip(forward, backward, strict=True)]
    if kind == "sinusoidal":
        return [x + sinusoid(position, len(x)).to(x) for position, x in enumerate(tokens)]
    if kind == "learned":
        rows = network.sequence.position.weight
        return [x + rows[min(position, len(rows) - 1)] for position, x in enumerate(tokens)]
    return tokens


def _lstm(lstm: torch.nn.Module, inputs: States, *, direction: int) -> States:
    w, u, b = lstm.input[direction], lstm.recurrent[direction], lstm.bias[direction]
    h = c = torch.zeros_like(u[0])
    states = []
    for x in inputs:
        g, i, f, o = (w @ x + u @ h + b).chunk(4)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
        states.append(h)
    return states


def sinusoid(position: int, size: int) -> Tensor:
    """Eq. (12)."""
    values = []
    for k in range(size):
        angle = position / 10_000 ** (2 * (k // 2) / size)
        values.append(math.sin(angle) if k % 2 == 0 else math.cos(angle))
    return torch.tensor(values, dtype=torch.float64)


def select(logits: list[float], how: str) -> int:
    """Eq. (8) and (9); class j = 0..L-1 means j + 1 steps. Without noise, gumbel is hard."""
    if how == "full":
        return len(logits)
    if how == "soft":
        weights = [math.exp(logit - max(logits)) for logit in logits]
        return math.floor(sum(j * w for j, w in enumerate(weights)) / sum(weights)) + 1
    return logits.index(max(logits)) + 1


def adaptive_steps(
    slstm: torch.nn.Module, h: States, x: States, depths: Sequence[int], like: Tensor
) -> tuple[States, Tensor]:
    """Eq. (14): update a word while l <= d_i; the sentence node takes d_max steps."""
    c = list(h)
    g = c_g = mean(h, like)
    for layer in range(1, max(depths, default=0) + 1):
        g_next, c_g_next = sentence_transition(slstm, h, c, g, c_g)
        h_next, c_next = list(h), list(c)
        for i, depth in enumerate(depths):
            if layer <= depth:
                h_next[i], c_next[i] = word_transition(slstm, i, h, c, x[i], g, c_g)
        h, c, g, c_g = h_next, c_next, g_next, c_g_next
    return h, g


def word_transition(
    slstm: torch.nn.Module, i: int, h: States, c: States, x: Tensor, g: Tensor, c_g: Tensor
) -> tuple[Tensor, Tensor]:
    """Eq. (2) for the i-th word."""
    zeros = torch.zeros_like(g)
    left_h, left_c = (h[i - 1], c[i - 1]) if i > 0 else (zeros, zeros)
    right_h, right_c = (h[i + 1], c[i + 1]) if i + 1 < len(h) else (zeros, zeros)
    xi = torch.cat([left_h, h[i], right_h])
    gate = {}
    for row, name in enumerate(GATES):
        rows = slice(row * len(g), (row + 1) * len(g))
        w, b = slstm.window.weight[rows], slstm.window.bias[rows]
        before = w @ xi + slstm.token.weight[rows] @ x + slstm.sentence.weight[rows] @ g + b
        gate[name] = torch.tanh(before) if name == "u" else torch.sigmoid(before)
    total = sum(torch.exp(gate[name]) for name in "ilrfs")
    l, r, f, s, i_ = (torch.exp(gate[name]) / total for name in "lrfsi")  # noqa: E741
    cell = l * left_c + f * c[i] + r * right_c + s * c_g + i_ * gate["u"]
    return gate["o"] * torch.tanh(cell), cell


def sentence_transition(
    slstm: torch.nn.Module, h: States, c: States, g: Tensor, c_g: Tensor
) -> tuple[Tensor, Tensor]:
    """Eq. (3)."""
    average = mean(h, g)
    w_f, w_g, w_o = slstm.node.weight.chunk(3)
    b_f, b_g, b_o = slstm.node.bias.chunk(3)
    u_g, u_o = slstm.node_mean.weight.chunk(2)
    u_f = slstm.node_word.weight
    f_g = torch.exp(torch.sigmoid(w_g @ g + u_g @ average + b_g))
    f = [torch.exp(torch.sigmoid(w_f @ g + u_f @ word + b_f)) for word in h]
    o = torch.sigmoid(w_o @ g + u_o @ average + b_o)
    total = f_g + sum(f)
    cell = f_g / total * c_g
    for gate, state in zip(f, c, strict=True):
        cell = cell + gate / total * state
    return o * torch.tanh(cell), cell
