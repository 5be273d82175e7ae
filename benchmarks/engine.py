"""What the benchmarks use of ``fathomer.model``: the only module here that imports its parts."""

from typing import TypeVar

from torch import nn

from fathomer.model import DepthAdaptiveNetwork
from fathomer.model.embedding import TokenEmbedding
from fathomer.model.fast.folded import folded, sharing
from fathomer.model.fast.int8 import available, quantised
from fathomer.model.interface import Network, trainable_parameters
from fathomer.model.pooling import pool_texts
from fathomer.model.registry import build_model
from fathomer.model.sequence import sinusoids
from fathomer.model.steps import Steps

__all__ = [
    "WORD_STEP",
    "Network",
    "TokenEmbedding",
    "build_model",
    "float32_engine",
    "int8_engine",
    "pool_texts",
    "sinusoids",
    "trainable_parameters",
    "with_embedding",
]

Model = TypeVar("Model", bound=nn.Module)

WORD_STEP = (Steps, "word_step")
"""The class and the method that computes the word transitions, Eq. (2), in a prediction."""


def float32_engine(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork:
    """Return the network as it is prepared for prediction."""
    return folded(network)


def int8_engine(network: DepthAdaptiveNetwork) -> DepthAdaptiveNetwork | None:
    """Return the network with int8 weights, or None if the processor does not support them."""
    return quantised(network) if available() else None


def with_embedding(model: Model, embedding: nn.Module) -> Model:
    """Return a copy of a model that shares its weights but has another embedding."""
    copied = sharing(model, type(model))
    copied.embedding = embedding
    return copied
