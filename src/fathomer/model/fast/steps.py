"""The adaptive steps of the S-LSTM for inference: :class:`fathomer.model.model.SLSTM`, faster.

States are updated in place, buffers are allocated once per batch, and words are processed in blocks
of rows. The sums of stopped words are kept, so that the mean over a text only reads the words that
changed.

    N words, k of them running, B texts, H hidden_size, Z width of the first layer's input,
    D rows of tokens, L max_depth
"""

import math
from typing import NamedTuple

import torch
from jaxtyping import Float, Int, Shaped, UInt8
from torch import Tensor
from torch.nn import functional

from fathomer.model.fast.products import PRODUCT_BLOCK, plus_product, product_blocks, write_product
from fathomer.model.graph import DepthOrder


class Weights(NamedTuple):
    """The matrices of both transitions, one row per output."""

    first: Float[Tensor, "7*H 3*Z"]
    """W of Eq. (2) for layer 1, folded with the linear map to the initial states."""
    window: Float[Tensor, "7*H 3*H"]
    """W of Eq. (2); the gates are in the order l, r, f, s, i, o, u."""
    window_bias: Float[Tensor, " 7*H"]
    sentence: Float[Tensor, "7*H H"]
    """V of Eq. (2)."""
    node: Float[Tensor, "3*H H"]
    """W of Eq. (3): forget gates of the words, forget gate of the node, output gate."""
    node_bias: Float[Tensor, " 3*H"]
    node_mean: Float[Tensor, "2*H H"]
    """U_g and U_o of Eq. (3)."""
    node_word: Float[Tensor, "H H"]
    """U_f of Eq. (3)."""


class Terms(NamedTuple):
    """The terms added to the window product of Eq. (2): three rows of a table per word."""

    table: Float[Tensor, "D+L+B 7*H"]
    """U x of the tokens, U x of the depths, and V g + b, which is rewritten in every layer."""
    rows: Int[Tensor, "N 3"]


def gather_window(
    states: Float[Tensor, "rows width"] | UInt8[Tensor, "rows width"],
    graph: DepthOrder,
    rows: slice,
    out: Tensor | None = None,
) -> Shaped[Tensor, "k 3 width"]:
    """Gather the states of left neighbour, word and right neighbour."""
    return gather(states, graph.window[rows], out)


def gather(
    states: Float[Tensor, "rows width"] | UInt8[Tensor, "rows width"],
    places: Int[Tensor, "k places"],
    out: Tensor | None,
) -> Shaped[Tensor, "k places width"]:
    """Gather rows of ``states`` into the buffer ``out``."""
    if out is not None:
        out = out[: places.numel() * states.shape[1]].view(-1, states.shape[1])
    return torch.index_select(states, 0, places.flatten(), out=out).view(*places.shape, -1)


def times_tanh(gate: Tensor, s: Tensor, out: Tensor) -> Tensor:
    """Write ``gate * tanh(x)`` to ``out``, given ``s = sigmoid(2 x)``, since tanh(x) = 2 s - 1.

    PyTorch's tanh takes six times as long as its sigmoid.
    """
    torch.mul(gate, s, out=out)
    return out.add_(out).sub_(gate)


