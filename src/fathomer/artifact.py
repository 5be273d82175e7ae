"""A trained model on disk: a folder that describes itself and holds no pickle.

config.json         labels in order, all settings, checksums of tokenizer and weights; written last
tokenizer.json      rules and vocabulary, in the format of the `tokenizers` library
model.safetensors   the weights
metrics.jsonl       scores of every epoch, one JSON object per line
metrics.json        final scores, their history, and how the model was trained
README.md           the model card
"""

import json
import math
import platform
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy
import safetensors.torch
import tokenizers
import torch
from safetensors import SafetensorError
from torch import Tensor

import fathomer
from fathomer.card import write_card
from fathomer.config import ModelConfig, Recipe
from fathomer.errors import ArtifactError, FathomerError, MissingFileError, refuse_damage
from fathomer.evaluate.budget import DepthBudgets
from fathomer.files import leftovers_of, parse_json, replace_folder
from fathomer.model.interface import Network
from fathomer.model.registry import build_model, build_shapes
from fathomer.text.tokenizer import Tokenizer

FORMAT = 1
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
METRICS, HISTORY, CARD = "metrics.json", "metrics.jsonl", "README.md"

_REASON_CHARACTERS = 300
"""The reason why a folder is refused may quote what is in it."""
_LOAD_ERRORS = (
    KeyError, TypeError, AttributeError, ValueError, RuntimeError, OverflowError, SafetensorError
)  # fmt: skip
"""Exceptions that a changed or inconsistent model folder can cause."""
_TRIES, _PAUSE = 100, 0.02
"""Attempts to read a model while it is replaced, and seconds between them."""


@dataclass(frozen=True)
class Artifact:
    """A trained model: network, tokenizer, labels, settings and scores."""

    recipe: Recipe
    labels: tuple[str, ...]
    tokenizer: Tokenizer
    network: Network
    metrics: dict[str, Any]
    temperature: float = 1.0
    """Logits are divided by this before they become probabilities; found by calibration."""
    thresholds: tuple[float, ...] | None = None
    """For multi-label models, the lowest probability at which each label is given."""
    depth_budgets: DepthBudgets | None = None
    """Average depths that the model can be set to, if its depth is supervised."""

    def __post_init__(self) -> None:
        if not 0 < self.temperature < math.inf:
            raise ArtifactError(f"invalid temperature {self.temperature}")
        if self.thresholds is not None and len(self.thresholds) != len(self.labels):
            raise ArtifactError(f"{len(self.thresholds)} thresholds for {len(self.labels)} labels")
        if self.thresholds is not None and not all(map(math.isfinite, self.thresholds)):
            raise ArtifactError("a threshold is not a finite number")

    def save(self, folder: Path) -> None:
        """Write the folder, or replace the model in it as a whole."""
        replace_folder(folder, self.to_files())

    def to_files(self) -> dict[str, bytes]:
        """Return the content of each file in the folder, by name."""
        tensors = {name: t.contiguous().cpu() for name, t in self.network.state_dict().items()}
        parameters = sum(weight.numel() for weight in self.network.parameters())
        with refuse_damage(ArtifactError, "the model's metrics cannot be described"):
            history = json_lines(self.metrics.get("history", []))
            card = write_card(self.recipe, self.labels, self.metrics, parameters=parameters)
        files = {
            WEIGHTS: safetensors.torch.save(tensors),
            TOKENIZER: _encoded(self.tokenizer.to_json()),
            METRICS: _pretty(self.metrics),
            HISTORY: history,
            CARD: _encoded(card),
        }
        config = {
            "model_type": "fathomer",  # which transformers names if it does not know it, so:
            "usage": "for transformers, pip install 'fathomer[hub]' and import fathomer.hub first",
            "format": FORMAT,
            "fathomer_version": fathomer.__version__,
            "labels": list(self.labels),
            "temperature": self.temperature,
            "thresholds": self.thresholds,
            "depth_budgets": self.depth_budgets and self.depth_budgets.to_dict(),
            "recipe": self.recipe.to_dict(),
            "files": {name: sha256(files[name]).hexdigest() for name in (TOKENIZER, WEIGHTS)},
        }
        return {**files, CONFIG: _pretty(config)}

    @classmethod
    def load(cls, folder: Path) -> "Artifact":
        """Load a model from its folder; raise an error if it is not a model or is damaged."""
        config, files = _read_files(folder)
        try:
            if not isinstance(config["labels"], list):
                raise TypeError("the labels are not a list")
            recipe, labels = Recipe.from_dict(config["recipe"]), tuple(config["labels"])
            tokenizer = Tokenizer.from_json(files[TOKENIZER].decode("utf-8"))
            _check(recipe, labels, tokenizer)
            return cls(
                recipe=recipe,
                labels=labels,
                tokenizer=tokenizer,
                network=_load_network(recipe.model, safetensors.torch.load(files[WEIGHTS])),
                metrics=_parsed(folder / METRICS, files[METRICS]) if METRICS in files else {},
                temperature=float(config.get("temperature", 1.0)),
                thresholds=_thresholds(config.get("thresholds")),
                depth_budgets=_budgets(config.get("depth_budgets")),
            )
        except _LOAD_ERRORS as error:
            reason = str(error).partition("\n")[0][:_REASON_CHARACTERS]
            raise ArtifactError(f"{folder}: not a model that can be loaded ({reason})") from None


