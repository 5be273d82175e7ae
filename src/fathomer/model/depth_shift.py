"""Moving the average depth of a network with supervised depth, by the bias ``b_2`` of Eq. (6)."""

from typing import TypeVar

import torch
from torch import nn

from fathomer.model.fast.engine import sharing
from fathomer.model.model import DepthAdaptiveNetwork

N = TypeVar("N", bound=DepthAdaptiveNetwork)


def shift_depths(network: N, shift: float) -> N:
    """Return a network with ``shift * d`` added to the logit of each depth ``d``.

    It shares everything else with the given network. The average depth rises with the shift.
    """
    bias = network.depth.scores.bias
    assert bias is not None, "only supervised depth has a bias"
    shifted = sharing(network, type(network))
    shifted.depth = sharing(network.depth, type(network.depth))
    shifted.depth.scores = sharing(network.depth.scores, nn.Linear)
    steps = torch.arange(1, len(bias) + 1, device=bias.device)
    shifted.depth.scores.bias = nn.Parameter(bias.detach() + shift * steps, requires_grad=False)
    return shifted