class AdaptiveSteps:
    """The states of a batch during the steps, and buffers for one block of rows.

    Buffers are allocated once, because new memory for every block costs as much as filling it.
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
        self.log2_e = h.new_tensor(math.log2(math.e))
        self.single_text = len(graph.word_counts) == 1
        self.stopped = h.new_zeros(len(graph.word_counts), h.shape[1])
        self.g = self.c_g = self.text_mean(len(h))
        self.from_word = torch.empty_like(h)  # U_f h_i of Eq. (3)
        rows, size = min(PRODUCT_BLOCK, len(h)), h.shape[1]
        self.window_buffer = h.new_empty(rows * 3 * max(size, source.shape[1]))
        self.cell_buffer = h.new_empty(rows * 2 * size)
        self.gate_buffer = h.new_empty(rows, 5 * size)
        self.row_buffer = h.new_empty(rows, size)
        self.next_states = torch.empty_like(h), torch.empty_like(h)

    def run(self) -> tuple[Float[Tensor, "N H"], Float[Tensor, "B H"]]:
        """Run all layers; return the last states of words and sentences."""
        changed = len(self.from_word)
        for layer, running in enumerate(self.graph.running):
            write_product(self.h[:changed], self.weights.node_word, self.from_word[:changed])
            next_g, next_c_g = self.sentence_transition(changed)
            h, c = (buffer[:running] for buffer in self.next_states)
            self.word_transition(h, c, first=layer == 0)
            # Both transitions have read the layer below; now the prefix is written, Eq. (14).
            self.stop(running, changed)
            self.write(h, c)
            changed = running
            runs = self.graph.running_texts[layer]
            self.g = next_g if self.single_text else torch.where(runs, next_g, self.g)
            self.c_g = next_c_g  # never read again for a text that has stopped
        return self.h[:-1], self.g

    def word_transition(
        self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"], *, first: bool
    ) -> None:
        """Write the next states of the running words to ``h`` and ``c``, Eq. (2)."""
        table = self.terms.table
        self.write_from_sentence(table[len(table) - len(self.g) :])
        for rows in product_blocks(len(h)):
            sums = functional.embedding_bag(self.terms.rows[rows], table, mode="sum")
            sums = self.plus_window_product(sums, rows, first=first)
            self.word_gates(sums, rows, h[rows], c[rows])

    def write(self, h: Float[Tensor, "k H"], c: Float[Tensor, "k H"]) -> None:
        """Write the new states of the running words."""
        self.h[: len(h)], self.c[: len(c)] = h, c

    def write_from_sentence(self, out: Float[Tensor, "B gates"]) -> None:
        """Write ``V g + b`` of Eq. (2)."""
        write_product(self.g, self.weights.sentence, out, self.weights.window_bias)

    def plus_window_product(
        self, sums: Float[Tensor, "k gates"], rows: slice, *, first: bool
    ) -> Float[Tensor, "k gates"]:
        """Return ``sums + W [h_left, h, h_right]`` of Eq. (2); ``sums`` may be overwritten."""
        states, matrix = (
            (self.source, self.weights.first) if first else (self.h, self.weights.window)
        )
        window = gather_window(states, self.graph, rows, self.window_buffer)
        return plus_product(sums, window.flatten(1), matrix)

    def word_gates(
        self,
        gates: Float[Tensor, "k gates"],
        rows: slice,
        h: Float[Tensor, "k H"],
        c: Float[Tensor, "k H"],
    ) -> None:
        """Write the next ``h`` and ``c``, given the sums inside the gates of Eq. (2).

        The sums are overwritten.
        """
        size = h.shape[1]
        o, u = gates[:, 5 * size :].chunk(2, 1)
        u.add_(u)
        gates.sigmoid_()
        # A softmax over sigmoids: exp lies in (1, e), so no maximum has to be subtracted.
        e = torch.mul(gates[:, : 5 * size], self.log2_e, out=self.gate_buffer[: len(h)])
        e.exp2_()
        l, r, f, s, i = e.chunk(5, 1)  # noqa: E741
        cells = gather(self.c, self.graph.neighbours[rows], self.cell_buffer)
        c_left, c_right = cells.unbind(1)
        c_g = self.spread(self.c_g, rows)
        torch.mul(l, c_left, out=c)
        for gate, cell in ((f, self.c[rows]), (r, c_right), (s, c_g)):
            c.addcmul_(gate, cell)
        c.addcmul_(i, u, value=2).sub_(i)  # i tanh(u), since tanh(x) = 2 sigmoid(2 x) - 1
        c.div_(torch.add(l, r, out=self.row_buffer[: len(h)]).add_(f).add_(s).add_(i))
        times_tanh(o, torch.add(c, c, out=h).sigmoid_(), out=h)

    def sentence_transition(
        self, changed: int
    ) -> tuple[Float[Tensor, "B H"], Float[Tensor, "B H"]]:
        """Return the next ``g`` and ``c_g`` of all sentence nodes, Eq. (3)."""
        weights, size = self.weights, self.h.shape[1]
        sums = self.g.new_empty(len(self.g), len(weights.node))
        write_product(self.g, weights.node, sums, weights.node_bias)
        of_node = sums[:, size:]
        torch.addmm(of_node, self.text_mean(changed), weights.node_mean.T, out=of_node).sigmoid_()
        f_g, o = of_node.chunk(2, 1)
        total = f_g.exp()
        weighted = total * self.c_g
        for rows in product_blocks(len(self.from_word)):
            from_word = self.from_word[rows]
            f_i = self.spread(sums[:, :size], rows)
            f_i = torch.add(f_i, from_word, out=self.row_buffer[: len(from_word)])
            f_i.sigmoid_().mul_(self.log2_e).exp2_()
            self.add_to_texts(total, rows, f_i)
            self.add_to_texts(weighted, rows, f_i.mul_(self.c[rows]))
        next_c_g = weighted / total
        return o * next_c_g.tanh(), next_c_g

    def text_mean(self, changed: int) -> Float[Tensor, "B H"]:
        """Average the words of each text; zeros for an empty text."""
        sums = self.stopped.clone()
        self.add_to_texts(sums, slice(0, changed), self.h[:changed])
        return sums.div_(self.graph.word_counts[:, None])

    def stop(self, running: int, changed: int) -> None:
        """Add the states of the words that stopped after the previous layer to their texts' sums."""
        rows = slice(running, changed)
        self.add_to_texts(self.stopped, rows, self.h[rows])

    def spread(self, values: Float[Tensor, "B H"], rows: slice) -> Float[Tensor, "k H"]:
        """Return the value of its text for each word; one row for all if there is one text."""
        if self.single_text:
            return values
        text_of = self.graph.text_of[rows]
        return torch.index_select(values, 0, text_of, out=self.row_buffer[: len(text_of)])

    def add_to_texts(
        self, sums: Float[Tensor, "B H"], rows: slice, values: Float[Tensor, "k H"]
    ) -> None:
        """Add the values of words to their texts."""
        if self.single_text:
            sums.add_(values.sum(0))
        else:
            sums.index_add_(0, self.graph.text_of[rows], values)
