"""Adaptive computation time (Graves, 2016), a halting unit for any recurrent step.

After step n a word has the state h_n and halts with probability p_n = sigmoid(w h_n + b):

    N = the first n with p_1 + ... + p_n >= 1 - 0.01, at most ``max_depth``
    R = 1 - (p_1 + ... + p_{N-1})                     its remainder
    h = p_1 h_1 + ... + p_{N-1} h_{N-1} + R h_N       what is read from the word

A halted word keeps its state. The ponder cost, ``COST`` times the mean of N + R over the words of a
text, is added to the loss of the text.

    N words of the batch, B texts, H size of a state
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from fathomer.model.graph import WordBatch

THRESHOLD = 0.99
COST = 0.01

Step = Callable[[int, Bool[Tensor, " N"]], Float[Tensor, "N H"]]
"""A function of the step, from 0, and of which words run; it returns the states of all words."""


class Halted(NamedTuple):
    """The words after all of them have halted."""

    states: Float[Tensor, "N H"]
    steps: Int[Tensor, " N"]
    ponder: Float[Tensor, " N"]
    """N + R of each word."""


class HaltingUnit(nn.Module):
    """The unit that decides after each step which words halt."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.unit = nn.Linear(size, 1)

    def forward(self, step: Step, words: int, max_depth: int) -> Halted:
        """Repeat ``step`` until all words have halted."""
        sums = self.unit.weight.new_zeros(words)
        running = torch.ones_like(sums, dtype=torch.bool)
        steps, ponder, mixed = torch.zeros_like(running, dtype=torch.long), sums, sums[:, None]
        for number in range(max_depth):
            h = step(number, running)
            p = torch.sigmoid(self.unit(h)).squeeze(1)
            last = running & (sums + p >= THRESHOLD)
            if number == max_depth - 1:
                last = running
            share = torch.where(last, 1 - sums, p) * running
            mixed = mixed + share[:, None] * h
            steps = steps + running
            ponder = torch.where(last, 1 - sums + steps, ponder)
            sums, running = sums + share, running & ~last
            if not running.any():
                break
        return Halted(mixed, steps, ponder)


class _Penalty(torch.autograd.Function):
    """Logits whose gradient step also lowers a penalty."""

    @staticmethod
    def forward(ctx: Any, logits: Tensor, penalty: Tensor) -> Tensor:
        ctx.texts = len(penalty)
        return logits.view_as(logits)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        return grad, grad.new_full((ctx.texts,), 1 / ctx.texts)


def with_ponder_cost(
    logits: Float[Tensor, "B labels"], ponder: Float[Tensor, " N"], batch: WordBatch
) -> Float[Tensor, "B labels"]:
    """Return the logits unchanged; their backward pass adds the gradient of the ponder cost."""
    sums = ponder.new_zeros(batch.num_texts).index_add(0, batch.text_of, ponder)
    return _Penalty.apply(logits, COST * sums / batch.word_counts)  # type: ignore[no-any-return, no-untyped-call]
