"""Settings that follow from the data, for training without a recipe.

The rule was found on held-out parts of Amazon-16, MR and TREC (docs/log.md). docs/settings.md shows
it as a table.
"""

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

import torch

from fathomer.config import Recipe, TrainPrecision
from fathomer.data.examples import Examples
from fathomer.model.interface import DirectNetwork
from fathomer.model.registry import find_model

SAMPLE = 1000
"""Texts whose words are counted for the average."""
STEPS_PER_EPOCH = 200
STEPS = 2000
"""Optimiser steps in all epochs together, within the limits of epochs and batches below."""
SHORT_TEXTS = 15
"""With fewer words per text, dropout is lower, and there are more steps."""
STEPS_OF_SHORT = 2800
BATCH_WORDS = (200, 2000)
EPOCHS = (4, 30)
FEW_TEXTS = 1000
"""With fewer texts, the network is smaller, and more of them are held out."""
MANY_TEXTS = 100_000
"""With more texts, TF-IDF takes too much memory, and hardly helps."""

VECTORS_HELP = 20_000
"""With fewer training texts, pretrained word vectors are suggested."""

_REFERENCE_SECONDS = 0.0088
"""Time of the product below on the processor whose training speed the estimate knows."""


@dataclass(frozen=True)
class DataSize:
    """Number of training texts, and an estimate of their words."""

    texts: int
    words: int

    @classmethod
    def of(cls, texts: Iterable[str], count: int, *, max_words: int) -> "DataSize":
        """Count the words of some of the texts, and extrapolate."""
        sample = [min(max_words, len(text.split()) + 1) for text in islice(texts, SAMPLE)]
        return cls(count, round(count * sum(sample) / max(1, len(sample))))


def automatic_settings(
    examples: Examples, change: Callable[[Recipe], Recipe]
) -> tuple[Recipe, DataSize]:
    """Return the settings that follow from the texts, with the user's changes, and their size."""
    wanted = change(Recipe())
    size = DataSize.of(examples.texts, len(examples), max_words=wanted.text.max_words)
    recipe = automatic_recipe(size, minutes=wanted.train.minutes)
    if wanted.train.patience:  # early stopping looks for the best epoch
        recipe = recipe.updated({"train": {"keep": "best"}})
    return change(recipe), size


def automatic_recipe(size: DataSize, *, minutes: float = 0.0) -> Recipe:
    """Return the settings for a training set of this size.

    >>> automatic_recipe(DataSize(texts=1_440, words=165_000)).train.epochs
    10
    """
    small = size.texts < FEW_TEXTS
    batch_words = _clamped(size.words // STEPS_PER_EPOCH // 100 * 100, *BATCH_WORDS)
    steps = max(1, size.words // batch_words)
    short = size.words < SHORT_TEXTS * size.texts
    dropout = 0.3 if short else 0.5
    settings: dict[str, dict[str, Any]] = {
        "model": {
            "word_size": 100,  # without vectors
            "hidden_size": 100 if small else 200,
            "max_depth": 3,
            "ngrams": size.texts <= MANY_TEXTS,
            "word_dropout": dropout,
            "whole_word_dropout": 0.0 if short else 0.1,
            "hidden_dropout": dropout,
        },
        "train": {
            "epochs": _clamped(round((STEPS_OF_SHORT if short else STEPS) / steps), *EPOCHS),
            "keep": "last",  # choosing by few held-out texts is worse (docs/log.md)
            "batch_words": batch_words,
            "precision": fast_precision(),
            "held_out": 0.2 if small else 0.1,
            "minutes": minutes,
        },
    }
    recipe = Recipe.from_dict(settings)
    if minutes:
        seconds = estimate_seconds(recipe, size) / recipe.train.epochs
        affordable = _clamped(int(60 * minutes / seconds), 1, recipe.train.epochs)
        recipe = recipe.updated({"train": {"epochs": affordable}})
    return recipe


def suggest_vectors(texts: int) -> str | None:
    """Return a suggestion for training sets of a size where pretrained word vectors often help."""
    if texts >= VECTORS_HELP:
        return None
    return "word vectors often help with few texts: add --vectors wordllama"


def is_direct(model: str) -> bool:
    """Whether a model is fitted in one go, without epochs, such as TF-IDF."""
    return issubclass(find_model(model).network, DirectNetwork)


def fast_precision() -> TrainPrecision:
    """Return ``bfloat16`` on processors that multiply such numbers faster than float32."""
    found = torch.cpu.get_capabilities() if hasattr(torch.cpu, "get_capabilities") else {}
    return "bfloat16" if found.get("avx512_bf16") or found.get("amx_bf16") else "float32"


def estimate_seconds(recipe: Recipe, size: DataSize) -> float:
    """Return roughly how long all epochs take on this machine."""
    train, model = recipe.train, recipe.model
    steps = train.epochs * max(1, size.words // train.batch_words)
    depth = (1 + model.max_depth) / 2
    per_word: float = 1e-4 * (model.hidden_size / 200) ** 1.5 * (1 + depth) / 3
    seconds = 0.012 * (1 + depth) * steps + per_word * train.epochs * size.words
    if train.precision == "float32":
        seconds *= 1.6
    return seconds * _product_seconds() / _REFERENCE_SECONDS


def describe(recipe: Recipe, size: DataSize) -> str:
    """Return the settings and the estimated time, as two lines that fit a narrow terminal."""
    model, train = recipe.model, recipe.train
    depth = f"max depth {model.max_depth}, " * find_model(model.name).network.knows_depth
    return (
        f"settings: hidden size {model.hidden_size}, {depth}"
        f"{train.epochs} epoch{'s' * (train.epochs > 1)}, {train.batch_words:,} words per batch\n"
        f"with {train.precision}{' and n-grams' if model.ngrams else ''}, training takes about "
        f"{_shown(estimate_seconds(recipe, size))}"
    )


def _product_seconds() -> float:
    """Return the time of one matrix product, the best of a few."""
    rows, weights = torch.ones(500, 600), torch.ones(600, 1400)
    times = []
    for _ in range(5):
        began = time.perf_counter()
        rows @ weights
        times.append(time.perf_counter() - began)
    return min(times)


def _shown(seconds: float) -> str:
    if seconds < 60:
        return f"{max(5, 5 * round(seconds / 5))} seconds"
    minutes = round(seconds / 60)
    return (
        f"{minutes} minute{'s' * (minutes > 1)}" if minutes < 120 else f"{minutes / 60:.0f} hours"
    )


def _clamped(number: int, low: int, high: int) -> int:
    return min(high, max(low, number))
