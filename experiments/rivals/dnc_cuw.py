"""Neural computer with cached uniform writing (Le et al., 2019): "DNC+CUW" of the paper's Table 3.

An LSTM, the controller, reads the words of a text and has a memory of ``SLOTS`` vectors:

    h_t = LSTM([x_t ; r_{t-1}])
    r_t = Σ_s softmax(β cos(k, M_s))_s M_s                       a read by content; k, β from h_t

It writes only every ``n / (SLOTS + 1)`` words of a text of n words, which is optimal if all words matter
equally. In between its states are cached. When the time comes, it attends to the cache:

    a   = Σ_j softmax(v · tanh(W h_j + U h_t))_j h_j             j: since the last write
    w   = g (g_a allocation + (1 - g_a) softmax(β cos(k, M)))    where to write
    M_s = M_s (1 - w_s e) + w_s value                            k, β, g, g_a, e, value from [h_t ; a]

The allocation prefers slots that no write has used. A text is classified by its last state and its last
read. Differences from the original: the memory is small (8 slots of width 32), there is one read
head, and the links between slots in the order of writing and the freeing of slots, which serve to read
sequences back, are left out. What is found in the cache is an input of the write (there, it replaces the
state of the controller, and its scores also depend on the last read).

    B texts, T words of the longest text, S slots, W width of a slot, H hidden_size
"""

from typing import NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import normalize, softplus

from fathomer.model.baselines.comparison import ComparisonModel, padded
from fathomer.model.graph import WordBatch

SLOTS = 8
WIDTH = 32


class Memory(NamedTuple):
    """The slots of each text, and how much of each slot is used."""

    slots: Float[Tensor, "B S W"]
    usage: Float[Tensor, "B S"]


def by_content(
    memory: Memory, key: Float[Tensor, "B W"], strength: Float[Tensor, "B 1"]
) -> Float[Tensor, "B S"]:
    """Return the weights of the slots by their similarity to a key."""
    # With this eps, the gradient at an empty slot stays finite.
    similarity = (
        normalize(memory.slots, dim=2, eps=1e-3) @ normalize(key, dim=1, eps=1e-3)[:, :, None]
    ).squeeze(2)
    return ((1 + softplus(strength)) * similarity).softmax(1)


def allocation(usage: Float[Tensor, "B S"]) -> Float[Tensor, "B S"]:
    """Return the weights of the slots by how little they are used, the least used first.

    >>> allocation(torch.tensor([[1.0, 0.0, 0.0]]))
    tensor([[0., 1., 0.]])
    """
    used, order = usage.sort(dim=1, stable=True)
    before = torch.cat([torch.ones_like(used[:, :1]), used.cumprod(1)[:, :-1]], 1)
    return torch.zeros_like(usage).scatter(1, order, (1 - used) * before)


def intervals(lengths: Int[Tensor, " B"]) -> Int[Tensor, " B"]:
    """Return after how many words each text is written to memory again."""
    return (lengths // (SLOTS + 1)).clamp(min=1)


class NeuralComputer(ComparisonModel):
    """An LSTM that writes to a small memory at regular intervals and reads from it at every word."""

    def build(self, token_size: int) -> int:
        """Create the controller and its interface to the memory."""
        size = self.config.hidden_size
        self.controller = nn.LSTMCell(token_size + WIDTH, size)
        self.read_from = nn.Linear(size, WIDTH + 1)
        self.cached = nn.Linear(size, size)
        self.asked = nn.Linear(size, size, bias=False)
        self.relevance = nn.Linear(size, 1, bias=False)
        self.write_from = nn.Linear(2 * size, 3 * WIDTH + 3)
        return size + WIDTH

    def read(
        self, tokens: Float[Tensor, "N token"], batch: WordBatch
    ) -> Float[Tensor, "B features"]:
        """Return the last state and the last read of each text; zeros for an empty text."""
        table, here = padded(tokens, batch)
        every = intervals(batch.lengths.to(tokens.device))
        texts, size = batch.num_texts, self.config.hidden_size
        h = c = tokens.new_zeros(texts, size)
        found = tokens.new_zeros(texts, WIDTH)
        memory = Memory(tokens.new_zeros(texts, SLOTS, WIDTH), tokens.new_zeros(texts, SLOTS))
        states: list[Tensor] = []
        for t, (x, inside) in enumerate(zip(table.unbind(1), here.unbind(1), strict=True)):
            here_now = inside[:, None]
            new_h, new_c = self.controller(torch.cat([x, found], 1), (h, c))
            h, c = torch.where(here_now, new_h, h), torch.where(here_now, new_c, c)
            states.append(h)
            writes = inside & ((t + 1) % every == 0)
            if writes.any():
                longest = min(t + 1, int(every.max()))
                cache = torch.stack(states[-longest:], 1)  # B cache H
                written = self.written(memory, h, self.remembered(cache, h, every))
                memory = Memory(
                    torch.where(writes[:, None, None], written.slots, memory.slots),
                    torch.where(writes[:, None], written.usage, memory.usage),
                )
            key, strength = self.read_from(h).split([WIDTH, 1], 1)
            weights = by_content(memory, key, strength)
            found = torch.where(here_now, (weights[:, None] @ memory.slots).squeeze(1), found)
        return torch.cat([h, found], 1)

    def remembered(
        self,
        cache: Float[Tensor, "B cache H"],
        h: Float[Tensor, "B H"],
        every: Int[Tensor, " B"],
    ) -> Float[Tensor, "B H"]:
        """Return what the controller finds in the cache: the states since the last write."""
        scores = self.relevance(torch.tanh(self.cached(cache) + self.asked(h)[:, None]))
        age = torch.arange(cache.shape[1] - 1, -1, -1, device=h.device)
        older = (age >= every[:, None])[:, :, None]
        weights = scores.masked_fill(older, -torch.inf).softmax(1)
        return (weights * cache).sum(1)  # type: ignore[no-any-return]

    def written(
        self, memory: Memory, h: Float[Tensor, "B H"], found: Float[Tensor, "B H"]
    ) -> Memory:
        """Return the memory after a write."""
        sizes = [WIDTH, WIDTH, WIDTH, 1, 1, 1]
        orders = self.write_from(torch.cat([h, found], 1)).split(sizes, 1)
        key, erase, value, strength, allocate, gate = orders
        allocate, gate, erase = allocate.sigmoid(), gate.sigmoid(), erase.sigmoid()
        where = allocate * allocation(memory.usage)
        where = gate * (where + (1 - allocate) * by_content(memory, key, strength))
        kept = memory.slots * (1 - where[:, :, None] * erase[:, None])
        usage = memory.usage + where - memory.usage * where
        return Memory(kept + where[:, :, None] * value[:, None], usage)
