"""Gradients: every weight has one, and it agrees with finite differences."""

import pytest
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.graph import sort_by_depth
from tests.model.networks import (
    RAGGED,
    in_float64,
    packed,
    random_depths,
    random_network,
    random_texts,
)

SEQUENCES = ["bilstm", "none", "sinusoidal", "learned"]
TEXTS = random_texts(seed=5, texts=30, longest=12)


def trained_once(network: DepthAdaptiveNetwork, depths: Tensor | None = None) -> Tensor:
    """Run forward and backward passes in training mode, and return the depths of the words."""
    torch.manual_seed(0)
    output = network.train()(packed(TEXTS), depths=depths)
    labels = torch.arange(len(TEXTS)) % network.config.num_labels
    cross_entropy(output.logits, labels).backward()
    return output.depths


def without_gradient(network: DepthAdaptiveNetwork) -> list[str]:
    return [
        name
        for name, weight in network.named_parameters()
        if weight.grad is None or not weight.grad.any() or not weight.grad.isfinite().all()
    ]


@pytest.mark.parametrize("depth", ["gumbel", "hard", "soft", "full"])
@pytest.mark.parametrize("sequence", SEQUENCES)
def test_gradients_reach_every_parameter(depth, sequence):
    network = random_network(depth=depth, sequence=sequence)
    trained_once(network)
    assert without_gradient(network) == []


def test_gradients_reach_every_parameter_of_a_new_network():
    """Its biases are initialised to zero."""
    torch.manual_seed(0)
    network = DepthAdaptiveNetwork(random_network().config)
    trained_once(network)
    assert without_gradient(network) == []


def test_gradients_reach_the_scores_of_every_depth_that_was_sampled():
    """Selection passes no gradient to W_2; it is trained as the depth embedding, row by row."""
    network = random_network(depth="gumbel")
    with torch.no_grad():
        network.depth.scores.weight.mul_(0.1)  # makes every depth occur
    depths = trained_once(network)
    assert sorted(set(depths.tolist())) == [1, 2, 3, 4]
    assert network.depth.scores.weight.grad.any(1).all()


@pytest.mark.parametrize("deepest", [1, 2, 3])
def test_the_scores_of_a_depth_that_no_word_has_get_no_gradient(deepest):
    network = random_network()
    trained_once(network, random_depths(packed(TEXTS), max_depth=deepest))
    reached = network.depth.scores.weight.grad.any(1)
    assert reached.tolist() == [row < deepest for row in range(4)]


def test_full_depth_trains_only_the_last_row_of_the_scores():
    network = random_network(depth="full")
    trained_once(network)
    assert network.depth.scores.weight.grad.any(1).tolist() == [False, False, False, True]


def test_fixed_word_vectors_have_no_gradient():
    network = random_network(fixed_words=True)
    trained_once(network)
    assert without_gradient(network) == ["embedding.word.weight"]


def test_the_padding_byte_stays_zero_in_training():
    network = random_network()
    optimizer = torch.optim.Adam(network.parameters(), lr=0.1)
    for _ in range(3):
        optimizer.zero_grad()
        trained_once(network)
        optimizer.step()
    assert not network.embedding.char.bytes.weight[0].any()


def test_gradients_of_the_s_lstm_agree_with_finite_differences():
    sizes = {"hidden_size": 2, "word_size": 1, "char_size": 1, "depth_size": 2}
    slstm = in_float64(random_network(**sizes)).slstm
    batch = WordBatch.from_ids([[0] * 3, [], [0], [0] * 2])
    graph = sort_by_depth(batch, torch.tensor([1, 4, 2, 3, 1, 2]))
    inputs = random_inputs((6, 2), (6, 4))
    names = [name for name, _ in slstm.named_parameters()]

    def steps(inner, x, *weights):
        weights_of = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(slstm, weights_of, (inner, x, graph))

    assert torch.autograd.gradcheck(steps, (*inputs, *slstm.parameters()))


def test_gradients_of_the_bilstm_agree_with_finite_differences():
    lstm = in_float64(random_network(hidden_size=4, word_size=1, char_size=1)).sequence
    batch = WordBatch.from_ids([[0] * 2, [], [0] * 4, [0], [0] * 4])
    names = [name for name, _ in lstm.named_parameters()]

    def read(tokens, *weights):
        weights_of = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(lstm, weights_of, (tokens, batch))

    assert torch.autograd.gradcheck(read, (*random_inputs((11, 2)), *lstm.parameters()))


def random_inputs(*shapes):
    generator = torch.Generator().manual_seed(0)
    options = {"generator": generator, "dtype": torch.float64, "requires_grad": True}
    return [torch.randn(shape, **options) for shape in shapes]


@pytest.mark.parametrize("sequence", SEQUENCES)
@pytest.mark.parametrize("seed", [0, 1])
def test_gradients_of_the_loss_agree_with_finite_differences(sequence, seed):
    """Checked along a random direction for each parameter, at forced depths."""
    network = in_float64(random_network(seed=seed, sequence=sequence))
    batch = packed(RAGGED)
    depths = random_depths(batch, seed=seed)
    labels = torch.arange(len(RAGGED)) % 3

    def loss() -> Tensor:
        return cross_entropy(network(batch, depths=depths).logits, labels, label_smoothing=0.1)

    loss().backward()
    generator = torch.Generator().manual_seed(seed)
    step = 1e-6
    for name, weight in network.named_parameters():
        direction = torch.randn(weight.shape, generator=generator, dtype=torch.float64)
        if name == "embedding.char.bytes.weight":
            direction[0] = 0  # padding is not trained
        with torch.no_grad():
            weight += step * direction
            above = loss()
            weight -= 2 * step * direction
            below = loss()
            weight += step * direction
        slope = (above - below) / (2 * step)
        torch.testing.assert_close((weight.grad * direction).sum(), slope, rtol=1e-6, atol=1e-8)


def test_a_batch_used_for_prediction_can_be_used_for_training():
    network = random_network()
    batch = packed(RAGGED)
    with torch.inference_mode():
        network(batch)
    network.train()(batch).logits.sum().backward()
    assert without_gradient(network) == []
