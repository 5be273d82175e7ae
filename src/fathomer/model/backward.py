"""The way back through the adaptive steps: their gradients, written out.

Going forward, :mod:`fathomer.model.steps` keeps per layer the gates and new states of the words that ran,
and nothing of those that had stopped. Going back, the states of the layer below are restored by
writing prefixes, so that no layer ever had a copy of them all. Stopped words take part in no matrix
product here either.

    N words, k of them running, B texts, H hidden_size, Z width of the first layer's source
"""

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fathomer.model.graph import DepthOrder
from fathomer.model.steps import (
    Last,
    Node,
    Step,
    Steps,
    Terms,
    Weights,
    gate_blocks,
    neighbourhood,
    product_blocks,
)


class AdaptiveSteps(torch.autograd.Function):
    """Run all layers so that gradients can be had."""

    @staticmethod
    def forward(
        ctx: Any,
        graph: DepthOrder,
        source: Tensor,
        h: Tensor,
        table: Tensor,
        table_rows: Tensor,
        *weights: Tensor,
    ) -> tuple[Tensor, Tensor]:
        """Give the last ``h`` (without the row of zeros) and ``g``."""
        steps: list[Step] = []
        terms = Terms(table, table_rows)
        last = Steps(graph, source, h, terms, Weights(*weights)).take(keep=steps)
        ctx.save_for_backward(source, h, *weights)
        ctx.kept = graph, steps, last, table_rows, len(table)
        return last.h[:-1].clone(), last.g.clone()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor, grad_g: Tensor) -> tuple[Tensor | None, ...]:
        """Give the gradients of all inputs of :meth:`forward`."""
        source, h, *weights = ctx.saved_tensors
        graph, steps, last, table_rows, height = ctx.kept
        way = WayBack(graph, steps, last, source, h, Weights(*weights), grad_h, grad_g)
        while way.steps:
            way.take_back(way.steps.pop())
        grad_table = way.grad_sums.new_zeros(height, way.grad_sums.shape[1])
        for part in range(2):  # of the tokens and of the depths; the rest was no input
            grad_table.index_add_(0, table_rows[:, part], way.grad_sums)
        return None, way.grad_source, way.initial(), grad_table, None, *way.grads


class WayBack:
    """Hold the gradients of the states, from the last layer down to the first."""

    def __init__(
        self,
        graph: DepthOrder,
        steps: list[Step],
        last: Last,
        source: Tensor,
        first_h: Tensor,
        weights: Weights,
        grad_h: Tensor,
        grad_g: Tensor,
    ) -> None:
        self.graph, self.steps, self.weights = graph, list(steps), weights
        self.source, self.first_h = source, first_h
        self.h, self.c, self.seen = last.h.clone(), last.c.clone(), last.seen.clone()
        self.grad_h = functional.pad(grad_h, (0, 0, 0, 1))
        self.grad_c = torch.zeros_like(self.grad_h)
        self.grad_g, self.grad_c_g = grad_g, torch.zeros_like(grad_g)
        self.grad_seen = torch.zeros_like(self.seen)
        self.grad_source = torch.zeros_like(source)
        self.grad_sums = source.new_zeros(len(self.seen), len(weights.window))
        self.grads = Weights(*(torch.zeros_like(weight) for weight in weights))

    def take_back(self, step: Step) -> None:
        """Pass the gradients of one layer on to the layer below."""
        running = len(step.h)
        self.restore(step)
        # What has stopped was copied: its gradients stay where they are.
        grad_h, grad_c = self.grad_h[:running].clone(), self.grad_c[:running].clone()
        self.grad_h[:running], self.grad_c[:running] = 0, 0
        runs = self.graph.running_texts[len(self.steps)]
        grad_next_g, self.grad_g = self.grad_g * runs, self.grad_g * ~runs
        grad_next_c_g, self.grad_c_g = self.grad_c_g, torch.zeros_like(self.grad_c_g)
        self.take_back_words(step, grad_h, grad_c)
        self.take_back_sentences(step.node, grad_next_g, grad_next_c_g)
        self.take_back_seen(len(step.seen))

    def restore(self, step: Step) -> None:
        """Return to the states of the layer below, and to what its sentence nodes saw."""
        running = len(step.h)
        below_h, below_c = (
            (self.steps[-1].h, self.steps[-1].c) if self.steps else (self.first_h, self.first_h)
        )
        self.h[:running], self.c[:running] = below_h[:running], below_c[:running]
        self.seen[: len(step.seen)] = step.seen

    def take_back_words(self, step: Step, grad_h: Tensor, grad_c: Tensor) -> None:
        """Go back through Eq. (2)."""
        graph, weights, grads, node = self.graph, self.weights, self.grads, step.node
        grad_sums = step.h.new_empty(len(step.h), step.gates[0].shape[1])
        for rows, gates in zip(product_blocks(len(step.h)), step.gates, strict=True):
            text_of = graph.text_of[rows]
            grad_sums[rows], grad_cells, grad_c_g = word_gates_backward(
                gates,
                neighbourhood(self.c, graph, rows),
                node.c_g.index_select(0, text_of),
                step.c[rows],
                grad_h[rows],
                grad_c[rows],
            )
            add_to_neighbourhood(self.grad_c, graph, rows, grad_cells)
            self.grad_c_g.index_add_(0, text_of, grad_c_g)
        everything = slice(0, len(step.h))
        states, target, matrix, grad = (
            (self.h, self.grad_h, weights.window, grads.window)
            if self.steps
            else (self.source, self.grad_source, weights.first, grads.first)
        )
        window = neighbourhood(states, graph, everything)
        torch.addmm(grad, grad_sums.T, window.flatten(1), out=grad)
        add_to_neighbourhood(target, graph, everything, (grad_sums @ matrix).view_as(window))
        self.grad_sums[everything] += grad_sums
        by_text = grad_sums.new_zeros(len(node.g), grad_sums.shape[1])
        by_text.index_add_(0, graph.text_of[everything], grad_sums)
        grads.window_bias.add_(by_text.sum(0))
        grads.sentence.addmm_(by_text.T, node.g)
        self.grad_g = self.grad_g.addmm(by_text, weights.sentence)

    def take_back_sentences(self, node: Node, grad_next_g: Tensor, grad_next_c_g: Tensor) -> None:
        """Go back through Eq. (3); the softmax as in :func:`word_gates_backward`."""
        graph, weights, grads = self.graph, self.weights, self.grads
        tanh_c, output, forget_g = node.next_c_g.tanh(), node.output, node.forget_g
        grad_c_g = grad_next_c_g + grad_next_g * output * (1 - tanh_c * tanh_c)
        scaled = grad_c_g / node.total
        weighted_g = scaled * forget_g.exp()
        self.grad_c_g += weighted_g
        grad_forget_word = torch.zeros_like(scaled)
        for rows in gate_blocks(slice(0, len(self.seen))):
            text_of, c = graph.text_of[rows], self.c[rows]
            f = (node.forget_word.index_select(0, text_of) + self.seen[rows]).sigmoid_()
            weighted = f.exp() * scaled.index_select(0, text_of)
            self.grad_c[rows] += weighted
            grad_f = weighted * (c - node.next_c_g.index_select(0, text_of)) * (f * (1 - f))
            self.grad_seen[rows] += grad_f
            grad_forget_word.index_add_(0, text_of, grad_f)
        grad_forget_g = weighted_g * (node.c_g - node.next_c_g) * (forget_g * (1 - forget_g))
        grad_output = grad_next_g * tanh_c * (output * (1 - output))
        grad_from_mean = torch.cat([grad_forget_g, grad_output], 1)
        grad_sums = torch.cat([grad_forget_word, grad_from_mean], 1)
        grads.node.addmm_(grad_sums.T, node.g)
        grads.node_bias.add_(grad_sums.sum(0))
        grads.node_mean.addmm_(grad_from_mean.T, node.mean)
        self.grad_g = self.grad_g.addmm(grad_sums, weights.node)
        self.grad_h[:-1] += self.of_mean(grad_from_mean @ weights.node_mean)

    def take_back_seen(self, changed: int) -> None:
        """Go back through U_f h_i, for the words whose h_i was new in this layer."""
        grad_seen = self.grad_seen[:changed]
        self.grad_h[:changed].addmm_(grad_seen, self.weights.node_word)
        self.grads.node_word.addmm_(grad_seen.T, self.h[:changed])
        grad_seen.zero_()

    def of_mean(self, grad_mean: Float[Tensor, "B H"]) -> Float[Tensor, "N H"]:
        """Spread the gradient of a text's mean over its words."""
        return (grad_mean / self.graph.word_counts[:, None]).index_select(0, self.graph.text_of)

    def initial(self) -> Float[Tensor, "N H"]:
        """Give the gradient of the initial states: h and c alike, and their mean in the nodes."""
        return self.grad_h[:-1] + self.grad_c[:-1] + self.of_mean(self.grad_g + self.grad_c_g)


