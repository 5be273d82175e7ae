"""The models by name: ours and its baselines. Other packages add theirs with :func:`register`."""

import importlib
import sys
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.overrides import TorchFunctionMode

from fathomer.config import ModelConfig, Recipe
from fathomer.errors import ConfigError, did_you_mean
from fathomer.model.baselines.bilstm import StackedBiLSTM
from fathomer.model.baselines.fasttext import FastText
from fathomer.model.baselines.s_lstm import SentenceStateLSTM
from fathomer.model.baselines.tfidf import Tfidf
from fathomer.model.baselines.transformer import Transformer
from fathomer.model.interface import Network
from fathomer.model.model import DepthAdaptiveNetwork


class RegisteredModel(NamedTuple):
    """A model class, the paper that describes it, and what it needs and prefers."""

    network: type[Network]
    paper: str
    rate: float | None = None
    """Learning rate of the model, if it is not that of a recipe, which is that of ours."""
    epochs: int = 1
    """Epochs of the model, as a multiple of those of a recipe."""
    needs: str = ""
    """What the model needs besides labelled texts."""

    def adapted(self, recipe: Recipe) -> Recipe:
        """Return a recipe with the learning rate and the epochs of the model.

        Where the time is limited, the epochs are those that the recipe can afford.
        """
        train = recipe.train
        rate = train.learning_rate if self.rate is None else self.rate
        epochs = train.epochs * (1 if train.minutes else self.epochs)
        return recipe.updated({"train": {"learning_rate": rate, "epochs": epochs}})


MODELS: dict[str, RegisteredModel] = {}
CLONE = Path(__file__).resolve().parents[3]
"""The clone of the repository that this package is run from, unless it is installed from a wheel."""


def register(
    name: str,
    network: type[Network],
    paper: str,
    *,
    rate: float | None = None,
    epochs: int = 1,
    needs: str = "",
) -> None:
    """Make a model available as ``--model NAME``, for training, saving and loading."""
    MODELS[name] = RegisteredModel(network, paper, rate, epochs, needs)


register(
    "fathomer",
    DepthAdaptiveNetwork,
    "Liu et al. 2020, Depth-Adaptive Graph Recurrent Network for Text Classification",
)
register("bilstm", StackedBiLSTM, "Graves and Schmidhuber 2005, Framewise Phoneme Classification")
register("fasttext", FastText, "Joulin et al. 2017, Bag of Tricks for Efficient Classification")
register("s-lstm", SentenceStateLSTM, "Zhang et al. 2018, Sentence-State LSTM")
register("tfidf", Tfidf, "Salton and Buckley 1988, Term-Weighting Approaches")
register(
    "transformer",
    Transformer,
    "Vaswani et al. 2017, Attention Is All You Need",
    rate=0.0006,
    epochs=2,
)


def find_model(name: str) -> RegisteredModel:
    """Return the model registered as ``name``."""
    if name not in MODELS:
        _register_rivals(name)
    if name not in MODELS:
        raise ConfigError(
            f"unknown model {name!r}; {did_you_mean(name, MODELS)} (the paper's other systems belong "
            "to experiments: in a clone, import experiments.rivals or run python -m experiments)"
        )
    return MODELS[name]


def _register_rivals(name: str) -> None:
    """Register the paper's other systems if this is a clone of the repository and one is meant."""
    rivals = CLONE / "experiments" / "rivals" / "__init__.py"
    if rivals.is_file() and f'"{name}"' in rivals.read_text(encoding="utf-8"):
        if str(CLONE) not in sys.path:
            sys.path.append(str(CLONE))
        importlib.import_module("experiments.rivals")


def build_model(config: ModelConfig, *, spellings: UInt8[Tensor, "V C"] | None = None) -> Network:
    """Build the model that ``config.name`` selects, with freshly initialised weights."""
    return find_model(config.name).network(config, spellings=spellings)  # type: ignore[call-arg]


class _Uninitialised(TorchFunctionMode):
    """Skips the initialisation of weights; on the device "meta" it would load PyTorch's compiler."""

    def __torch_function__(
        self, function: Any, types: Any, args: Any = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if getattr(function, "__module__", "") == "torch.nn.init":
            return (kwargs or {})["tensor"]
        return function(*args, **(kwargs or {}))


def build_shapes(config: ModelConfig, *, max_chars: int = 1) -> Network:
    """Build a model whose weights have shapes and types, but neither memory nor values."""
    with torch.device("meta"), _Uninitialised():
        spellings = torch.empty(config.vocab_size, max_chars, dtype=torch.uint8)
        return build_model(config, spellings=spellings)
