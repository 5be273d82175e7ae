"""Gradients: every weight has one, and it agrees with finite differences."""

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from fathomer.model import DepthAdaptiveNetwork, WordBatch
from fathomer.model.graph import sort_by_depth
from fathomer.model.model import SLSTM
from fathomer.model.products import mixed_precision
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


class TokensToStates(nn.Module):
    """The S-LSTM from the tokens of three distinct words to the final states."""

    def __init__(self, slstm: SLSTM) -> None:
        super().__init__()
        self.slstm = slstm
        depths = torch.tensor([1, 4, 2, 3, 1, 2])
        self.graph = sort_by_depth(WordBatch.from_ids([[0, 1, 0], [], [2], [1, 0]]), depths)
        self.rows = torch.tensor([0, 1, 0, 2, 1, 0])[self.graph.order]
        self.depths = depths[self.graph.order]

    def forward(self, inner: Tensor, tokens: Tensor, embedding: Tensor) -> tuple[Tensor, Tensor]:
        from_token = self.slstm.token_sums(tokens, self.rows, embedding, self.depths)
        return self.slstm(inner, from_token, self.graph)


@pytest.mark.parametrize(("size", "inner_size", "folded"), [(2, 2, False), (4, 1, True)])
def test_gradients_of_the_s_lstm_agree_with_finite_differences(
    size, inner_size, folded, monkeypatch
):
    """Also if the map to the initial states is folded into the first window product."""
    sizes = {"hidden_size": size, "word_size": 1, "char_size": 1, "depth_size": inner_size}
    steps = TokensToStates(in_float64(random_network(**sizes)).slstm)
    inputs = random_inputs((6, inner_size), (3, 2), (4, inner_size))
    names = [name for name, _ in steps.named_parameters()]
    foldings, fold = [], SLSTM.folded_window
    monkeypatch.setattr(SLSTM, "folded_window", lambda self: foldings.append(self) or fold(self))

    def final_states(inner, tokens, embedding, *weights):
        weights_of = dict(zip(names, weights, strict=True))
        return torch.func.functional_call(steps, weights_of, (inner, tokens, embedding))

    # The larger network is checked in random directions, which is much faster.
    parameters = tuple(steps.parameters())
    assert torch.autograd.gradcheck(final_states, (*inputs, *parameters), fast_mode=folded)
    assert bool(foldings) == folded


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


def gradients(network: DepthAdaptiveNetwork, precision: str) -> dict[str, Tensor]:
    """Return the gradients of the loss at forced depths, by the name of the parameter."""
    batch = packed(TEXTS)
    network.zero_grad()
    with mixed_precision(precision):
        logits = network(batch, depths=random_depths(batch)).logits
    cross_entropy(logits, torch.arange(len(TEXTS)) % 3).backward()
    return {name: weight.grad for name, weight in network.named_parameters()}


@pytest.mark.parametrize("sequence", SEQUENCES)
def test_bfloat16_gradients_point_the_same_way_as_float32_gradients(sequence):
    """This holds for each parameter; their lengths agree, too."""
    network = random_network(sequence=sequence, word_dropout=0.0, hidden_dropout=0.0).train()
    exact, rounded = (gradients(network, precision) for precision in ("float32", "bfloat16"))
    for name, gradient in rounded.items():
        found, expected = gradient.flatten(), exact[name].flatten()
        assert found.dtype == torch.float32, name
        assert not torch.equal(found, expected), name  # it is rounded
        assert torch.cosine_similarity(found, expected, dim=0) > 0.99, name
        torch.testing.assert_close(found.norm(), expected.norm(), rtol=0.03, atol=0)


def test_a_second_training_step_computes_the_same_gradients():
    """Nothing is left over from the first; the weights do not change in between."""
    network = random_network(word_dropout=0.0, hidden_dropout=0.0).train()
    for precision in ("float32", "bfloat16", "float32"):
        first, second = gradients(network, precision), gradients(network, precision)
        assert all(torch.equal(second[name], gradient) for name, gradient in first.items())
