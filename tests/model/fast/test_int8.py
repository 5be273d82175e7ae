"""Products in bytes: close to those in floats, the same in any company, and used where they should be."""

import pytest
import torch

from fathomer.config import ModelConfig
from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.fast.int8 import Int8Matrix, available, quantised, to_bytes
from fathomer.model.model import SLSTM

pytestmark = pytest.mark.skipif(not available(), reason="this processor has no VNNI")

SIZES = {"hidden_size": 64, "word_size": 32, "char_size": 16, "depth_size": 8}


@pytest.fixture
def network():
    return fresh_network()


def fresh_network(**settings) -> DepthAdaptiveNetwork:
    torch.manual_seed(0)
    config = ModelConfig(vocab_size=20, num_labels=3, max_depth=4, **SIZES, **settings)
    return DepthAdaptiveNetwork(config).eval()


def test_bytes_cover_minus_one_to_one():
    values = torch.tensor([[-1.0, -0.5, 0.0, 0.004, 1.0]])
    assert to_bytes(values).tolist() == [[1, 65, 128, 129, 255]]


def test_a_product_in_bytes_is_that_of_rounded_numbers():
    torch.manual_seed(0)
    weight, values = torch.randn(24, 40), torch.randn(5, 40) * 3
    out = torch.empty(5, 24)
    Int8Matrix(weight).product(values, out, torch.ones(24))
    scale = weight.abs().amax(1, keepdim=True) / 127
    highest = values.abs().amax(1, keepdim=True) / 127
    expected = ((values / highest).round() * highest) @ ((weight / scale).round() * scale).T
    torch.testing.assert_close(out, expected + 1, atol=1e-4, rtol=1e-4)


def test_rows_of_zeros_stay_zeros():
    out = torch.empty(2, 8)
    Int8Matrix(torch.zeros(8, 16)).product(torch.zeros(2, 16), out, torch.zeros(8))
    assert not out.any()


@torch.inference_mode()
@pytest.mark.parametrize("sequence", ["bilstm", "none"])
def test_answers_in_bytes_are_close(sequence):
    network = fresh_network(sequence=sequence)
    batch = WordBatch.from_ids([[1, 2, 3, 4, 5, 6], [], [7], [8, 9, 10]])
    depths = torch.tensor([1, 4, 2, 3, 4, 1, 2, 4, 4, 3])
    exact, rounded = (n(batch, depths=depths) for n in (network, quantised(network)))
    assert not torch.equal(exact.words, rounded.words)
    torch.testing.assert_close(exact.words, rounded.words, atol=0.03, rtol=0)
    torch.testing.assert_close(exact.logits, rounded.logits, atol=0.03, rtol=0)


@torch.inference_mode()
def test_company_in_the_batch_changes_nothing(network):
    rounded = quantised(network)
    texts = [[1, 2, 3, 4], [5], [6, 7, 8]]
    together = rounded(WordBatch.from_ids(texts), depths=torch.tensor([3, 1, 4, 2, 2, 4, 4, 1]))
    alone = rounded(WordBatch.from_ids(texts[:1]), depths=torch.tensor([3, 1, 4, 2]))
    torch.testing.assert_close(together.logits[:1], alone.logits, atol=1e-5, rtol=0)


@torch.inference_mode()
def test_all_layers_but_the_first_multiply_bytes(network, monkeypatch):
    calls = []
    take = Int8Matrix.add_product

    def counted(self, sums, states):
        calls.append(tuple(states.shape))
        take(self, sums, states)

    monkeypatch.setattr(Int8Matrix, "add_product", counted)
    batch = WordBatch.from_ids([[1, 2, 3], [4], [5]])  # too many texts for PyTorch's LSTM
    quantised(network)(batch, depths=torch.tensor([1, 3, 2, 1, 3]))
    windows = [shape for shape in calls if shape[1] == 3 * 64]
    assert windows == [(3, 192), (2, 192)]
    assert calls.count((3, 64)) == 3  # V g, in every layer
    assert calls.count((5, 48)) == 3  # U x, and the BiLSTM's input in two directions


def test_the_network_itself_stays_as_it_is(network):
    before = {name: tensor.clone() for name, tensor in network.state_dict().items()}
    other = quantised(network)
    with torch.inference_mode():
        other(WordBatch.from_ids([[1, 2, 3]]))
    assert type(network.slstm) is SLSTM
    assert all(torch.equal(before[name], t) for name, t in network.state_dict().items())
    assert other.slstm.window is network.slstm.window  # shared, not copied
