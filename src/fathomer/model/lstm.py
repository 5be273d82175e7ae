"""A bidirectional LSTM over packed texts, Eq. (5), forwards and backwards.

PyTorch's own packed LSTM goes back through a slice of all words at every time step, which takes time
that grows with the square of the length. Here the way back is written out and linear.

Both directions run side by side: the backward one reads every text from its end. Rows stand by time
step (all first words, then all second words, ...), longest text first, so that the texts that are
still being read at a step are a prefix of those of the step before.

    N words (rows: one for each word and direction), b texts still being read at a time step,
    h hidden size of one direction
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fathomer.model.graph import WordBatch


class TimeOrder(NamedTuple):
    """Show the words of a batch by time step, for both reading directions."""

    rows: Int[Tensor, "N 2"]
    """The row at which each direction reads each word."""
    order: Int[Tensor, " rows"]
    """What is read at each row: twice the word, plus one in the backward direction."""
    sizes: list[int]
    """Texts that are still being read at each time step."""
    previous: Int[Tensor, " rows"]
    """Row of the same text and direction at the time step before; ``2 N`` at the first."""


def sort_by_time(batch: WordBatch) -> TimeOrder:
    """Sort the words of a batch by the time at which each direction reads them."""
    device = batch.words.device
    longest_first = torch.argsort(batch.lengths, descending=True, stable=True)
    rank = torch.empty_like(longest_first)
    rank[longest_first] = torch.arange(batch.num_texts)
    rank, lengths = (row.to(device)[batch.text_of] for row in (rank, batch.lengths))
    times = torch.stack([batch.positions, lengths - 1 - batch.positions], 1)  # N 2
    sizes = torch.bincount(batch.positions.cpu())
    # A row of blocks, one for each time step: first the forward direction, then the backward one.
    starts, texts = (2 * (sizes.cumsum(0) - sizes)).to(device), sizes.to(device)
    direction = torch.arange(2, device=device)
    rows = starts[times] + direction * texts[times] + rank[:, None]
    before = (times - 1).clamp_(min=0)
    previous = starts[before] + direction * texts[before] + rank[:, None]
    order = torch.empty(rows.numel(), dtype=torch.long, device=device)
    order[rows.flatten()] = torch.arange(rows.numel(), device=device)
    previous = previous.masked_fill_(times == 0, rows.numel()).flatten()[order]
    return TimeOrder(rows, order, sizes.tolist(), previous)


class ReadBothWays(torch.autograd.Function):
    """Read packed texts: sums of the inputs in, states of both directions out."""

    @staticmethod
    def forward(
        ctx: Any,
        sums: Float[Tensor, "rows gates"],
        recurrent: Float[Tensor, "2 gates h"],
        time: TimeOrder,
    ) -> Float[Tensor, "rows h"]:
        """Run through the time steps; gates stand in the order g, i, f, o."""
        gates, c, states = read(sums.clone(), recurrent, time.sizes)
        ctx.save_for_backward(gates, c, states, recurrent)
        ctx.time = time
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor) -> tuple[Tensor, Tensor, None]:
        """Give the gradients of the sums and of the recurrent matrices."""
        gates, c, states, recurrent = ctx.saved_tensors
        rows, _, sizes, previous = ctx.time
        previous_c = functional.pad(c, (0, 0, 0, 1)).index_select(0, previous)
        grad_sums = read_back(gates, c, previous_c, recurrent, sizes, grad_h.clone())
        previous_h = functional.pad(states, (0, 0, 0, 1)).index_select(0, previous)
        grad_forward, grad_backward = (
            grad_sums.index_select(0, row).T @ previous_h.index_select(0, row) for row in rows.T
        )
        return grad_sums, torch.stack([grad_forward, grad_backward]), None


def read(
    gates: Float[Tensor, "rows gates"], recurrent: Float[Tensor, "2 gates h"], sizes: list[int]
) -> tuple[Tensor, Float[Tensor, "rows h"], Float[Tensor, "rows h"]]:
    """Run through the time steps; the sums of the inputs are overwritten by the gates."""
    size = recurrent.shape[2]
    recurrent = recurrent.mT.contiguous()
    c, states = (gates.new_empty(len(gates), size) for _ in range(2))
    old_c = old_h = gates.new_empty(0)
    steps = zip(*(by_step(each, sizes) for each in (gates, c, states)), strict=True)
    for now, new_c, new_h in steps:
        texts = now.shape[1]
        if len(old_h):
            torch.baddbmm(now, old_h[:, :texts], recurrent, out=now)
        g, i, f, o = now.chunk(4, 2)
        g.tanh_()
        now[:, :, size:].sigmoid_()
        torch.mul(g, i, out=new_c)
        if len(old_c):
            new_c.addcmul_(f, old_c[:, :texts])
        torch.tanh(new_c, out=new_h).mul_(o)
        old_c, old_h = new_c, new_h
    return gates, c, states


def by_step(
    values: Float[Tensor, "rows width"], sizes: list[int]
) -> list[Float[Tensor, "2 b width"]]:
    """Cut rows into time steps, and those into directions."""
    steps = torch.split(values, [2 * size for size in sizes])
    return [step.view(2, -1, values.shape[1]) for step in steps]


def read_back(
    gates: Float[Tensor, "rows gates"],
    c: Float[Tensor, "rows h"],
    previous_c: Float[Tensor, "rows h"],
    recurrent: Float[Tensor, "2 gates h"],
    sizes: list[int],
    grad_h: Float[Tensor, "rows h"],
) -> Float[Tensor, "rows gates"]:
    """Run back through the time steps; ``grad_h`` is written over.

    What does not depend on the time after is worked out beforehand, for all words at once.
    """
    g, i, f, o = gates.chunk(4, 1)
    tanh_c = c.tanh()
    to_c = o * (1 - tanh_c * tanh_c)
    by_c = torch.cat([i * (1 - g * g), g * i * (1 - i), previous_c * f * (1 - f)], 1)
    by_h = tanh_c * o * (1 - o)
    grad_sums, grad_c = torch.empty_like(gates), torch.zeros_like(c)
    everything = (grad_sums, grad_h, grad_c, to_c, by_c, by_h, f)
    steps = list(zip(*(by_step(each, sizes) for each in everything), strict=True))
    for step in range(len(steps) - 1, -1, -1):
        sums, of_h, of_c, to_c, by_c, by_h, f = steps[step]
        texts, size = of_h.shape[1:]
        of_c.addcmul_(of_h, to_c)
        parts, by_c = sums.view(2, texts, 4, size), by_c.view(2, texts, 3, size)
        torch.mul(of_c[:, :, None], by_c, out=parts[:, :, :3])
        torch.mul(of_h, by_h, out=parts[:, :, 3])
        if step:
            _, before_h, before_c, *_ = (each[:, :texts] for each in steps[step - 1])
            before_h += torch.bmm(sums, recurrent)
            torch.mul(of_c, f, out=before_c)
    return grad_sums
