"""The settings that ``fathomer tune`` searches, and the size of a model with them."""

from typing import TYPE_CHECKING, Any

import torch

from fathomer.config import Recipe
from fathomer.errors import ConfigError
from fathomer.model.registry import build_shapes

if TYPE_CHECKING:
    import optuna

SIZES = range(20, 401, 20)
"""Hidden sizes to search."""
LEARNING_RATES = (1e-4, 2e-2)
BATCH_WORDS = (100, 5000)
MAX_DEPTH = 9
MAX_DROPOUT = 0.6
DROPOUTS_PER_UNIT = 20
"""Dropout is searched in steps of 0.05."""


def suggest(trial: "optuna.Trial", sizes: range) -> dict[str, Any]:
    """Return the settings that optuna suggests for a trial."""

    def dropout(name: str) -> float:
        return trial.suggest_float(name, 0.0, MAX_DROPOUT, step=1 / DROPOUTS_PER_UNIT)

    return {
        "train.learning_rate": trial.suggest_float(
            "train.learning_rate", *LEARNING_RATES, log=True
        ),
        "train.batch_words": trial.suggest_int("train.batch_words", *BATCH_WORDS, log=True),
        "model.hidden_size": trial.suggest_int(
            "model.hidden_size", sizes[0], sizes[-1], step=sizes.step
        ),
        "model.max_depth": trial.suggest_int("model.max_depth", 1, MAX_DEPTH),
        "model.word_dropout": dropout("model.word_dropout"),
        "model.hidden_dropout": dropout("model.hidden_dropout"),
    }


def nearest_settings(recipe: Recipe, sizes: range) -> dict[str, Any]:
    """Return the recipe's own settings, moved to the nearest values in the search space."""

    def dropout(value: float) -> float:
        return min(round(value * DROPOUTS_PER_UNIT) / DROPOUTS_PER_UNIT, MAX_DROPOUT)

    model, training = recipe.model, recipe.train
    return {
        "train.learning_rate": _clamped(training.learning_rate, *LEARNING_RATES),
        "train.batch_words": _clamped(training.batch_words, *BATCH_WORDS),
        "model.hidden_size": min(sizes, key=lambda size: abs(size - model.hidden_size)),
        "model.max_depth": min(model.max_depth, MAX_DEPTH),
        "model.word_dropout": dropout(model.word_dropout),
        "model.hidden_dropout": dropout(model.hidden_dropout),
    }


def _clamped(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def fitting_sizes(recipe: Recipe, max_mb: float | None) -> range:
    """Return the hidden sizes whose models are within the size limit."""
    sizes = [size for size in SIZES if max_mb is None or _megabytes_at(recipe, size) <= max_mb]
    if not sizes:
        raise ConfigError(
            f"no model fits in {max_mb:g} MB; with {recipe.model.vocab_size:,} known words, the "
            f"smallest takes {_megabytes_at(recipe, SIZES[0]):.2g} MB: raise --max-mb, or lower "
            "text.max_vocabulary or model.word_size"
        )
    return SIZES[: len(sizes)]


def _megabytes_at(recipe: Recipe, hidden_size: int) -> float:
    return megabytes(
        recipe.updated({"model": {"hidden_size": hidden_size, "max_depth": MAX_DEPTH}})
    )


def megabytes(recipe: Recipe) -> float:
    """Return the size of the weights, computed without allocating them."""
    network = build_shapes(recipe.model, max_chars=recipe.text.max_chars)
    tensors: list[torch.Tensor] = list(network.state_dict().values())
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6
