"""The depth-adaptive graph recurrent network, its inference engine and its baselines."""

from fathomer.model.graph import WordBatch
from fathomer.model.interface import Network, Output
from fathomer.model.model import DepthAdaptiveNetwork

__all__ = ["DepthAdaptiveNetwork", "Network", "Output", "WordBatch"]
