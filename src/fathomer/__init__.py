"""Fathomer: a text classifier that decides, word by word, how deep to read.

Public names are imported on first use, so that ``import fathomer`` is fast.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

# oneDNN keeps compiled code for each shape of a batch, up to 1024 of them. Batches of texts rarely
# repeat a shape, so the memory would only grow. It must be set before torch is loaded.
os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "64")

if TYPE_CHECKING:
    from fathomer.config import ModelConfig, Recipe, TextConfig, TrainConfig
    from fathomer.errors import FathomerError
    from fathomer.estimator import TextClassifier
    from fathomer.prediction import Prediction, Word
    from fathomer.predictor import Predictor, load

__version__ = "0.1.0"

_HOMES = {
    "FathomerError": "errors",
    "ModelConfig": "config",
    "Prediction": "prediction",
    "Predictor": "predictor",
    "Recipe": "config",
    "TextClassifier": "estimator",
    "TextConfig": "config",
    "TrainConfig": "config",
    "Word": "prediction",
    "load": "predictor",
}

__all__ = [
    "FathomerError",
    "ModelConfig",
    "Prediction",
    "Predictor",
    "Recipe",
    "TextClassifier",
    "TextConfig",
    "TrainConfig",
    "Word",
    "load",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'fathomer' has no attribute {name!r}")
    return getattr(import_module(f"fathomer.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