def add_to_neighbourhood(
    states: Float[Tensor, "rows width"],
    graph: DepthOrder,
    rows: slice,
    values: Float[Tensor, "k 3 width"],
) -> None:
    """Add to ``left, self, right`` of some words: the way back of :func:`neighbourhood`."""
    states.index_add_(0, graph.window[rows].flatten(), values.reshape(-1, states.shape[1]))


def word_gates_backward(
    gates: Float[Tensor, "k gates"],
    c: Float[Tensor, "k 3 H"],
    c_g: Float[Tensor, "k H"],
    new_c: Float[Tensor, "k H"],
    grad_h: Float[Tensor, "k H"],
    grad_c: Float[Tensor, "k H"],
) -> tuple[Float[Tensor, "k gates"], Float[Tensor, "k 3 H"], Float[Tensor, "k H"]]:
    """Give the gradients of the sums inside the gates, of the window's cells and of ``c_g``.

    With ``c' = sum_j a_j v_j`` and ``a`` a softmax, ``da_j`` runs back to ``a_j (v_j - c') dc'``.
    """
    size = c.shape[2]
    weights = gates[:, : 5 * size].view(-1, 5, size).exp()
    weights /= weights.sum(1, keepdim=True)
    o, u = gates[:, 5 * size :].chunk(2, 1)
    tanh_c = new_c.tanh()
    grad_c = grad_c + grad_h * o * (1 - tanh_c * tanh_c)
    weighted = weights * grad_c[:, None]  # what arrives at c_left, c_right, c, c_g and u
    l, r, f, s, i = weighted.unbind(1)  # noqa: E741
    c_left, c_self, c_right = c.unbind(1)
    cells = torch.stack([c_left, c_right, c_self, c_g, u], 1)
    grad_sums = torch.empty_like(gates)
    sigmoids = gates[:, : 5 * size].view_as(cells)
    grad_sums[:, : 5 * size].view_as(cells).copy_(
        weighted * (cells - new_c[:, None]) * (sigmoids * (1 - sigmoids))
    )
    grad_sums[:, 5 * size : 6 * size] = grad_h * tanh_c * (o * (1 - o))
    grad_sums[:, 6 * size :] = i * (1 - u * u)
    return grad_sums, torch.stack([l, f, r], 1), s
