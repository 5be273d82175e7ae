"""Small models with random weights, and what tests of all models share."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fathomer.config import ModelConfig
from fathomer.model import Network, WordBatch
from fathomer.model.positions import sinusoids
from fathomer.model.registry import build_model
from tests.model import networks
from tests.model.networks import packed

SHIPPED = ["fathomer", "bilstm", "fasttext", "s-lstm", "tfidf", "transformer"]
"""The models of the package, without those of the experiments."""
LEARNED_AT_ONCE = ["fasttext", "tfidf"]
"""Models that are not trained in steps."""

SIZES = {**networks.SIZES, "hidden_size": 16}
RAGGED = [[4, 8, 15], [], [16], [3, 3, 0, 19, 7, 2, 11], [7, 1]]
LONG = [*networks.RAGGED, *networks.random_texts(seed=1, texts=5, longest=60)]
"""Texts with the unknown words of :func:`packed`."""
WORDY = [text for text in LONG if text]


def small_config(name: str, **settings: Any) -> ModelConfig:
    """Return the settings of a small model."""
    return ModelConfig(**{**SIZES, "name": name, **settings})


def small_model(name: str, *, seed: int = 0, **settings: Any) -> Network:
    """Build a model in float64 and evaluation mode in which every weight matters, biases too."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = build_model(small_config(name, **settings)).double().eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
            parameter.copy_(parameter + 0.3 * noise)
        for module in network.modules():
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0
    return network


def ragged_logits(network: Network) -> torch.Tensor:
    """Return the logits of the ragged batch."""
    with torch.no_grad():
        return network(WordBatch.from_ids(RAGGED)).logits


def tokens_of(network: Network, text: list[int]) -> torch.Tensor:
    """Return the tokens of a text, one row per word."""
    return network.embedding(packed([text]))


def positions(count: int, size: int) -> torch.Tensor:
    """Return the sinusoidal embeddings of the first positions."""
    return sinusoids(torch.arange(count, dtype=torch.float64), size)


def transformer_input(network: Network, text: list[int]) -> torch.Tensor:
    """Return the input of the first layer of a Transformer, one row per word."""
    x = network.input_norm(network.input(tokens_of(network, text)))
    return (x + positions(len(text), network.size)) * network.size**0.5


def pooled(states: torch.Tensor, *more: torch.Tensor) -> torch.Tensor:
    """Pool the states of one text as Eq. (15) does; return zeros for an empty text."""
    if not len(states):
        return torch.zeros(2 * states.shape[1] + sum(map(len, more)), dtype=states.dtype)
    return torch.cat([states.max(0).values, states.mean(0), *more]).clamp(min=0)


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Compare to the precision of float64, except for tables that were rounded to float32."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


def assert_agrees(
    network: Network,
    oracle: Callable[[Network, list[int]], torch.Tensor],
    texts: Sequence[list[int]],
) -> None:
    """Compare the logits of a model with those of slow plain loops, text by text."""
    for text in texts:
        assert_close(network(packed([text])).logits[0], oracle(network, text))
