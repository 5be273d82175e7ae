"""The interface that training, artifact and predictor expect of every model.

N words of the batch, B texts, H hidden_size, L max_depth
"""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn

from fathomer.config import ModelConfig
from fathomer.errors import ConfigError, DepthError
from fathomer.model.graph import WordBatch
from fathomer.model.ngrams import LabelledArrays, NgramRegression
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Tokenizer


class Output(NamedTuple):
    """What a model returns for a batch."""

    logits: Float[Tensor, "B labels"]
    depths: Int[Tensor, " N"]
    """Depth of each word; 0 in a model without depth."""
    depth_logits: Float[Tensor, "N L"] | None = None
    words: Float[Tensor, "N H"] | None = None
    """Last states of the words."""
    sentences: Float[Tensor, "B H"] | None = None
    """Last states of the sentence nodes."""


def find_device(name: str) -> torch.device:
    """Return an available device: ``cpu``, ``cuda``, ``cuda:1``, ``mps``."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).cpu()
    except (RuntimeError, AssertionError, NotImplementedError):
        raise ConfigError(f"there is no device {name!r} here; use cpu") from None
    return device


class Network(nn.Module):
    """Base class of all models: packed texts in, logits out."""

    knows_depth = False
    """Whether words have depths, which can be forced and capped."""
    centres_vectors = True
    """Whether pretrained word vectors are centred and scaled, instead of being read as they are."""
    sizes_are_free = False
    """Whether the sizes of some weights follow from the data; :meth:`load_tensors` then checks them."""
    ngrams: NgramRegression | None
    """TF-IDF to mix into the logits, if ``config.ngrams`` asks for it."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        if config.vocab_size < 1 or config.num_labels < 1:
            raise ConfigError("a network needs vocab_size and num_labels of at least 1")
        self.config = config
        self.ngrams = None

    def forward(
        self,
        batch: WordBatch,
        depths: Int[Tensor, " N"] | None = None,
        max_depth: int | None = None,
    ) -> Output:
        """Classify a batch; ``depths`` forces the depth of each word, ``max_depth`` caps it."""
        raise NotImplementedError

    @classmethod
    def completion(cls) -> Callable[[str], str] | None:
        """Return a function that adds further input to a text, such as translations, if needed."""
        return None

    def begin(self, texts: Iterable[str], tokenizer: Tokenizer) -> None:
        """Prepare for training on these texts; raise an error if something is missing."""

    @property
    def word_vectors(self) -> nn.Embedding | None:
        """The table that pretrained vectors are copied into, if there is one."""
        return None

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        tensors = (*self.parameters(), *self.buffers())
        return next((tensor.device for tensor in tensors), torch.device("cpu"))

    def mixed(self, logits: Float[Tensor, "B labels"], batch: WordBatch) -> Tensor:
        """Return the logits mixed with those of the n-grams.

        In training they are left out: they already fit the training texts almost perfectly, so the
        network would have nothing left to learn.
        """
        if self.ngrams is None or self.training:
            return logits
        return logits.lerp(self.ngrams(batch).to(logits.dtype), self.ngrams.share.to(logits.dtype))

    def load_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Load the weights of a trained model."""
        if self.ngrams is not None:  # their number is known only now
            found = {name.removeprefix("ngrams."): tensor for name, tensor in tensors.items()}
            self.ngrams.load_tensors(found)
        self.load_state_dict(tensors)


class DirectNetwork(Network):
    """Base class of models that are fitted in one go, without gradient steps."""

    sizes_are_free = True

    def learn(
        self,
        texts: EncodedTexts,
        targets: NDArray[np.int64],
        *,
        seed: int,
        weights: NDArray[np.float32] | None = None,
        held_out: LabelledArrays | None = None,
    ) -> None:
        """Fit the model to all texts, weighted if ``weights`` are given.

        A model may choose a setting of its own on the ``held_out`` texts.
        """
        raise NotImplementedError


def check_names(found: Mapping[str, Tensor], wanted: Mapping[str, Tensor]) -> None:
    """Raise ValueError unless the tensors of a file are exactly those of a model."""
    for name in sorted({*found, *wanted}):
        if name not in found:
            raise ValueError(f"the tensor {name} is missing")
        if name not in wanted:
            raise ValueError(f"the tensor {name} is not one of this model")


def trainable_parameters(network: nn.Module) -> int:
    """Return the number of parameters that training changes."""
    return sum(weight.numel() for weight in network.parameters() if weight.requires_grad)


def checked_depths(depths: Tensor, batch: WordBatch, config: ModelConfig) -> Int[Tensor, " N"]:
    """Return forced depths, after checking that they fit the batch and lie in 1..max_depth."""
    if depths.is_floating_point() or depths.dtype == torch.bool:
        raise DepthError(f"depths must be integers, not {depths.dtype}")
    if depths.shape != batch.words.shape:
        raise DepthError(f"{len(depths)} depths for {batch.num_words} words")
    wrong = torch.nonzero((depths < 1) | (depths > config.max_depth))
    if len(wrong):
        word = int(wrong[0])
        raise DepthError(f"depth {int(depths[word])} at word {word}; use 1..{config.max_depth}")
    return depths.long()


def capped(depths: Tensor, max_depth: int | None, config: ModelConfig) -> Int[Tensor, " N"]:
    """Limit depths to ``max_depth``, if it is given; it must be one of the model's depths."""
    if max_depth is None:
        return depths
    if not 1 <= max_depth <= config.max_depth:
        raise DepthError(f"max_depth {max_depth}; use 1..{config.max_depth}")
    return depths.clamp(max=max_depth)
