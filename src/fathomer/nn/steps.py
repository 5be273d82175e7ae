"""The adaptive steps of the S-LSTM (section 2): Eq. (2) and (3), as often as Eq. (14) says.

Words stand sorted by depth, so that those which still run in a layer are a prefix of the rows. A
word that has stopped takes part in no matrix product: not in the window's, and not in the sentence
node's, whose view of a word is kept from the step that last changed the word. States are updated in
place, and the work on words goes in blocks of rows that stay in the processor's cache.

    N words, k of them running, B texts, H hidden_size, Z width of the first layer's source
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from fathomer.nn.graph import DepthOrder

BLOCK = 512
"""Rows whose window product and gates are worked out together."""


class Weights(NamedTuple):
    """Hold the matrices of both transitions, as rows of outputs."""

    first: Float[Tensor, "7*H 3*Z"]
    """W of Eq. (2) for layer 1, folded with the linear map that makes the initial states."""
    window: Float[Tensor, "7*H 3*H"]
    """W of Eq. (2); gates in the order l, r, f, s, i, o, u."""
    window_bias: Float[Tensor, " 7*H"]
    sentence: Float[Tensor, "7*H H"]
    """V of Eq. (2)."""
    node: Float[Tensor, "3*H H"]
    """W of Eq. (3): for the words' forget gates, the node's own, and the output gate."""
    node_bias: Float[Tensor, " 3*H"]
    node_mean: Float[Tensor, "2*H H"]
    """U_g and U_o of Eq. (3)."""
    node_word: Float[Tensor, "H H"]
    """U_f of Eq. (3)."""


class Node(NamedTuple):
    """Hold one step of the sentence nodes; gates are sigmoids, before the softmax over words."""

    g: Float[Tensor, "B H"]
    c_g: Float[Tensor, "B H"]
    mean: Float[Tensor, "B H"]
    """Of the words' states, like ``g`` and ``c_g`` of the layer below."""
    forget_word: Float[Tensor, "B H"]
    """The node's part of the sum inside the words' forget gates."""
    forget_g: Float[Tensor, "B H"]
    output: Float[Tensor, "B H"]
    total: Float[Tensor, "B H"]
    """What the softmax divides by."""
    next_c_g: Float[Tensor, "B H"]


class Step(NamedTuple):
    """Hold what the way back needs of one layer."""

    gates: Float[Tensor, "k 7*H"]
    h: Float[Tensor, "k H"]
    c: Float[Tensor, "k H"]
    seen: Float[Tensor, "changed H"]
    node: Node


def blocks(rows: int) -> Iterator[slice]:
    """Cut rows into blocks."""
    return (slice(start, min(start + BLOCK, rows)) for start in range(0, rows, BLOCK))


def neighbourhood(
    states: Float[Tensor, "rows width"], graph: DepthOrder, rows: slice
) -> Float[Tensor, "k 3 width"]:
    """Look up ``left, self, right`` of some words."""
    found = states.index_select(0, graph.window[rows].flatten())
    return found.view(-1, 3, states.shape[1])


def word_gates(
    gates: Float[Tensor, "k gates"], c: Float[Tensor, "k 3 H"], c_g: Float[Tensor, "k H"]
) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
    """Give the next ``h`` and ``c`` from the sums inside the gates of Eq. (2).

    The sums are overwritten by the gates before their softmax: sigmoids, and a tanh for u.
    """
    size = c.shape[2]
    gates[:, : 6 * size].sigmoid_()
    gates[:, 6 * size :].tanh_()
    l, r, f, s, i = weights_of(gates[:, : 5 * size]).unbind(1)  # noqa: E741
    o, u = gates[:, 5 * size :].chunk(2, 1)
    c_left, c_self, c_right = c.unbind(1)
    new_c = i * u
    for gate, cell in ((l, c_left), (f, c_self), (r, c_right), (s, c_g)):
        new_c.addcmul_(gate, cell)
    return o * new_c.tanh(), new_c


def weights_of(sigmoids: Float[Tensor, "k five"]) -> Float[Tensor, "k 5 H"]:
    """Normalise five gates so that they sum to 1.

    They are sigmoids: exp lies in (1, e), so that no maximum need be taken off.
    """
    e = sigmoids.view(len(sigmoids), 5, -1).exp()
    return e.div_(e.sum(1, keepdim=True))


