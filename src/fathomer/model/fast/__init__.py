"""The inference engine: the same function as the plain model, computed faster."""

from fathomer.config import PredictPrecision
from fathomer.model.fast.engine import FastNetwork
from fathomer.model.fast.int8 import available as int8_available
from fathomer.model.fast.int8 import quantised
from fathomer.model.interface import Network
from fathomer.model.model import DepthAdaptiveNetwork

__all__ = ["fast_network", "int8_available"]


def fast_network(network: Network, *, precision: PredictPrecision = "float32") -> Network:
    """Return the inference engine of a network in evaluation mode; other models as they are."""
    if isinstance(network, FastNetwork) or not isinstance(network, DepthAdaptiveNetwork):
        return network
    return quantised(network) if precision == "int8" else FastNetwork.of(network)
