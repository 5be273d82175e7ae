"""What happens in training, as it is told to whoever listens and kept in a checkpoint."""

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class VectorsFound:
    """Tell, before the first step, which part of the training words has a pretrained vector."""

    file: str
    types: float
    """Of the distinct words."""
    words: float
    """Of the words as they occur."""

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class StepDone:
    """Tell of one step of the optimiser."""

    epoch: int
    step: int
    steps: int
    """Steps of this epoch."""
    texts: int
    words: int
    loss: float
    correct: int
    depth_sum: int
    """Depths of all words of the batch, added up, as sampled in training."""


@dataclass(frozen=True)
class EpochDone:
    """Tell of one pass over the training texts."""

    epoch: int
    loss: float
    accuracy: float
    mean_depth: float
    """As sampled in training; the held-out part has it as selected at prediction."""
    words: int
    learning_rate: float
    """At the end of the epoch."""
    held_out: dict[str, Any] | None
    """Scores on the held-out part, if there is one."""
    best: bool
    """Whether this is the best epoch so far."""

    def to_dict(self) -> dict[str, Any]:
        """Return the record as plain values."""
        return asdict(self)


@dataclass(frozen=True)
class RolledBack:
    """Tell that a loss was not finite, and that the epoch starts again from the last good state."""

    epoch: int
    step: int
    learning_rate: float
    """At which training goes on."""


Event = VectorsFound | StepDone | EpochDone | RolledBack
