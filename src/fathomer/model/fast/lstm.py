"""The BiLSTM for inference: :class:`fathomer.model.lstm.BiLSTM` with products shared by equal words.

Both directions run side by side; the backward one reads every text from its end. Rows are ordered by
time step (all first words, then all second words, ...), longest text first, so the texts still being
read at a step are a prefix of those of the previous step. One or two texts are read by PyTorch's own
LSTM, which is faster there.

    N words (two rows each, one per direction), D rows of tokens, b texts still being read,
    h hidden size of one direction
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor

from fathomer.model.fast.products import write_product
from fathomer.model.fast.steps import times_tanh
from fathomer.model.graph import WordBatch
from fathomer.model.lstm import BiLSTM

FEW_TEXTS = 2
"""Up to this many texts, PyTorch's LSTM, one text at a time, is faster than ours."""


class FastBiLSTM(BiLSTM):
    """A BiLSTM that reads the tokens of the distinct words of a batch."""

    def prepare(self) -> None:
        """Put the weights into PyTorch's order, once."""
        self.prepared = [w.detach() for direction in (0, 1) for w in self.torch_weights(direction)]

    def read_distinct(
        self, tokens: Float[Tensor, "D token"], rows: Int[Tensor, " N"], batch: WordBatch
    ) -> Float[Tensor, "N hidden"]:
        """Return ``[forward ; backward]`` for each word; ``rows`` has the token of each word."""
        if batch.num_words == 0:
            return tokens.new_zeros(0, self.size)
        if batch.num_texts <= FEW_TEXTS:
            texts = torch.split(tokens.index_select(0, rows), batch.lengths.tolist())
            return torch.cat([self.read_alone(words) for words in texts if len(words)])
        time = sort_by_time(batch)
        both = torch.stack([rows, rows + len(tokens)], 1).flatten()  # 2 N
        sums = self.gate_inputs(tokens).index_select(0, both[time.order])
        states = run_forward(sums, self.recurrent, time.sizes)
        return states.index_select(0, time.rows.flatten()).view(-1, self.size)

    def gate_inputs(self, x: Float[Tensor, "D token"]) -> Float[Tensor, "2*D gates"]:
        """Return what the tokens contribute to the gates, one direction below the other."""
        both = x.new_empty(2, len(x), self.bias.shape[1])
        for sums, weight, bias in zip(both, self.input, self.bias, strict=True):
            write_product(x, weight, sums, bias)
        return both.flatten(0, 1)

    def read_alone(self, words: Float[Tensor, "words token"]) -> Float[Tensor, "words hidden"]:
        """Read one text with PyTorch's LSTM."""
        start = words.new_zeros(2, 1, self.hidden_size)
        states, _, _ = torch.lstm(
            words[:, None],
            (start, start),
            self.prepared,
            has_biases=True,
            num_layers=1,
            dropout=0.0,
            train=False,
            bidirectional=True,
            batch_first=False,
        )
        return states[:, 0]


class TimeOrder(NamedTuple):
    """The words of a batch by time step, for both reading directions."""

    rows: Int[Tensor, "N 2"]
    """Row at which each direction reads each word."""
    order: Int[Tensor, " rows"]
    """What each row reads: twice the index of the word, plus one in the backward direction."""
    sizes: list[int]
    """Number of texts still being read at each time step."""


def sort_by_time(batch: WordBatch) -> TimeOrder:
    """Sort the words of a batch by the time step at which each direction reads them."""
    device = batch.words.device
    longest_first = torch.argsort(batch.lengths, descending=True, stable=True)
    rank = torch.empty_like(longest_first)
    rank[longest_first] = torch.arange(batch.num_texts)
    rank = rank.to(device)[batch.text_of]
    times = torch.stack([batch.positions, batch.reversed_positions], 1)  # N 2
    sizes = torch.bincount(batch.positions.cpu())
    # One block of rows per time step: first the forward direction, then the backward one.
    starts, texts = (2 * (sizes.cumsum(0) - sizes)).to(device), sizes.to(device)
    direction = torch.arange(2, device=device)
    rows = starts[times] + direction * texts[times] + rank[:, None]
    order = torch.empty(rows.numel(), dtype=torch.long, device=device)
    order[rows.flatten()] = torch.arange(rows.numel(), device=device)
    return TimeOrder(rows, order, sizes.tolist())


def run_forward(
    gates: Float[Tensor, "rows gates"], recurrent: Float[Tensor, "2 gates h"], sizes: list[int]
) -> Float[Tensor, "rows h"]:
    """Run the time steps and return the hidden states; the gate inputs are overwritten."""
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
        g.add_(g)
        now.sigmoid_()
        times_tanh(i, g, out=new_c)
        if len(old_c):
            new_c.addcmul_(f, old_c[:, :texts])
        times_tanh(o, torch.add(new_c, new_c, out=new_h).sigmoid_(), out=new_h)
        old_c, old_h = new_c, new_h
    return states


def by_step(
    values: Float[Tensor, "rows width"], sizes: list[int]
) -> list[Float[Tensor, "2 b width"]]:
    """Split rows into time steps and directions."""
    steps = torch.split(values, [2 * size for size in sizes])
    return [step.view(2, -1, values.shape[1]) for step in steps]
