"""The adaptive steps of the S-LSTM (section 2): Eq. (2) and (3), as often as Eq. (14) says.

Words stand sorted by depth, so that those which still run in a layer are a prefix of the rows. A
word that has stopped takes part in no matrix product: not in the window's, and not in the sentence
node's, whose view of a word is kept from the step that last changed the word. States are updated in
place, and the work on words goes in blocks of rows: large ones for the matrix product, small ones,
which stay in the processor's cache, for the gates.

    N words, k of them running, B texts, H hidden_size, Z width of the first layer's source
    D rows of tokens, L max_depth
"""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor
from torch.nn import functional

from fathomer.model.graph import DepthOrder

PRODUCT_BLOCK = 1024
"""Rows whose window product is taken together: fewer are slower per row on several threads."""
BLOCK = 512
"""Rows whose gates are worked out together: they and what they are made of fit the cache."""


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

    gates: list[Float[Tensor, "rows 7*H"]]
    """Block by block."""
    h: Float[Tensor, "k H"]
    c: Float[Tensor, "k H"]
    seen: Float[Tensor, "changed H"]
    node: Node


class Last(NamedTuple):
    """Hold the states after the last step, Eq. (1); ``h`` and ``c`` with a last row of zeros."""

    h: Float[Tensor, "N+1 H"]
    c: Float[Tensor, "N+1 H"]
    g: Float[Tensor, "B H"]
    seen: Float[Tensor, "N H"]


class Terms(NamedTuple):
    """Hold what is added to the window product of Eq. (2): three rows of a table for each word."""

    table: Float[Tensor, "D+L+B 7*H"]
    """U x of the tokens, U x of the depths, and V g + b, which every layer writes anew."""
    rows: Int[Tensor, "N 3"]


def product_blocks(rows: int) -> Iterator[slice]:
    """Cut rows into blocks for the matrix product."""
    return _blocks(slice(0, rows), PRODUCT_BLOCK)


def gate_blocks(rows: slice) -> Iterator[slice]:
    """Cut rows into blocks for the gates."""
    return _blocks(rows, BLOCK)


def _blocks(rows: slice, size: int) -> Iterator[slice]:
    starts = range(rows.start, rows.stop, size)
    return (slice(start, min(start + size, rows.stop)) for start in starts)


def neighbourhood(
    states: Float[Tensor, "rows width"] | UInt8[Tensor, "rows width"],
    graph: DepthOrder,
    rows: slice,
    out: Tensor | None = None,
) -> Shaped[Tensor, "k 3 width"]:
    """Look up ``left, self, right`` of some words."""
    return gathered(states, graph.window[rows], out)


def gathered(
    states: Float[Tensor, "rows width"] | UInt8[Tensor, "rows width"],
    places: Int[Tensor, "k places"],
    out: Tensor | None,
) -> Shaped[Tensor, "k places width"]:
    """Look up some rows for each word, where there is room for them."""
    if out is not None:
        out = out[: places.numel() * states.shape[1]].view(-1, states.shape[1])
    return torch.index_select(states, 0, places.flatten(), out=out).view(*places.shape, -1)


