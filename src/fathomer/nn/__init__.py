"""The depth-adaptive graph recurrent network, in the order in which a batch flows through it."""

from fathomer.nn.graph import WordBatch
from fathomer.nn.network import DepthAdaptiveNetwork, Output

__all__ = ["DepthAdaptiveNetwork", "Output", "WordBatch"]
