"""Initial weights of all networks; the one place where they are decided."""

from typing import Any

import torch
from torch import nn


def initialise(network: nn.Module) -> None:
    """Initialise every weight: Glorot uniform for matrices, gate by gate; zeros for biases."""
    # The gates of a recurrent layer share one matrix, but each is a layer of its own.
    gated: list[Any] = [part for part in network.modules() if hasattr(part, "hidden_size")]
    gate_rows = {weight: gate.hidden_size for gate in gated for weight in gate.parameters()}
    for module in network.modules():
        for name, weight in module.named_parameters(recurse=False):
            if "bias" in name:
                nn.init.zeros_(weight)
            elif weight.dim() == 1:
                nn.init.ones_(weight)  # the gain of a normalisation layer
            elif isinstance(module, nn.Embedding):
                # About the standard deviation of GloVe's vectors, unless the module sets its own.
                nn.init.normal_(weight, std=getattr(module, "spread", 0.4))
            elif weight in gate_rows:
                for gate in torch.split(weight.detach().flatten(0, -2), gate_rows[weight]):
                    nn.init.xavier_uniform_(gate)
            else:
                nn.init.xavier_uniform_(weight)
        if isinstance(module, nn.Embedding) and module.padding_idx is not None:
            nn.init.zeros_(module.weight[module.padding_idx].detach())