class Steps:
    """Hold the states while the steps are taken, and room for the work on one block of rows.

    The room is taken once: fresh memory for every block would cost as much as filling it.
    """

    def __init__(
        self,
        graph: DepthOrder,
        source: Float[Tensor, "rows Z"],
        h: Float[Tensor, "N H"],
        terms: Terms,
        weights: Weights,
    ) -> None:
        self.graph, self.weights = graph, weights
        self.source, self.terms = source, terms
        self.h = functional.pad(h, (0, 0, 0, 1))
        self.c = self.h.clone()
        self.alone = len(graph.word_counts) == 1
        self.stopped = h.new_zeros(len(graph.word_counts), h.shape[1])
        self.g = self.c_g = self.text_mean(len(h))
        self.seen = torch.empty_like(h)  # U_f h_i of Eq. (3)
        rows, block, size = min(PRODUCT_BLOCK, len(h)), min(BLOCK, len(h)), h.shape[1]
        self.room_for_window = h.new_empty(rows * 3 * max(size, source.shape[1]))
        self.room_for_cells = h.new_empty(block * 2 * size)
        self.room_for_weights = h.new_empty(block, 7 * size)
        self.room_for_row = h.new_empty(block, size)
        self.room_for_states = torch.empty_like(h), torch.empty_like(h)

    def take(self, keep: list[Step] | None = None) -> Last:
        """Run all layers; what the way back needs is put into ``keep``, if there is one."""
        changed = len(self.seen)
        for layer, running in enumerate(self.graph.running):
            torch.mm(self.h[:changed], self.weights.node_word.T, out=self.seen[:changed])
            next_g, node = self.sentence_step(changed)
            room = self.room_for_states if keep is None else (None, None)
            h, c = (
                self.h.new_empty(running, self.h.shape[1]) if r is None else r[:running]
                for r in room
            )
            gates = self.word_step(h, c, first=layer == 0, keep_gates=keep is not None)
            if keep is not None:
                keep.append(Step(gates, h, c, self.seen[:changed].clone(), node))
            # Both transitions have read the layer below; now the prefix is written, Eq. (14).
            self.stop(running, changed)
            self.write(h, c)
            changed = running
            runs = self.graph.running_texts[layer]
            self.g = next_g if self.alone else torch.where(runs, next_g, self.g)
            self.c_g = node.next_c_g  # of a text that has stopped, nobody reads it again
        return Last(self.h, self.c, self.g, self.seen)

    def word_step(
        self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"], *, first: bool, keep_gates: bool
    ) -> list[Float[Tensor, "rows gates"]]:
        """Take one step with the running words, Eq. (2): write ``h`` and ``c``, give the gates."""
        table, kept = self.terms.table, []
        self.write_from_sentence(table[len(table) - len(self.g) :])
        for rows in product_blocks(len(h)):
            sums = functional.embedding_bag(self.terms.rows[rows], table, mode="sum")
            self.add_window_product(sums, rows, first=first)
            for part in gate_blocks(rows):
                inside = slice(part.start - rows.start, part.stop - rows.start)
                self.word_gates(sums[inside], part, h[part], c[part])
            if keep_gates:
                kept.append(sums)
        return kept

    def write(self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"]) -> None:
        """Write the new states of the words that ran."""
        self.h[: len(h)], self.c[: len(c)] = h, c

    def write_from_sentence(self, out: Float[Tensor, "B gates"]) -> None:
        """Write ``V g + b`` of Eq. (2)."""
        torch.addmm(self.weights.window_bias, self.g, self.weights.sentence.T, out=out)

    def add_window_product(
        self, sums: Float[Tensor, "k gates"], rows: slice, *, first: bool
    ) -> None:
        """Add ``W [h_left, h, h_right]`` of Eq. (2)."""
        states, matrix = (
            (self.source, self.weights.first) if first else (self.h, self.weights.window)
        )
        window = neighbourhood(states, self.graph, rows, self.room_for_window)
        torch.addmm(sums, window.flatten(1), matrix.T, out=sums)

    def word_gates(
        self,
        gates: Float[Tensor, "k gates"],
        rows: slice,
        h: Float[Tensor, "k H"],
        c: Float[Tensor, "k H"],
    ) -> None:
        """Write the next ``h`` and ``c`` from the sums inside the gates of Eq. (2).

        The sums are overwritten by the gates before their softmax: sigmoids, and a tanh for u.
        """
        size = h.shape[1]
        gates[:, : 6 * size].sigmoid_()
        o, u = gates[:, 5 * size :].chunk(2, 1)
        u.tanh_()
        # The inputs of the softmax are sigmoids: exp lies in (1, e), no maximum need be taken off.
        # To take it of o and u as well is quicker than to leave them out.
        e = torch.exp(gates, out=self.room_for_weights[: len(h)])
        l, r, f, s, i = e[:, : 5 * size].chunk(5, 1)  # noqa: E741
        cells = gathered(self.c, self.graph.neighbours[rows], self.room_for_cells)
        c_left, c_right = cells.unbind(1)
        c_g = self.of_texts(self.c_g, rows)
        torch.mul(i, u, out=c)
        for gate, cell in ((l, c_left), (f, self.c[rows]), (r, c_right), (s, c_g)):
            c.addcmul_(gate, cell)
        c.div_(torch.add(l, r, out=self.room_for_row[: len(h)]).add_(f).add_(s).add_(i))
        torch.tanh(c, out=h).mul_(o)

    def sentence_step(self, changed: int) -> tuple[Float[Tensor, "B H"], Node]:
        """Take one step with all sentence nodes, Eq. (3)."""
        weights = self.weights
        mean = self.text_mean(changed)
        sums = torch.addmm(weights.node_bias, self.g, weights.node.T)
        forget_word, forget_g, output = sums.chunk(3, 1)
        of_node = sums[:, self.h.shape[1] :]
        torch.addmm(of_node, mean, weights.node_mean.T, out=of_node).sigmoid_()
        total = forget_g.exp()
        weighted = total * self.c_g
        for rows in gate_blocks(slice(0, len(self.seen))):
            seen = self.seen[rows]
            f = self.of_texts(forget_word, rows)
            f = torch.add(f, seen, out=self.room_for_row[: len(seen)])
            f.sigmoid_().exp_()
            self.add_to_texts(total, rows, f)
            self.add_to_texts(weighted, rows, f.mul_(self.c[rows]))
        next_c_g = weighted / total
        node = Node(self.g, self.c_g, mean, forget_word, forget_g, output, total, next_c_g)
        return output * next_c_g.tanh(), node

    def text_mean(self, changed: int) -> Float[Tensor, "B H"]:
        """Average the words of each text; an empty text has zeros."""
        sums = self.stopped.clone()
        self.add_to_texts(sums, slice(0, changed), self.h[:changed])
        return sums.div_(self.graph.word_counts[:, None])

    def stop(self, running: int, changed: int) -> None:
        """Add up the states of the words that ran in the layer before, and no longer."""
        rows = slice(running, changed)
        self.add_to_texts(self.stopped, rows, self.h[rows])

    def of_texts(self, values: Float[Tensor, "B H"], rows: slice) -> Float[Tensor, "k H"]:
        """Give each of some words what its text has: one row for all of them, if it is alone."""
        if self.alone:
            return values
        text_of = self.graph.text_of[rows]
        return torch.index_select(values, 0, text_of, out=self.room_for_row[: len(text_of)])

    def add_to_texts(
        self, sums: Float[Tensor, "B H"], rows: slice, values: Float[Tensor, "k H"]
    ) -> None:
        """Add to each text what its words among some have."""
        if self.alone:
            sums.add_(values.sum(0))
        else:
            sums.index_add_(0, self.graph.text_of[rows], values)
