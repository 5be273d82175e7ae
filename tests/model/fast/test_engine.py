"""The inference engine computes the function of the plain model."""

from collections import Counter
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from fathomer.model import WordBatch
from fathomer.model.fast import fast_network
from fathomer.model.fast.engine import FastNetwork
from fathomer.model.fast.lstm import FEW_TEXTS, FastBiLSTM
from tests.model.networks import (
    RAGGED,
    UNKNOWN,
    in_float64,
    packed,
    random_depths,
    random_network,
    random_texts,
)
from tests.model.test_sparsity import CountRows

H = 12
MANY_WORDS = random_texts(seed=4, texts=40, longest=15)  # more than oneDNN multiplies at once
TEXTS = {
    "one text": RAGGED[:1],
    "two texts": [[1, 2, 3], [4, 5]],
    "many texts": RAGGED,
    "random texts": random_texts(seed=3, texts=20, longest=15),
    "many words": MANY_WORDS,
    "one long text": [[word for text in MANY_WORDS for word in text]],
}
both = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["32", "64"])


@torch.inference_mode()
@pytest.mark.parametrize("sequence", ["bilstm", "none", "sinusoidal", "learned"])
@pytest.mark.parametrize("depth", ["gumbel", "hard", "soft", "full", "supervised", "forced"])
@both
def test_the_engine_agrees_with_the_plain_model(sequence, depth, dtype):
    how = "gumbel" if depth == "forced" else depth
    plain = random_network(sequence=sequence, depth=how, hidden_size=H, depth_size=4)
    if dtype == torch.float64:
        in_float64(plain)
    tolerance = 1e-5 if dtype == torch.float32 else 1e-10
    for name, texts in TEXTS.items():
        engine, batch = fast_network(plain), packed(texts)
        depths = random_depths(batch) if depth == "forced" else None
        expected = plain(batch, depths=depths)
        for cache in ("empty", "filled"):  # of the characters of words
            found = engine(batch, depths=depths)
            for one, other in zip(found, expected, strict=True):
                message = partial("{}, {} cache: {}".format, name, cache)
                torch.testing.assert_close(one, other, rtol=0, atol=tolerance, msg=message)


@torch.inference_mode()
@pytest.mark.parametrize("block", [1, 2, 512])
@pytest.mark.parametrize("depth_size", [2, H], ids=["folded", "not folded"])
def test_blocks_and_folding_change_nothing(monkeypatch, block, depth_size):
    monkeypatch.setattr("fathomer.model.fast.products.ROWS", 2)
    for module in ("steps", "products"):
        monkeypatch.setattr(f"fathomer.model.fast.{module}.PRODUCT_BLOCK", 2 * block)
    plain = in_float64(random_network(hidden_size=H, depth_size=depth_size))
    batch = packed(RAGGED)
    expected, found = plain(batch), fast_network(plain)(batch)
    assert fast_network(plain).slstm.folds == (depth_size == 2)
    torch.testing.assert_close(found.words, expected.words, rtol=0, atol=1e-10)
    torch.testing.assert_close(found.logits, expected.logits, rtol=0, atol=1e-10)


def rows_multiplied(network: FastNetwork, batch: WordBatch, depths: Tensor) -> Counter:
    with torch.inference_mode(), CountRows() as counter:
        network(batch, depths=depths)
    return counter.rows


@pytest.mark.parametrize("texts", [RAGGED, MANY_WORDS], ids=["few words", "many words"])
def test_a_stopped_word_costs_nothing(texts):
    """The first layer multiplies the narrow inner vectors, with a column of ones beside them."""
    batch = packed(texts)
    depths = random_depths(batch)
    rows = rows_multiplied(fast_network(random_network(hidden_size=H, depth_size=4)), batch, depths)
    assert rows[3 * (4 + 1), 7 * H] == len(depths)
    assert rows[3 * H, 7 * H] == int(depths.sum()) - len(depths)


@pytest.mark.parametrize("texts", [RAGGED, MANY_WORDS], ids=["few words", "many words"])
def test_products_are_shared_by_equal_words_and_equal_depths(texts):
    batch = packed(texts)
    rows = rows_multiplied(fast_network(random_network(hidden_size=H)), batch, random_depths(batch))
    assert rows[5 + 4, 7 * H] == len(set(batch.words.tolist()))
    assert rows[7, 7 * H] == 4  # one row per depth


@torch.inference_mode()
def test_words_seen_before_skip_the_convolution():
    network = fast_network(random_network())
    network(WordBatch.from_ids([[1, 2, 3]]))
    seen = []
    network.embedding.char.register_forward_pre_hook(lambda _, given: seen.append(len(given[0])))
    network(WordBatch.from_ids([[3, 1], [4]]))
    assert seen == [1, 0]  # the known word 4; no unknown one


@torch.inference_mode()
def test_unknown_words_are_spelled_by_the_batch_every_time():
    network = random_network().eval()
    other = fast_network(network)
    for spellings in (UNKNOWN, UNKNOWN.flip(0)):
        batch = WordBatch.from_ids([[-1, 1, -2]], unknown=spellings)
        torch.testing.assert_close(other(batch).logits, network(batch).logits)


def test_pytorch_s_lstm_reads_few_texts_and_ours_many(monkeypatch):
    network = fast_network(random_network())
    assert isinstance(network.sequence, FastBiLSTM)
    called = []
    lstm = torch.lstm
    monkeypatch.setattr(torch, "lstm", lambda *a, **k: called.append(1) or lstm(*a, **k))
    with torch.inference_mode():
        network(WordBatch.from_ids([[1, 2]] * (FEW_TEXTS + 1)))
        assert not called
        network(WordBatch.from_ids([[1, 2]] * FEW_TEXTS))
        assert called


@torch.inference_mode()
def test_texts_without_any_word_are_answered():
    network = random_network().eval()
    for texts in ([], [[]], [[], []]):
        batch = WordBatch.from_ids(texts)
        torch.testing.assert_close(fast_network(network)(batch).logits, network(batch).logits)


def test_the_plain_model_is_left_as_it_was():
    network = random_network().eval()
    names = [type(module).__name__ for module in network.modules()]
    fast_network(network)
    assert [type(module).__name__ for module in network.modules()] == names


class CountLarge(TorchDispatchMode):
    """Count the operations that allocate at least ``numbers`` numbers."""

    def __init__(self, numbers: int):
        super().__init__()
        self.numbers, self.taken = numbers, Counter()

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        given = {
            t.untyped_storage().data_ptr() for t in tree_leaves((args, kwargs)) if is_tensor(t)
        }
        found = function(*args, **(kwargs or {}))
        for tensor in filter(is_tensor, tree_leaves(found)):
            if tensor.numel() >= self.numbers and tensor.untyped_storage().data_ptr() not in given:
                self.taken[function.overloadpacket.__name__] += 1
        return found


def is_tensor(value):
    return isinstance(value, Tensor)


def test_a_layer_allocates_one_large_tensor_per_operation():
    """Buffers are allocated once per batch; only embedding_bag and oneDNN cannot write into one."""
    network = fast_network(random_network(hidden_size=H))
    batch = packed([[1] * 40, [2] * 60])

    def taken(depth: int) -> Counter:
        depths = torch.full((100,), depth)
        with torch.inference_mode(), CountLarge(100 * H) as counter:
            network(batch, depths=depths)
        return counter.taken

    assert taken(4) - taken(2) == Counter({"embedding_bag": 2 * 2, "_linear_pointwise": 2})
