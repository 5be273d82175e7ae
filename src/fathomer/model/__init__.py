"""The depth-adaptive graph recurrent network, in the order in which a batch flows through it."""

from fathomer.model.graph import WordBatch
from fathomer.model.interface import Network, Output
from fathomer.model.network import DepthAdaptiveNetwork

__all__ = ["DepthAdaptiveNetwork", "Network", "Output", "WordBatch"]
