"""The state of a training run, and the checkpoint file (no pickle) that it is resumed from.

All randomness of a step follows from the seed and the step's number, so a checkpoint holds no state
of a random generator.
"""

import json
import struct
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from fathomer.errors import ArtifactError, ConfigError, MissingFileError
from fathomer.files import write_atomically
from fathomer.model.interface import Network

_VALUES = ("settings", "threads", "seconds", "rollbacks", "best_epoch", "history")

DIGEST_SIZE = 32
"""Bytes of the checksum at the end of a checkpoint."""


@dataclass(frozen=True)
class EpochDone:
    """The scores of one pass over the training set."""

    epoch: int
    loss: float
    accuracy: float
    mean_depth: float
    """As sampled in training; ``held_out`` has it as selected at prediction."""
    words: int
    learning_rate: float
    """At the end of the epoch."""
    held_out: dict[str, Any] | None
    """Scores on the held-out part, if there is one."""
    best: bool
    """Whether this epoch is kept: the best so far, or the last if ``train.keep`` says so."""

    def to_dict(self) -> dict[str, Any]:
        """Return the scores as plain values."""
        return asdict(self)


@dataclass
class TrainingState:
    """Everything that changes during training."""

    network: Network
    optimiser: torch.optim.Adam
    rollbacks: int = 0
    best_epoch: int = 0
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    history: list[EpochDone] = field(default_factory=list)
    began: float = field(default_factory=time.perf_counter)
    earlier_seconds: float = 0.0
    """Time spent before the run was stopped, up to its last checkpoint."""

    @classmethod
    def start(cls, network: Network) -> "TrainingState":
        """Start a run with a fresh optimiser."""
        weights = list(trained_weights(network).values())
        return cls(network, torch.optim.Adam([{"params": weights}], fused=True))

    @classmethod
    def resume(cls, network: Network, path: Path, settings: Mapping[str, Any]) -> "TrainingState":
        """Resume a run from a checkpoint made with the same data and settings."""
        tensors, values = load_checkpoint(path)
        _check_same(path, values["settings"], settings)
        state = cls.start(network)
        try:
            state.load_tensors(tensors)
            best = {name: tensors[f"best/{name}"] for name in trained_weights(network)}
        except (KeyError, RuntimeError) as error:
            raise ArtifactError(f"{path}: belongs to another network ({error})") from None
        state.best_weights = best
        state.earlier_seconds = values["seconds"]
        state.rollbacks, state.best_epoch = values["rollbacks"], values["best_epoch"]
        state.history = [EpochDone(**epoch) for epoch in values["history"]]
        return state

    def save(self, path: Path, settings: Mapping[str, Any]) -> None:
        """Write a checkpoint; if the process is killed meanwhile, the previous one stays."""
        best = {f"best/{name}": tensor for name, tensor in self.best_weights.items()}
        values = {
            "settings": settings,
            "threads": torch.get_num_threads(),
            "seconds": self.seconds,
            "rollbacks": self.rollbacks,
            "best_epoch": self.best_epoch,
            "history": [epoch.to_dict() for epoch in self.history],
        }
        content = safetensors.torch.save(
            self.tensors() | best, metadata={"values": json.dumps(values)}
        )
        write_atomically(path, content + sha256(content).digest())

    @property
    def seconds(self) -> float:
        """Seconds of training, without the time between a stop and its resumption."""
        return self.earlier_seconds + time.perf_counter() - self.began

    def tensors(self) -> dict[str, Tensor]:
        """Return the weights and the optimiser's moments by name."""
        named: dict[str, Tensor] = {}
        for name, weight in trained_weights(self.network).items():
            named[f"network/{name}"] = weight.detach()
            for key, tensor in self.optimiser.state[weight].items():
                named[f"adam/{key}/{name}"] = tensor
        return named

    def load_tensors(self, named: Mapping[str, Tensor]) -> None:
        """Restore the weights and moments that :meth:`tensors` returned."""
        self.optimiser.state.clear()
        for name, weight in trained_weights(self.network).items():
            weight.data.copy_(named[f"network/{name}"])
            for key in ("step", "exp_avg", "exp_avg_sq"):
                if f"adam/{key}/{name}" in named:  # missing before the first step
                    moment = named[f"adam/{key}/{name}"].to(weight.device, copy=True)
                    self.optimiser.state[weight][key] = moment

    def keep_best(self, epoch: int) -> None:
        """Remember the current weights as the best so far."""
        weights = trained_weights(self.network)
        self.best_weights = {name: weight.detach().clone() for name, weight in weights.items()}
        self.best_epoch = epoch  # set last: an interrupt before this keeps the previous best epoch

    def restore_best(self) -> None:
        """Load the best weights into the network and switch it to evaluation mode."""
        for name, weight in trained_weights(self.network).items():
            weight.data.copy_(self.best_weights[name])
        self.network.eval()


def trained_weights(network: Network) -> dict[str, torch.nn.Parameter]:
    """Return the parameters that training updates, by name."""
    return {name: weight for name, weight in network.named_parameters() if weight.requires_grad}


def load_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read the tensors and the plain values of a checkpoint."""
    if not path.is_file():
        raise MissingFileError(f"{path}: no checkpoint to resume from; train without --resume")
    content = path.read_bytes()
    content, digest = content[:-DIGEST_SIZE], content[-DIGEST_SIZE:]
    if sha256(content).digest() != digest:
        raise ArtifactError(f"{path}: not a readable checkpoint (it is damaged); delete it")
    try:
        [length] = struct.unpack_from("<Q", content)
        found = json.loads(json.loads(content[8 : 8 + length])["__metadata__"]["values"])
        return safetensors.torch.load(content), {name: found[name] for name in _VALUES}
    except (SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ArtifactError(f"{path}: not a readable checkpoint ({error}); delete it") from None


def other_threads(path: Path) -> str | None:
    """Return a message if a checkpoint was made with another number of threads than now."""
    before, now = load_checkpoint(path)[1]["threads"], torch.get_num_threads()
    if before == now:
        return None
    return f"{path}: was made with {before} threads, now there are {now}; the result may differ"


def _check_same(path: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise an error if the resumed run would differ from the one that was stopped."""
    for name in sorted({*before, *now}):
        if before.get(name) != now.get(name):
            raise ConfigError(
                f"{path}: was made with {name} = {before.get(name)!r}, now it is "
                f"{now.get(name)!r}; use the same settings and data, or delete the file"
            )
