"""The depth-adaptive graph recurrent network, in the order in which a batch flows through it."""

from fathomer.nn.graph import WordBatch
from fathomer.nn.interface import Network, Output
from fathomer.nn.network import DepthAdaptiveNetwork

__all__ = ["DepthAdaptiveNetwork", "Network", "Output", "WordBatch"]
