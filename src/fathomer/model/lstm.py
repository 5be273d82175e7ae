"""A one-layer bidirectional LSTM over packed texts, Eq. (5), with its own backward pass.

PyTorch's packed LSTM takes a slice of all words at every time step of its backward pass, so its time
grows with the square of the length. This one is linear.

Both directions run side by side; the backward one reads every text from its end. Rows are ordered by
time step (all first words, then all second words, ...), longest text first, so the texts still being
read at a step are a prefix of those of the previous step.

    N words (two rows each, one per direction), b texts still being read at a time step,
    h hidden size of one direction, D rows of tokens
"""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from fathomer.model.graph import WordBatch


class BiLSTM(nn.Module):
    """A bidirectional LSTM, Eq. (5); ``hidden_size`` is shared by the two directions."""

    def __init__(self, token_size: int, hidden_size: int) -> None:
        super().__init__()
        self.size = hidden_size
        self.hidden_size = hidden_size // 2  # of one direction
        gates = 4 * self.hidden_size  # g, i, f, o
        self.input = nn.Parameter(torch.empty(2, gates, token_size))
        self.bias = nn.Parameter(torch.empty(2, gates))
        self.recurrent = nn.Parameter(torch.empty(2, gates, self.hidden_size))

    def forward(self, x: Float[Tensor, "N token"], batch: WordBatch) -> Float[Tensor, "N hidden"]:
        """Return ``[forward ; backward]`` for each word."""
        rows = torch.arange(batch.num_words, device=x.device)
        return self.recur(self.gate_inputs(x), rows, batch)

    def gate_inputs(self, x: Float[Tensor, "D token"]) -> Float[Tensor, "2*D gates"]:
        """Return what the tokens contribute to the gates, one direction below the other."""
        both = torch.baddbmm(self.bias[:, None], x.expand(2, -1, -1), self.input.mT)
        return both.flatten(0, 1)

    def recur(
        self, inputs: Float[Tensor, "rows gates"], rows: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Run both directions; ``rows`` says which row of ``inputs`` each word has."""
        if batch.num_words == 0:
            return inputs.new_zeros(0, self.size)
        time = sort_by_time(batch)
        both = torch.stack([rows, rows + len(inputs) // 2], 1).flatten()  # 2 N
        sums = inputs.index_select(0, both[time.order])
        recurrent = self.recurrent.to(sums.dtype)  # autocast may have chosen another one
        if torch.is_grad_enabled():
            states: Tensor = BiLSTMFunction.apply(sums, recurrent, time)  # type: ignore[no-untyped-call]
        else:
            _, _, states = run_forward(sums, recurrent, time.sizes)
        return states.index_select(0, time.rows.flatten()).view(-1, self.size)


class TimeOrder(NamedTuple):
    """The words of a batch by time step, for both reading directions."""

    rows: Int[Tensor, "N 2"]
    """Row at which each direction reads each word."""
    order: Int[Tensor, " rows"]
    """What each row reads: twice the index of the word, plus one in the backward direction."""
    sizes: list[int]
    """Number of texts still being read at each time step."""
    previous: Int[Tensor, " rows"]
    """Row of the same text and direction at the previous time step; ``2 N`` at the first."""


def sort_by_time(batch: WordBatch) -> TimeOrder:
    """Sort the words of a batch by the time step at which each direction reads them."""
    device = batch.words.device
    longest_first = torch.argsort(batch.lengths, descending=True, stable=True)
    rank = torch.empty_like(longest_first)
    rank[longest_first] = torch.arange(batch.num_texts)
    rank, lengths = (row.to(device)[batch.text_of] for row in (rank, batch.lengths))
    times = torch.stack([batch.positions, lengths - 1 - batch.positions], 1)  # N 2
    sizes = torch.bincount(batch.positions.cpu())
    # One block of rows per time step: first the forward direction, then the backward one.
    starts, texts = (2 * (sizes.cumsum(0) - sizes)).to(device), sizes.to(device)
    direction = torch.arange(2, device=device)
    rows = starts[times] + direction * texts[times] + rank[:, None]
    before = (times - 1).clamp_(min=0)
    previous = starts[before] + direction * texts[before] + rank[:, None]
    order = torch.empty(rows.numel(), dtype=torch.long, device=device)
    order[rows.flatten()] = torch.arange(rows.numel(), device=device)
    previous = previous.masked_fill_(times == 0, rows.numel()).flatten()[order]
    return TimeOrder(rows, order, sizes.tolist(), previous)


class BiLSTMFunction(torch.autograd.Function):
    """The recurrence of both directions: gate inputs in, hidden states out."""

    @staticmethod
    def forward(
        ctx: Any,
        sums: Float[Tensor, "rows gates"],
        recurrent: Float[Tensor, "2 gates h"],
        time: TimeOrder,
    ) -> Float[Tensor, "rows h"]:
        """Run the time steps; the gates are in the order g, i, f, o."""
        gates, c, states = run_forward(sums.clone(), recurrent, time.sizes)
        ctx.save_for_backward(gates, c, states, recurrent)
        ctx.time = time
        return states

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad_h: Tensor) -> tuple[Tensor, Tensor, None]:
        """Return the gradients of the gate inputs and of the recurrent matrices."""
        gates, c, states, recurrent = ctx.saved_tensors
        rows, _, sizes, previous = ctx.time
        previous_c = functional.pad(c, (0, 0, 0, 1)).index_select(0, previous)
        grad_sums = run_backward(gates, c, previous_c, recurrent, sizes, grad_h.clone())
        previous_h = functional.pad(states, (0, 0, 0, 1)).index_select(0, previous)
        grad_forward, grad_backward = (
            grad_sums.index_select(0, row).T @ previous_h.index_select(0, row) for row in rows.T
        )
        return grad_sums, torch.stack([grad_forward, grad_backward]), None


def run_forward(
    gates: Float[Tensor, "rows gates"], recurrent: Float[Tensor, "2 gates h"], sizes: list[int]
) -> tuple[Tensor, Float[Tensor, "rows h"], Float[Tensor, "rows h"]]:
    """Run the time steps; the gate inputs are overwritten by the gates."""
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
    """Split rows into time steps and directions."""
    steps = torch.split(values, [2 * size for size in sizes])
    return [step.view(2, -1, values.shape[1]) for step in steps]


def run_backward(
    gates: Float[Tensor, "rows gates"],
    c: Float[Tensor, "rows h"],
    previous_c: Float[Tensor, "rows h"],
    recurrent: Float[Tensor, "2 gates h"],
    sizes: list[int],
    grad_h: Float[Tensor, "rows h"],
) -> Float[Tensor, "rows gates"]:
    """Run the time steps in reverse; ``grad_h`` is overwritten.

    Everything that does not depend on later time steps is computed first, for all words at once.
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
