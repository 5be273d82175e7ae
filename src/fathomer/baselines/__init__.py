"""The models by name: ours, and those that it is compared with, each in a file of its own."""

from typing import NamedTuple

from jaxtyping import UInt8
from torch import Tensor

from fathomer.baselines.adasent import AdaSent
from fathomer.baselines.bilstm import StackedBiLSTM
from fathomer.baselines.capsule import CapsuleB
from fathomer.baselines.char_cnn import CharacterCNN
from fathomer.baselines.dpcnn import DPCNN
from fathomer.baselines.drnn import DRNN
from fathomer.baselines.fasttext import FastText
from fathomer.baselines.rcrn import RecurrentlyControlled
from fathomer.baselines.region_embedding import RegionEmbedding
from fathomer.baselines.s_lstm import SentenceStateLSTM
from fathomer.baselines.star_transformer import StarTransformer
from fathomer.baselines.swem import SwemConcat
from fathomer.baselines.text_cnn import TextCNN
from fathomer.baselines.tfidf import Tfidf
from fathomer.baselines.transformer import Transformer
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
    "adasent": Model(AdaSent, "Zhao et al. 2015, Self-Adaptive Hierarchical Sentence Model"),
    "bilstm": Model(StackedBiLSTM, "Graves and Schmidhuber 2005, Framewise Phoneme Classification"),
    "capsule-b": Model(
        CapsuleB,
        "Yang et al. 2018, Investigating Capsule Networks with Dynamic Routing for Text Classification",
    ),
    "char-cnn": Model(CharacterCNN, "Zhang et al. 2015, Character-level Convolutional Networks"),
    "dpcnn": Model(DPCNN, "Johnson and Zhang 2017, Deep Pyramid Convolutional Neural Networks"),
    "drnn": Model(DRNN, "Wang 2018, Disconnected Recurrent Neural Networks"),
    "fasttext": Model(FastText, "Joulin et al. 2017, Bag of Tricks for Efficient Classification"),
    "rcrn": Model(
        RecurrentlyControlled, "Tay et al. 2018, Recurrently Controlled Recurrent Networks"
    ),
    "region-embedding": Model(
        RegionEmbedding, "Qiao et al. 2018, A New Method of Region Embedding"
    ),
    "s-lstm": Model(
        SentenceStateLSTM, "Zhang et al. 2018, Sentence-State LSTM for Text Representation"
    ),
    "star-transformer": Model(StarTransformer, "Guo et al. 2019, Star-Transformer"),
    "swem-concat": Model(SwemConcat, "Shen et al. 2018, Baseline Needs More Love"),
    "text-cnn": Model(
        TextCNN, "Kim 2014, Convolutional Neural Networks for Sentence Classification"
    ),
    "tfidf": Model(Tfidf, "Salton and Buckley 1988, Term-Weighting Approaches"),
    "transformer": Model(Transformer, "Vaswani et al. 2017, Attention Is All You Need"),
}


def build_model(config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None) -> Network:
    """Build the model that the settings name, with fresh weights."""
    return MODELS[config.name].network(config, spellings=spellings)  # type: ignore[call-arg]
