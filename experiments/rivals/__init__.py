"""The systems that the paper compares with; importing this package registers them as models."""

from experiments.rivals.adasent import AdaSent
from experiments.rivals.capsule import CapsuleB
from experiments.rivals.char_cnn import CharacterCNN
from experiments.rivals.dpcnn import DPCNN
from experiments.rivals.drnn import DRNN
from experiments.rivals.rcrn import RCRN
from experiments.rivals.region_embedding import RegionEmbedding
from experiments.rivals.star_transformer import StarTransformer
from experiments.rivals.swem import SwemConcat
from experiments.rivals.text_cnn import TextCNN
from fathomer.model.registry import register

register("adasent", AdaSent, "Zhao et al. 2015, Self-Adaptive Hierarchical Sentence Model")
register("capsule-b", CapsuleB, "Yang et al. 2018, Capsule Networks with Dynamic Routing")
register("char-cnn", CharacterCNN, "Zhang et al. 2015, Character-level Convolutional Networks")
register("dpcnn", DPCNN, "Johnson and Zhang 2017, Deep Pyramid Convolutional Neural Networks")
register("drnn", DRNN, "Wang 2018, Disconnected Recurrent Neural Networks")
register("rcrn", RCRN, "Tay et al. 2018, Recurrently Controlled Recurrent Networks")
register("region-embedding", RegionEmbedding, "Qiao et al. 2018, A New Method of Region Embedding")
register("star-transformer", StarTransformer, "Guo et al. 2019, Star-Transformer")
register("swem-concat", SwemConcat, "Shen et al. 2018, Baseline Needs More Love")
register("text-cnn", TextCNN, "Kim 2014, Convolutional Neural Networks for Sentence Classification")
