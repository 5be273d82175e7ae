"""The models by name: ours, and those that it is compared with, each in a file of its own."""

from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from fathomer.baselines.bilstm import StackedBiLSTM
from fathomer.baselines.char_cnn import CharacterCNN
from fathomer.baselines.dpcnn import DPCNN
from fathomer.baselines.drnn import DRNN
from fathomer.baselines.fasttext import FastText
from fathomer.baselines.region_embedding import RegionEmbedding
from fathomer.baselines.swem import SwemConcat
from fathomer.baselines.text_cnn import TextCNN
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
    "text-cnn": Model(
        TextCNN, "Kim 2014, Convolutional Neural Networks for Sentence Classification"
    ),
    "swem-concat": Model(SwemConcat, "Shen et al. 2018, Baseline Needs More Love"),
    "char-cnn": Model(CharacterCNN, "Zhang et al. 2015, Character-level Convolutional Networks"),
    "dpcnn": Model(DPCNN, "Johnson and Zhang 2017, Deep Pyramid Convolutional Neural Networks"),
    "drnn": Model(DRNN, "Wang 2018, Disconnected Recurrent Neural Networks"),
    "region-embedding": Model(
        RegionEmbedding, "Qiao et al. 2018, A New Method of Region Embedding"
    ),
    "fasttext": Model(FastText, "Joulin et al. 2017, Bag of Tricks for Efficient Classification"),
    "tfidf": Model(Tfidf, "Salton and Buckley 1988, Term-Weighting Approaches"),
}


def build_model(config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None) -> Network:
    """Build the model that the settings name, with fresh weights."""
    return MODELS[config.name].network(config, spellings=spellings)  # type: ignore[call-arg]
