"""What is expected of each comparison model, whatever its equations are."""

from typing import Any

import torch

from fathomer.baselines import build_model
from fathomer.config import ModelConfig, Recipe
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples
from fathomer.fit import fit
from fathomer.nn.interface import Network
from fathomer.predictor import Predictor

from ..nn.networks import RAGGED, SIZES, packed, random_texts

LONG = [*RAGGED, *random_texts(seed=1, texts=5, longest=60)]


def random_model(name: str, **settings: Any) -> Network:
    """Build a model in evaluation mode, all of whose weights (biases too) matter."""
    network = build_model(ModelConfig(**{**SIZES, "name": name, **settings}))
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator) * 0.4)
        for module in network.modules():
            if isinstance(module, torch.nn.Embedding) and module.padding_idx is not None:
                module.weight[module.padding_idx] = 0
    return network.eval()


def tokens_of(network: Network, text: list[int]) -> list[torch.Tensor]:
    """Give the token of each word of a text."""
    tokens, places = network.embedding(packed([text]))
    return list(tokens[places])


def embedding_parameters() -> int:
    """Count the weights below all models that read words."""
    char_input, char = SIZES["char_input_size"], SIZES["char_size"]
    words = SIZES["vocab_size"] * SIZES["word_size"]
    return words + 256 * char_input + 3 * char_input * char + char


def assert_company_does_not_matter(network: Network) -> None:
    """Compare the answers of a ragged batch with those of its texts alone, and turned round."""
    together = network(packed(LONG)).logits
    assert together.std() > 1e-3, "the answers do not tell the texts apart"
    for text, logits in zip(LONG, together, strict=True):
        alone = network(packed([text])).logits[0]
        torch.testing.assert_close(alone, logits, rtol=0, atol=1e-5)
    reversed_ = network(packed(LONG[::-1])).logits
    torch.testing.assert_close(reversed_.flip(0), together, rtol=0, atol=1e-5)


def assert_empty_texts_are_ordinary(network: Network) -> None:
    """Ask about texts and batches without a word."""
    assert network(packed([])).logits.shape == (0, 3)
    first, second = network(packed([[], []])).logits
    assert torch.isfinite(first).all()
    assert torch.equal(first, second)
    torch.testing.assert_close(network(packed([[4, 8], []])).logits[1], first, rtol=0, atol=1e-5)
    network.train()(packed([[], []])).logits.sum().backward()
    assert all(p.grad is None or torch.isfinite(p.grad).all() for p in network.parameters())


def assert_gradients_reach_everything(network: Network) -> None:
    """Follow the gradient into every weight."""
    network(packed(LONG)).logits.square().sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, name
        assert torch.isfinite(parameter.grad).all(), name
        assert (parameter.grad != 0).any(), name


def accuracy_on_seen_texts(name: str, *, epochs: int = 25, rate: float = 0.01) -> float:
    """Train on 64 texts of the demo corpus, and ask about the same ones."""
    examples = Examples(list(demo_corpus(train=64, test=1)[0]))
    recipe = Recipe().updated(
        {
            "model": {
                "name": name,
                "word_size": 16,
                "char_size": 8,
                "char_input_size": 8,
                "hidden_size": 24,
                "word_dropout": 0.0,
                "hidden_dropout": 0.0,
            },
            "text": {"min_count": 1},
            "train": {"epochs": epochs, "batch_words": 150, "learning_rate": rate, "held_out": 0.0},
        }
    )
    return Predictor(fit(examples, recipe).artifact).evaluate(examples).accuracy
