"""RCRN against slow plain loops over its equations."""

import torch

from experiments.rivals.rcrn import listen
from fathomer.model import WordBatch
from tests.model.baselines.small import (
    RAGGED,
    assert_close,
    pooled,
    ragged_logits,
    small_model,
    tokens_of,
)


def test_the_listener_agrees_with_plain_loops():
    batch = WordBatch.from_ids(RAGGED)
    forget, heard = torch.rand(batch.num_words, 6), torch.randn(batch.num_words, 6)
    found = listen(forget, heard, batch).split(batch.lengths.tolist())
    sequences = (rows.split(batch.lengths.tolist()) for rows in (forget, heard))
    for cells, f, x in zip(found, *sequences, strict=True):
        there, back = torch.zeros(3), torch.zeros(3)
        for t in range(len(f)):
            there = f[t, :3] * there + (1 - f[t, :3]) * x[t, :3]
            torch.testing.assert_close(cells[t, :3], there)
        for t in reversed(range(len(f))):
            back = f[t, 3:] * back + (1 - f[t, 3:]) * x[t, 3:]
            torch.testing.assert_close(cells[t, 3:], back)


def test_both_controllers_are_gates_of_the_listener():
    network = small_model("rcrn")
    for text, found in zip(RAGGED, ragged_logits(network), strict=True):
        batch, tokens = WordBatch.from_ids([text]), tokens_of(network, text)
        parts = (network.forget, network.expose, network.listener)
        forget, expose, heard = (part(tokens, batch) for part in parts)
        states = expose.sigmoid() * listen(forget.sigmoid(), heard, batch)
        assert_close(found, network.output(pooled(states)))
