"""Small models with random weights, for the tests of the comparison models."""

from collections.abc import Callable, Sequence
from typing import Any

import torch

from fathomer.config import ModelConfig
from fathomer.model import Network
from fathomer.model.registry import build_model
from tests.model import networks
from tests.model.networks import packed

SIZES = {**networks.SIZES, "hidden_size": 16}
RAGGED = [[4, 8, 15], [], [16], [3, 3, 0, 19, 7, 2, 11], [7, 1]]
LONG = [*networks.RAGGED, *networks.random_texts(seed=1, texts=5, longest=60)]
"""With unknown words, as :func:`packed` knows them."""
WORDY = [text for text in LONG if text]


def small_config(name: str, **settings: Any) -> ModelConfig:
    """Give the settings of a small model."""
    return ModelConfig(**{**SIZES, "name": name, **settings})


def small_model(name: str, *, seed: int = 0, **settings: Any) -> Network:
    """Build a model in float64 and evaluation mode, all of whose weights (biases too) matter."""
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


def tokens_of(network: Network, text: list[int]) -> torch.Tensor:
    """Give the tokens of a text, one row per word."""
    return network.embedding(packed([text]))


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Compare to the last digits of float64, but for tables that were rounded to float32."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)


def assert_agrees(
    network: Network,
    oracle: Callable[[Network, list[int]], torch.Tensor],
    texts: Sequence[list[int]],
) -> None:
    """Compare a model's answers with those of slow plain loops, text by text."""
    for text in texts:
        assert_close(network(packed([text])).logits[0], oracle(network, text))
