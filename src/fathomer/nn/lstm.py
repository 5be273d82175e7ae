"""A bidirectional LSTM over packed texts, Eq. (5), forwards and backwards.

PyTorch's own packed LSTM goes back through a slice of all words at every time step, which takes time
that grows with the square of the length. Here the way back is written out and linear.

Both directions run side by side: the backward one reads every text from its end. Rows stand by time
step (all first words, then all second words, ...), longest text first, so that the texts that are
still being read at a step are a prefix of those of the step before.

    N words, b texts still being read at a time step, h hidden size of one direction
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fathomer.nn.graph import WordBatch


class TimeOrder(NamedTuple):
    """Show the words of a batch by time step, for both reading directions."""

    orders: Int[Tensor, "2 N"]
    """The word that stands at each row."""
    sizes: list[int]
    """Texts that are still being read at each time step."""
    previous: Int[Tensor, " N"]
    """Row of the same text at the time step before; ``N`` at the first."""


def sort_by_time(batch: WordBatch) -> TimeOrder:
    """Sort the words of a batch by the time at which each direction reads them."""
    device = batch.words.device
    longest_first = torch.argsort(batch.lengths, descending=True, stable=True)
    rank = torch.empty_like(longest_first)
    rank[longest_first] = torch.arange(batch.num_texts)
    rank, lengths = (row.to(device)[batch.text_of] for row in (rank, batch.lengths))
    from_start, from_end = batch.positions, lengths - 1 - batch.positions
    keys = torch.stack([from_start, from_end]) * batch.num_texts + rank
    sizes = torch.bincount(batch.positions.cpu())
    steps_before = torch.cat([sizes[:1], sizes[:-1]]).repeat_interleave(sizes)
    previous = torch.arange(batch.num_words) - steps_before
    previous[: int(sizes[0])] = batch.num_words
    return TimeOrder(keys.argsort(1), sizes.tolist(), previous.to(device))


class ReadBothWays(torch.autograd.Function):
    """Read packed texts: sums of the inputs in, states of both directions out."""

    @staticmethod
    def forward(
        ctx: Any,
        sums: Float[Tensor, "2 N gates"],
        recurrent: Float[Tensor, "2 gates h"],
        time: TimeOrder,
    ) -> Float[Tensor, "2 N h"]:
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
        previous_c = functional.pad(c, (0, 0, 0, 1)).index_select(1, ctx.time.previous)
        grad_sums = read_back(gates, c, previous_c, recurrent, ctx.time.sizes, grad_h.clone())
        previous_h = functional.pad(states, (0, 0, 0, 1)).index_select(1, ctx.time.previous)
        return grad_sums, grad_sums.transpose(1, 2) @ previous_h, None


def read(
    gates: Float[Tensor, "2 N gates"], recurrent: Float[Tensor, "2 gates h"], sizes: list[int]
) -> tuple[Tensor, Float[Tensor, "2 N h"], Float[Tensor, "2 N h"]]:
    """Run through the time steps; the sums of the inputs are overwritten by the gates."""
    size = recurrent.shape[2]
    recurrent = recurrent.transpose(1, 2).contiguous()
    c, states = (gates.new_empty(2, gates.shape[1], size) for _ in range(2))
    start = 0
    for step, texts in enumerate(sizes):
        now = gates[:, start : start + texts]
        new_c, new_h = c[:, start : start + texts], states[:, start : start + texts]
        if step:
            before = start - sizes[step - 1]
            torch.baddbmm(now, states[:, before : before + texts], recurrent, out=now)
        now[:, :, :size].tanh_()
        now[:, :, size:].sigmoid_()
        g, i, f, o = now.chunk(4, 2)
        torch.mul(g, i, out=new_c)
        if step:
            new_c.addcmul_(f, c[:, before : before + texts])
        torch.tanh(new_c, out=new_h)
        new_h.mul_(o)
        start += texts
    return gates, c, states


def read_back(
    gates: Float[Tensor, "2 N gates"],
    c: Float[Tensor, "2 N h"],
    previous_c: Float[Tensor, "2 N h"],
    recurrent: Float[Tensor, "2 gates h"],
    sizes: list[int],
    grad_h: Float[Tensor, "2 N h"],
) -> Float[Tensor, "2 N gates"]:
    """Run back through the time steps; ``grad_h`` is written over.

    What does not depend on the time after is worked out beforehand, for all words at once.
    """
    g, i, f, o = gates.chunk(4, 2)
    tanh_c = c.tanh()
    to_c = o * (1 - tanh_c * tanh_c)
    by_c = torch.stack([i * (1 - g * g), g * i * (1 - i), previous_c * f * (1 - f)], 2)
    by_h = tanh_c * o * (1 - o)
    grad_sums = torch.empty_like(gates)
    parts = grad_sums.view(*by_h.shape[:2], 4, -1)  # 2 N 4 h
    grad_c, start = torch.zeros_like(c), gates.shape[1]
    for step in range(len(sizes) - 1, -1, -1):
        rows = slice(start - sizes[step], start)
        start = rows.start
        grad_c[:, rows].addcmul_(grad_h[:, rows], to_c[:, rows])
        torch.mul(grad_c[:, rows, None], by_c[:, rows], out=parts[:, rows, :3])
        torch.mul(grad_h[:, rows], by_h[:, rows], out=parts[:, rows, 3])
        if step:
            before = slice(start - sizes[step - 1], start - sizes[step - 1] + sizes[step])
            grad_h[:, before] += torch.bmm(grad_sums[:, rows], recurrent)
            torch.mul(grad_c[:, rows], f[:, rows], out=grad_c[:, before])
    return grad_sums
