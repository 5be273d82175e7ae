"""What each model costs, and the hidden size at which it has as many parameters as ours."""

from bisect import bisect_left
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import NamedTuple

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError
from fathomer.model.graph import WordBatch
from fathomer.model.interface import DirectNetwork, trainable_parameters
from fathomer.model.registry import build_model, build_shapes, find_model

TOLERANCE = 0.03
SIZES = range(2, 10_001, 2)
"""Hidden sizes to choose from; even, because two directions share them."""

PAPER_SIZE = ModelConfig(vocab_size=10_000, num_labels=2, fixed_words=True)
WORDS = 18
"""Words of the text on which multiply-adds are counted: two of each depth, 5 on average."""


class Cost(NamedTuple):
    """Cost of a model at the paper's size; unknown for models whose size depends on the data."""

    name: str
    parameters: int | None
    """Trainable parameters, without the fixed word vectors."""
    multiply_adds_per_word: int | None
    paper: str
    needs: str = ""
    """What the model needs besides labelled texts."""


def cost_of(name: str) -> Cost:
    """Return the cost of a model at the paper's size."""
    found = find_model(name)
    if issubclass(found.network, DirectNetwork):
        return Cost(name, None, None, found.paper, found.needs)
    config = replace(PAPER_SIZE, name=name)
    products = round(multiply_adds_per_word(config))
    return Cost(name, count_parameters(config), products, found.paper, found.needs)


def count_parameters(config: ModelConfig) -> int:
    """Count the trainable parameters without allocating them."""
    return trainable_parameters(build_shapes(config))


def multiply_adds_per_word(config: ModelConfig) -> float:
    """Count the multiply-adds per word of a text, from the matrix products that are computed."""
    config = replace(config, vocab_size=WORDS)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)  # in some models the weights decide how many steps a word takes
        network = (
            build_model(config).double().eval()
        )  # fused float32 kernels are invisible to the counter
    depths = torch.arange(WORDS) % config.max_depth + 1 if config.name == "fathomer" else None
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        network(WordBatch.from_ids([range(WORDS)]), depths=depths)
    flops: int = counter.get_total_flops()
    return flops / 2 / WORDS


def nearest_size(sizes: range, wanted: int, count: Callable[[int], int]) -> int:
    """Return the size whose number of parameters is nearest to ``wanted``; it grows with the size."""
    place = bisect_left(sizes, wanted, key=count)
    return min(sizes[max(0, place - 1) : place + 1], key=lambda size: abs(count(size) - wanted))


def match_hidden_size(config: ModelConfig) -> int:
    """Return the hidden size at which a model has as many parameters as ours at these settings."""

    @cache
    def count(size: int) -> int:
        return count_parameters(replace(config, hidden_size=size))

    if count(SIZES[0]) == count(SIZES[-1]):
        raise ConfigError(f"the model {config.name} has no hidden size that could be matched")
    wanted = count_parameters(replace(config, name="fathomer"))
    best = nearest_size(SIZES, wanted, count)
    if abs(count(best) - wanted) > TOLERANCE * wanted:
        raise ConfigError(
            f"the model {config.name} cannot have {wanted:,} parameters; "
            f"the nearest are {count(best):,}, with a hidden size of {best}"
        )
    return best