def _read_files(folder: Path) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Read each file of a model once and check it; start again if the model is being replaced."""
    for _ in range(_TRIES):
        before = _content(folder / CONFIG)
        try:
            config = _config(folder, before)
            found = {name: _content(folder / name) for name in (TOKENIZER, WEIGHTS, METRICS)}
            files = {name: content for name, content in found.items() if content is not None}
            _check_files(folder, config, files)
        except FathomerError:
            if not _is_replaced(folder, before):
                raise
        else:
            if _content(folder / CONFIG) == before:
                return config, files
        time.sleep(_PAUSE)
    raise ArtifactError(f"{folder}: keeps being replaced; try again")


def _content(path: Path) -> bytes | None:
    """Return the bytes of a file; None if there is none."""
    with suppress(FileNotFoundError):
        if path.is_file():
            return path.read_bytes()
    return None


def _is_replaced(folder: Path, before: bytes | None) -> bool:
    """Whether the model has changed since its config was read, or is being written now."""
    return _content(folder / CONFIG) != before or bool(leftovers_of(folder / CONFIG))


def _check_files(folder: Path, config: dict[str, Any], files: Mapping[str, bytes]) -> None:
    """Raise an error if a file is missing or does not have the checksum in the config."""
    for name in (TOKENIZER, WEIGHTS):
        if name not in files:
            raise ArtifactError(f"{folder}: {name} is missing; train or copy the model again")
        if sha256(files[name]).hexdigest() != config["files"].get(name):
            raise ArtifactError(f"{folder}: {name} is damaged; train or copy the model again")


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json``, and check that the folder holds a Fathomer model."""
    return _config(folder, _content(folder / CONFIG))


def _config(folder: Path, content: bytes | None) -> dict[str, Any]:
    if not folder.is_dir():
        problem = (
            "a file where a model's folder was expected" if folder.exists() else "no such folder"
        )
        raise MissingFileError(f"{folder}: {problem}")
    if content is None:
        raise ArtifactError(f"{folder}: not a Fathomer model (it has no {CONFIG})")
    config = _parsed(folder / CONFIG, content)
    if config.get("model_type") != "fathomer" or not isinstance(config.get("files"), dict):
        raise ArtifactError(
            f"{folder}: not a Fathomer model ({CONFIG} was not written by Fathomer)"
        )
    if config.get("format") != FORMAT:
        raise ArtifactError(
            f"{folder}: written in format {config.get('format')!r:.40}, this Fathomer "
            f"({fathomer.__version__}) reads format {FORMAT}"
        )
    return config


def versions() -> dict[str, str]:
    """Return the versions of the packages that a result depends on."""
    return {
        "fathomer": fathomer.__version__,
        "torch": torch.__version__,
        "tokenizers": tokenizers.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def _check(recipe: Recipe, labels: tuple[Any, ...], tokenizer: Tokenizer) -> None:
    """Raise an error if labels, tokenizer and settings do not fit together."""
    model = recipe.model
    strings = {label for label in labels if isinstance(label, str)}
    if not len(strings) == len(labels) == model.num_labels:
        raise ArtifactError(f"expected {model.num_labels} different labels")
    if len(tokenizer) != model.vocab_size:
        raise ArtifactError(f"{len(tokenizer)} words, but {model.vocab_size} word vectors")


def _load_network(config: ModelConfig, tensors: dict[str, Tensor]) -> Network:
    """Build a network with the weights of a file, once settings and weights are known to fit."""
    spellings = [tensor for name, tensor in tensors.items() if name.endswith("spellings")]
    width = max([1, *(_width(config, tensor) for tensor in spellings)])
    _check_tensors(config, width, tensors)
    shape = config.vocab_size, width  # the spellings themselves are in the file
    with torch.random.fork_rng(devices=[]):  # initial weights are overwritten
        network = build_model(config, spellings=torch.zeros(shape, dtype=torch.uint8))
    network.load_tensors(tensors)
    return network.eval()


def _width(config: ModelConfig, spellings: Tensor) -> int:
    """Return the bytes of a spelling; 0 for a tensor that no model of this vocabulary has."""
    fits = spellings.dim() == 2 and len(spellings) == config.vocab_size
    return spellings.shape[1] if fits else 0


def _check_tensors(config: ModelConfig, max_chars: int, found: dict[str, Tensor]) -> None:
    """Raise ValueError if weights do not fit the settings; nothing is allocated for that."""
    for name, tensor in found.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise ValueError(f"the tensor {name} has values that are not finite")
    network = build_shapes(config, max_chars=max_chars)
    for name, wanted in network.state_dict().items():
        if name in found and found[name].dtype != wanted.dtype:
            raise ValueError(f"the tensor {name} has type {found[name].dtype}")
        if network.sizes_are_free or name.startswith("ngrams."):  # checked when they are loaded
            continue
        if name not in found or found[name].shape != wanted.shape:
            what = "is missing" if name not in found else f"has shape {list(found[name].shape)}"
            raise ValueError(f"the tensor {name} {what}; the settings ask for {list(wanted.shape)}")


def _thresholds(found: list[float] | None) -> tuple[float, ...] | None:
    return None if found is None else tuple(map(float, found))


def _budgets(found: dict[str, Any] | None) -> DepthBudgets | None:
    return None if found is None else DepthBudgets.from_dict(found)


def _parsed(path: Path, content: bytes) -> dict[str, Any]:
    """Return the JSON object in a file."""
    try:
        found = parse_json(content)
    except ValueError as error:
        raise ArtifactError(f"{path}: not JSON ({error})") from None
    if not isinstance(found, dict):
        raise ArtifactError(f"{path}: not a JSON object")
    return found


def _pretty(content: dict[str, Any]) -> bytes:
    return _encoded(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def json_lines(records: Iterable[dict[str, Any]]) -> bytes:
    """Return records as JSON, one object per line."""
    return b"".join(_encoded(json.dumps(record, ensure_ascii=False) + "\n") for record in records)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # lone surrogates cannot be encoded
