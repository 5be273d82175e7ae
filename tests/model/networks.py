"""Small random networks and batches for the tests of the network."""

from typing import Any

import torch
from torch import Tensor

from fathomer.config import ModelConfig
from fathomer.model import DepthAdaptiveNetwork, Output, WordBatch
from tests.model.oracle import ReadText, sinusoid

SIZES = {
    "vocab_size": 20,
    "num_labels": 3,
    "word_size": 5,
    "char_size": 4,
    "char_input_size": 3,
    "depth_size": 7,
    "hidden_size": 6,
    "max_depth": 4,
}
UNKNOWN = torch.tensor([list(b"abc\0\0"), list(b"z\0\0\0\0"), list(b"cabab")], dtype=torch.uint8)
RAGGED = [[4, 8, 15], [], [16], [-1, 3, 3, -2, 19, -3, 0], [], [7, -2], [1, 2, 3, 4, 5]]


def random_network(*, seed: int = 0, **settings: Any) -> DepthAdaptiveNetwork:
    """Return a network in evaluation mode with random weights and biases."""
    network = DepthAdaptiveNetwork(ModelConfig(**{**SIZES, **settings}))
    return randomise(network, seed=seed).eval()


def randomise(network: DepthAdaptiveNetwork, *, seed: int) -> DepthAdaptiveNetwork:
    """Draw all weights, large enough that gates differ; byte 0 remains padding."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.7)
        network.embedding.char.bytes.weight[0] = 0
    return network


def in_float64(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork:
    """Convert a network to float64, including its table of sinusoids, which was rounded to float32."""
    network.double()
    rows = network.depth.sinusoidal
    exact = torch.stack([sinusoid(d + 1, rows.shape[1]) for d in range(len(rows))])
    torch.testing.assert_close(rows, exact, rtol=0, atol=1e-6)
    rows.copy_(exact)
    return network


def copied_into(network: DepthAdaptiveNetwork, **settings: Any) -> DepthAdaptiveNetwork:
    """Return a network with other settings and, where they fit, the weights of the given one."""
    other = random_network(seed=99, **settings)
    with torch.no_grad():
        for name, target in other.named_parameters():
            source = network.get_parameter(name)
            target[: len(source)] = source[: len(target)]
    return other


def random_texts(*, seed: int, texts: int = 6, longest: int = 9) -> list[list[int]]:
    """Draw texts of 0 to `longest` words, including the three UNKNOWN ones."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(0, longest + 1, (texts,), generator=generator)
    return [torch.randint(-3, 20, (n,), generator=generator).tolist() for n in lengths.tolist()]


def packed(texts: list[list[int]]) -> WordBatch:
    """Pack texts that may contain the three UNKNOWN words."""
    return WordBatch.from_ids(texts, unknown=UNKNOWN)


def embedded(network: DepthAdaptiveNetwork, batch: WordBatch) -> Tensor:
    """Return the token of each word of a batch."""
    return network.embedding(batch)


def random_depths(batch: WordBatch, *, seed: int = 0, max_depth: int = 4) -> Tensor:
    """Draw a depth in 1..max_depth for each word."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(1, max_depth + 1, (batch.num_words,), generator=generator)


def assert_same(output: Output, texts: list[ReadText], *, atol: float = 1e-5) -> None:
    """Compare all outputs of the network with those of the oracle."""

    def close(found: Tensor, expected: list[Tensor]) -> None:
        table = torch.stack(expected) if expected else found.new_zeros(0, found.shape[1])
        torch.testing.assert_close(found, table, rtol=0, atol=atol)

    assert output.depths.tolist() == [depth for text in texts for depth in text.depths]
    close(output.depth_logits, [row for text in texts for row in text.depth_logits])
    close(output.words, [row for text in texts for row in text.words])
    close(output.sentences, [text.sentence for text in texts])
    close(output.logits, [text.logits for text in texts])