def sentence_step(
    h: Float[Tensor, "rows H"],
    c: Float[Tensor, "rows H"],
    seen: Float[Tensor, "N H"],
    g: Float[Tensor, "B H"],
    c_g: Float[Tensor, "B H"],
    graph: DepthOrder,
    weights: Weights,
) -> tuple[Float[Tensor, "B H"], Node]:
    """Take one step with all sentence nodes, Eq. (3); ``seen`` is U_f h_i."""
    mean = text_mean(h[:-1], graph)
    sums = torch.addmm(weights.node_bias, g, weights.node.T)
    forget_word, forget_g, output = sums.chunk(3, 1)
    mean_g, mean_o = (mean @ weights.node_mean.T).chunk(2, 1)
    forget_g = (forget_g + mean_g).sigmoid_()
    output = (output + mean_o).sigmoid_()
    total = forget_g.exp()
    weighted = total * c_g
    for rows in blocks(len(seen)):
        text_of = graph.text_of[rows]
        f = (forget_word.index_select(0, text_of) + seen[rows]).sigmoid_().exp_()
        total.index_add_(0, text_of, f)
        weighted.index_add_(0, text_of, f * c[rows])
    next_c_g = weighted / total
    node = Node(g, c_g, mean, forget_word, forget_g, output, total, next_c_g)
    return output * next_c_g.tanh(), node


def text_mean(h: Float[Tensor, "N H"], graph: DepthOrder) -> Float[Tensor, "B H"]:
    """Average the words of each text; an empty text has zeros."""
    sums = h.new_zeros(len(graph.word_counts), h.shape[1]).index_add_(0, graph.text_of, h)
    return sums / graph.word_counts[:, None]


class Last(NamedTuple):
    """Hold the states after the last step; ``h`` and ``c`` with a last row of zeros."""

    h: Float[Tensor, "N+1 H"]
    c: Float[Tensor, "N+1 H"]
    g: Float[Tensor, "B H"]
    seen: Float[Tensor, "N H"]


def take_steps(
    graph: DepthOrder,
    source: Float[Tensor, "rows Z"],
    h: Float[Tensor, "N H"],
    from_token: Float[Tensor, "N gates"],
    weights: Weights,
    keep: list[Step] | None = None,
) -> Last:
    """Run all layers; ``from_token`` is U x of Eq. (2).

    With ``keep``, what the way back needs is put there.
    """
    h = functional.pad(h, (0, 0, 0, 1))
    c, g, seen = h.clone(), text_mean(h[:-1], graph), torch.empty_like(h[:-1])
    c_g, changed = g, len(seen)
    for layer, running in enumerate(graph.running):
        torch.mm(h[:changed], weights.node_word.T, out=seen[:changed])  # U_f h_i of Eq. (3)
        next_g, node = sentence_step(h, c, seen, g, c_g, graph, weights)
        states, matrix = (h, weights.window) if layer else (source, weights.first)
        gates, new_h, new_c = word_step(
            running, states, matrix, c, node, from_token, graph, weights, keep is not None
        )
        if keep is not None:
            keep.append(Step(gates, new_h, new_c, seen[:changed].clone(), node))
        # Both transitions have read the layer below; now the prefix is written, Eq. (14).
        h[:running], c[:running], changed = new_h, new_c, running
        g = torch.where(graph.running_texts[layer], next_g, g)
        c_g = node.next_c_g  # of a text that has stopped, nobody reads it again
    return Last(h, c, g, seen)


def word_step(
    running: int,
    states: Float[Tensor, "rows width"],
    matrix: Tensor,
    c: Float[Tensor, "rows H"],
    node: Node,
    from_token: Float[Tensor, "N gates"],
    graph: DepthOrder,
    weights: Weights,
    keep_gates: bool,
) -> tuple[Tensor, Float[Tensor, "k H"], Float[Tensor, "k H"]]:
    """Take one step with the running words, Eq. (2); give their gates, ``h`` and ``c``."""
    from_sentence = torch.addmm(weights.window_bias, node.g, weights.sentence.T)
    gates = c.new_empty(running if keep_gates else min(running, BLOCK), len(matrix))
    new_h, new_c = c.new_empty(running, c.shape[1]), c.new_empty(running, c.shape[1])
    for rows in blocks(running):
        text_of = graph.text_of[rows]
        window = neighbourhood(states, graph, rows).flatten(1)
        sums = gates[rows] if keep_gates else gates[: len(window)]
        torch.addmm(from_token[rows], window, matrix.T, out=sums)
        sums += from_sentence.index_select(0, text_of)
        new_h[rows], new_c[rows] = word_gates(
            sums, neighbourhood(c, graph, rows), node.c_g.index_select(0, text_of)
        )
    return gates, new_h, new_c
