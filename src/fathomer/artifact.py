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
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy
import safetensors.torch
import tokenizers
import torch
from safetensors import SafetensorError

import fathomer
from fathomer.card import write_card
from fathomer.config import Recipe
from fathomer.errors import ArtifactError, MissingFileError
from fathomer.evaluate.budget import DepthBudgets
from fathomer.files import sha256_of, write_together
from fathomer.model.interface import Network
from fathomer.model.registry import build_model
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vocabulary import spell

FORMAT = 1
CONFIG, TOKENIZER, WEIGHTS = "config.json", "tokenizer.json", "model.safetensors"
METRICS, HISTORY, CARD = "metrics.json", "metrics.jsonl", "README.md"

_LOAD_ERRORS = (KeyError, TypeError, AttributeError, ValueError, RuntimeError, SafetensorError)
"""Exceptions that a changed or inconsistent model folder can cause."""


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

    def save(self, folder: Path) -> None:
        """Write the folder; ``config.json`` comes last because it has the other files' checksums."""
        folder.mkdir(parents=True, exist_ok=True)
        write_together({folder / name: content for name, content in self.to_files().items()})

    def to_files(self) -> dict[str, bytes]:
        """Return the content of each file in the folder, by name."""
        tensors = {name: t.contiguous().cpu() for name, t in self.network.state_dict().items()}
        files = {
            WEIGHTS: safetensors.torch.save(tensors),
            TOKENIZER: _encoded(self.tokenizer.to_json()),
            METRICS: _pretty(self.metrics),
            HISTORY: json_lines(self.metrics.get("history", [])),
            CARD: _encoded(
                write_card(
                    self.recipe,
                    self.labels,
                    self.metrics,
                    parameters=sum(p.numel() for p in self.network.parameters()),
                )
            ),
        }
        config = {
            "model_type": "fathomer",
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
        config = read_config(folder)
        for name in (TOKENIZER, WEIGHTS):
            if not (folder / name).is_file():
                raise ArtifactError(f"{folder}: {name} is missing; train or copy the model again")
            if sha256_of(folder / name) != config["files"].get(name):
                raise ArtifactError(f"{folder}: {name} is damaged; train or copy the model again")
        try:
            if not isinstance(config["labels"], list):
                raise TypeError("the labels are not a list")
            recipe, labels = Recipe.from_dict(config["recipe"]), tuple(config["labels"])
            tokenizer = Tokenizer.from_json((folder / TOKENIZER).read_text("utf-8"))
            _check(recipe, labels, tokenizer)
            artifact = cls(
                recipe=recipe,
                labels=labels,
                tokenizer=tokenizer,
                network=_load_network(recipe, tokenizer, folder / WEIGHTS),
                metrics=_read_json(folder / METRICS) if (folder / METRICS).is_file() else {},
                temperature=float(config.get("temperature", 1.0)),
                thresholds=_thresholds(config.get("thresholds")),
                depth_budgets=_budgets(config.get("depth_budgets")),
            )
        except _LOAD_ERRORS as error:
            reason = str(error).partition("\n")[0]
            raise ArtifactError(f"{folder}: not a model that can be loaded ({reason})") from None
        return artifact


def read_config(folder: Path) -> dict[str, Any]:
    """Read ``config.json``, and check that the folder holds a Fathomer model."""
    if not folder.is_dir():
        problem = (
            "a file where a model's folder was expected" if folder.exists() else "no such folder"
        )
        raise MissingFileError(f"{folder}: {problem}")
    if not (folder / CONFIG).is_file():
        raise ArtifactError(f"{folder}: not a Fathomer model (it has no {CONFIG})")
    config = _read_json(folder / CONFIG)
    if config.get("model_type") != "fathomer" or not isinstance(config.get("files"), dict):
        raise ArtifactError(
            f"{folder}: not a Fathomer model ({CONFIG} was not written by Fathomer)"
        )
    if config.get("format") != FORMAT:
        raise ArtifactError(
            f"{folder}: written in format {config.get('format')!r}, this Fathomer "
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


def _load_network(recipe: Recipe, tokenizer: Tokenizer, path: Path) -> Network:
    spellings = spell(tokenizer.vocabulary, max_chars=recipe.text.max_chars)
    with torch.random.fork_rng(devices=[]):  # initial weights are overwritten
        network = build_model(recipe.model, spellings=torch.from_numpy(spellings.copy()))
    network.load_tensors(safetensors.torch.load_file(path))
    return network.eval()


def _thresholds(found: list[float] | None) -> tuple[float, ...] | None:
    return None if found is None else tuple(map(float, found))


def _budgets(found: dict[str, Any] | None) -> DepthBudgets | None:
    return None if found is None else DepthBudgets.from_dict(found)


def _read_json(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ArtifactError(f"{path}: not JSON ({error})") from None
    if not isinstance(content, dict):
        raise ArtifactError(f"{path}: not a JSON object")
    return content


def _pretty(content: dict[str, Any]) -> bytes:
    return _encoded(json.dumps(content, indent=2, ensure_ascii=False) + "\n")


def json_lines(records: Iterable[dict[str, Any]]) -> bytes:
    """Return records as JSON, one object per line."""
    return b"".join(_encoded(json.dumps(record, ensure_ascii=False) + "\n") for record in records)


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")  # lone surrogates cannot be encoded
