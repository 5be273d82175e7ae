"""The neural computer with cached uniform writing."""

import torch

from experiments.rivals.dnc_cuw import (
    SLOTS,
    WIDTH,
    Memory,
    allocation,
    by_content,
    intervals,
)
from fathomer.model.graph import WordBatch
from fathomer.model.registry import build_model
from tests.model.baselines.small import (
    RAGGED,
    assert_agrees,
    assert_close,
    small_config,
    small_model,
    tokens_of,
)


def test_writes_are_spread_evenly_over_a_text():
    assert intervals(torch.tensor([0, 1, 9, 18, 100])).tolist() == [1, 1, 1, 2, 11]
    network, written = small_model("dnc-cuw"), []
    plain = network.written
    network.written = lambda *state: written.append(1) or plain(*state)
    network(WordBatch.from_ids([[3] * 27]))
    assert len(written) == 9  # every 27 / (8 + 1) words


def test_the_allocation_prefers_the_least_used_slots():
    usage = torch.tensor([[0.5, 0.2, 0.9]], dtype=torch.float64)
    wanted = torch.tensor([[0.5 * 0.2, 0.8, 0.1 * 0.2 * 0.5]], dtype=torch.float64)
    assert_close(allocation(usage), wanted)


def test_a_key_finds_the_slot_that_points_the_same_way():
    memory = Memory(5 * torch.eye(SLOTS, WIDTH)[None], torch.zeros(1, SLOTS))
    weights = by_content(memory, torch.eye(WIDTH)[None, 3], torch.tensor([[100.0]]))
    assert weights[0, 3] > 0.999


def test_a_write_goes_where_the_gates_send_it():
    network = small_model("dnc-cuw")
    h = torch.randn(2, 16, dtype=torch.float64)
    memory = Memory(
        torch.randn(2, SLOTS, WIDTH, dtype=torch.float64),
        torch.rand(2, SLOTS, dtype=torch.float64),
    )
    found = network.written(memory, h, h)
    for text in range(2):
        orders = network.write_from(torch.cat([h[text], h[text]]))
        key, erase, value = orders[: 3 * WIDTH].chunk(3)
        strength, allocate, gate = orders[3 * WIDTH :]
        content = by_content(
            Memory(memory.slots[text, None], None), key[None], strength[None, None]
        )
        free = allocation(memory.usage[text, None])
        w = gate.sigmoid() * (allocate.sigmoid() * free + (1 - allocate.sigmoid()) * content)[0]
        for slot in range(SLOTS):
            kept = memory.slots[text, slot] * (1 - w[slot] * erase.sigmoid())
            assert_close(found.slots[text, slot], kept + w[slot] * value)


def run_plainly(network, text):
    """Compute the logits of one text, word by word; only the write is the network's own."""
    every = max(1, len(text) // (SLOTS + 1))
    zeros = torch.zeros(1, network.config.hidden_size, dtype=torch.float64)
    h, c, found, since = zeros, zeros, zeros.new_zeros(1, WIDTH), []
    memory = Memory(zeros.new_zeros(1, SLOTS, WIDTH), zeros.new_zeros(1, SLOTS))
    for t, x in enumerate(tokens_of(network, text), start=1):
        h, c = network.controller(torch.cat([x[None], found], 1), (h, c))
        since.append(h)
        if t % every == 0:
            scores = [
                network.relevance(torch.tanh(network.cached(h_j) + network.asked(h)))
                for h_j in since
            ]
            weights = torch.stack(scores).softmax(0)
            memory = network.written(
                memory, h, sum(w * j for w, j in zip(weights, since, strict=True))
            )
            since = []
        order = network.read_from(h)[0]
        key, strength = order[:WIDTH], 1 + torch.nn.functional.softplus(order[WIDTH])
        norms = memory.slots[0].norm(dim=1).clamp(min=1e-3) * key.norm()
        weights = (strength * (memory.slots[0] @ key) / norms).softmax(0)
        found = sum(w * slot for w, slot in zip(weights, memory.slots[0], strict=True))[None]
    return network.output(torch.cat([h, found], 1))[0]


def test_it_agrees_with_plain_loops():
    texts = [
        *filter(None, RAGGED),
        [3, 1, 4, 1, 5, 9, 2, 6, 5] * 3,
    ]  # writes after each and three words
    with torch.no_grad():
        assert_agrees(small_model("dnc-cuw"), run_plainly, texts)


def test_the_memory_alone_recalls_the_first_word_of_a_text():
    """The copy task with one word to copy: what the last read says is all that is classified."""
    torch.manual_seed(0)
    config = small_config("dnc-cuw", hidden_size=16, word_dropout=0.0, hidden_dropout=0.0)
    network = build_model(config)
    output = torch.nn.Linear(WIDTH, 4)
    weights = [*network.parameters(), *output.parameters()]
    optimiser = torch.optim.Adam(weights, lr=0.02)
    for _ in range(200):
        texts = torch.randint(0, 4, (64, 5))
        batch = WordBatch.from_ids(texts.tolist())
        read = network.read(network.embedding(batch), batch)[:, -WIDTH:]
        loss = torch.nn.functional.cross_entropy(output(read), texts[:, 0])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        if loss < 0.1:
            return
    raise AssertionError(f"the loss is still {loss:.2f}")
