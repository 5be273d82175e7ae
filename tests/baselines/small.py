"""Small models with random weights, for the tests of the comparison models."""

from typing import Any

import torch

from fathomer.baselines import build_model
from fathomer.config import ModelConfig
from fathomer.nn import Network, WordBatch

SIZES = {
    "vocab_size": 20,
    "num_labels": 3,
    "word_size": 5,
    "char_size": 4,
    "char_input_size": 3,
    "depth_size": 7,
    "hidden_size": 16,
    "max_depth": 4,
}
RAGGED = [[4, 8, 15], [], [16], [3, 3, 0, 19, 7, 2, 11], [7, 1]]


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
        if network.word_vectors is not None:
            network.embedding.char.bytes.weight[0] = 0  # the byte that pads
    return network


def tokens_of(network: Network, text: list[int]) -> torch.Tensor:
    """Give the tokens of a text, one row per word."""
    tokens, places = network.embedding(WordBatch.from_ids([text]))
    return tokens[places]


def assert_close(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Compare to the last digits of float64, but for tables that were rounded to float32."""
    torch.testing.assert_close(found, wanted, rtol=0, atol=1e-9)
