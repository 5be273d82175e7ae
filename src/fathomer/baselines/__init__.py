"""The models by name: ours, and those that it is compared with, each in a file of its own."""

from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from fathomer.baselines.bilstm import StackedBiLSTM
from fathomer.baselines.tfidf import Tfidf
from fathomer.config import ModelConfig, ModelName
from fathomer.nn.interface import Network
from fathomer.nn.network import DepthAdaptiveNetwork


class Model(NamedTuple):
    """Hold a model's class, and the paper that it comes from."""

    network: type[Network]
    paper: str


MODELS: dict[ModelName, Model] = {
    "fathomer": Model(
        DepthAdaptiveNetwork,
        "Liu et al. 2020, Depth-Adaptive Graph Recurrent Network for Text Classification",
    ),
    "bilstm": Model(StackedBiLSTM, "Graves and Schmidhuber 2005, Framewise Phoneme Classification"),
    "tfidf": Model(Tfidf, "Salton and Buckley 1988, Term-Weighting Approaches"),
}


def build_model(config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None) -> Network:
    """Build the model that the settings name, with fresh weights."""
    return MODELS[config.name].network(config, spellings=spellings)  # type: ignore[call-arg]
