"""What training, artifact and predictor ask of a model: ours, and those that it is compared with.

N words of the batch, B texts, H hidden_size, L max_depth
"""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError
from fathomer.model.graph import WordBatch
from fathomer.text.encode import EncodedTexts


class Output(NamedTuple):
    """Hold what a model found out about a batch."""

    logits: Float[Tensor, "B labels"]
    depths: Int[Tensor, " N"]
    """Steps that each word took; 0 in a model that knows no depth."""
    depth_logits: Float[Tensor, "N L"] | None = None
    words: Float[Tensor, "N H"] | None = None
    """Last states of the words."""
    sentences: Float[Tensor, "B H"] | None = None
    """Last states of the sentence nodes."""


def find_device(name: str) -> torch.device:
    """Name a device that is there: ``cpu``, ``cuda``, ``cuda:1``, ``mps``."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigError(f"there is no device {name!r} here; use cpu") from None
    return device


class Network(nn.Module):
    """Classify packed texts."""

    knows_depth = False
    """Whether each word has a depth, which can be forced and capped."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.vocab_size < 1 or config.num_labels < 1:
            raise ConfigError("a network needs vocab_size and num_labels of at least 1")
        self.config = config

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; ``depths`` forces the depth of each word, ``max_depth`` caps it."""
        raise NotImplementedError

    @property
    def word_vectors(self) -> nn.Embedding | None:
        """Give the table that pretrained vectors are put into, if there is one."""
        return None

    @property
    def device(self) -> torch.device:
        """Say where the weights are."""
        tensors = (*self.parameters(), *self.buffers())
        return next((tensor.device for tensor in tensors), torch.device("cpu"))

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Take over the weights of a trained model."""
        self.load_state_dict(tensors)


class DirectNetwork(Network):
    """Classify packed texts after learning from all of them at once, not in steps."""

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
    ) -> None:
        """Learn from all texts; each counts as much as its weight, if there are any."""
        raise NotImplementedError


def trainable_parameters(network: nn.Module) -> int:
    """Count what training changes."""
    return sum(weight.numel() for weight in network.parameters() if weight.requires_grad)
