"""The systems that the paper compares with; importing this package registers them as models."""

from experiments.rivals.act_s_lstm import ActSentenceStateLSTM
from experiments.rivals.adasent import AdaSent
from experiments.rivals.authors_cell import AuthorsCell
from experiments.rivals.capsule import CapsuleB
from experiments.rivals.char_cnn import CharacterCNN
from experiments.rivals.cnn_mcfa import ContextCNN
from experiments.rivals.cove import Cove
from experiments.rivals.dnc_cuw import NeuralComputer
from experiments.rivals.dpcnn import DPCNN
from experiments.rivals.drnn import DRNN
from experiments.rivals.early_exit import EarlyExitTransformer
from experiments.rivals.ms_trans import MultiScaleTransformer
from experiments.rivals.multi_qt import MultiQT
from experiments.rivals.r_transformer import RTransformer
from experiments.rivals.rcrn import RCRN
from experiments.rivals.region_embedding import RegionEmbedding
from experiments.rivals.star_transformer import StarTransformer
from experiments.rivals.swem import SwemConcat
from experiments.rivals.text_cnn import TextCNN
from experiments.rivals.universal_transformer import UniversalTransformer
from fathomer.model.registry import register

register("act-s-lstm", ActSentenceStateLSTM, "Graves 2016, Adaptive Computation Time")
register("adasent", AdaSent, "Zhao et al. 2015, Self-Adaptive Hierarchical Sentence Model")
register("authors-cell", AuthorsCell, "Liu et al. 2020, the cell of the authors' code")
register("capsule-b", CapsuleB, "Yang et al. 2018, Capsule Networks with Dynamic Routing")
register("char-cnn", CharacterCNN, "Zhang et al. 2015, Character-level Convolutional Networks")
register(
    "cnn-mcfa",
    ContextCNN,
    "Amplayo et al. 2018, Translations as Additional Contexts",
    needs="translations in `FATHOMER_TRANSLATIONS`: a file with the column text and one per language",
)
register(
    "cove",
    Cove,
    "McCann et al. 2017, Learned in Translation",
    rate=0.0009,
    needs="an MT-LSTM in `FATHOMER_MT_LSTM` with its word vectors, or translations to train one on",
)
register(
    "dnc-cuw", NeuralComputer, "Le et al. 2019, Learning to Remember More with Less Memorization"
)
register("dpcnn", DPCNN, "Johnson and Zhang 2017, Deep Pyramid Convolutional Neural Networks")
register("drnn", DRNN, "Wang 2018, Disconnected Recurrent Neural Networks")
register(
    "early-exit",
    EarlyExitTransformer,
    "Elbayad et al. 2020, Depth-Adaptive Transformer",
    rate=0.0006,
    epochs=2,
)
register(
    "ms-trans",
    MultiScaleTransformer,
    "Guo et al. 2020, Multi-Scale Self-Attention",
    rate=0.0006,
    epochs=2,
)
register(
    "multi-qt",
    MultiQT,
    "Logeswaran and Lee 2018, Learning Sentence Representations",
    needs="encoders in `FATHOMER_QT` (made by `pretrain-qt`), or training texts of several sentences",
)
register("r-transformer", RTransformer, "Wang et al. 2019, R-Transformer", rate=0.0006)
register("rcrn", RCRN, "Tay et al. 2018, Recurrently Controlled Recurrent Networks")
register("region-embedding", RegionEmbedding, "Qiao et al. 2018, A New Method of Region Embedding")
register("star-transformer", StarTransformer, "Guo et al. 2019, Star-Transformer", rate=0.0009)
register("swem-concat", SwemConcat, "Shen et al. 2018, Baseline Needs More Love", rate=0.004)
register(
    "text-cnn",
    TextCNN,
    "Kim 2014, Convolutional Neural Networks for Sentence Classification",
    rate=0.004,
)
register(
    "universal-transformer",
    UniversalTransformer,
    "Dehghani et al. 2019, Universal Transformers",
    rate=0.0006,
)
