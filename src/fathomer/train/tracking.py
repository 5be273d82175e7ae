"""Training as TensorBoard shows it: the scores of every epoch, and how deep words were read."""

from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from fathomer.errors import MissingExtraError
from fathomer.train.events import EpochDone, Event

TRACKERS = ("tensorboard",)
SCORES = ("accuracy", "micro_f1", "macro_f1", "loss", "mean_depth", "calibration_error")


def require_tensorboard() -> None:
    """Say in one line what is missing, before training."""
    if find_spec("tensorboard") is None:
        raise MissingExtraError(
            "--track tensorboard needs a package: pip install 'fathomer[track]'"
        )


def track(events: Iterable[Event], folder: Path) -> Iterator[Event]:
    """Write every epoch to a folder that ``tensorboard --logdir`` reads, as it passes by."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for event in events:
            if isinstance(event, EpochDone):
                for name, value in scalars(event).items():
                    writer.add_scalar(name, value, event.epoch)
                depths = (event.held_out or {}).get("words_by_depth", [])
                if sum(depths):
                    writer.add_histogram(
                        "held_out/depth",
                        np.repeat(np.arange(len(depths)), depths),
                        event.epoch,
                        bins=np.arange(len(depths) + 1) - 0.5,
                    )
            yield event


def scalars(event: EpochDone) -> dict[str, float]:
    """Name the figures of an epoch."""
    named = {
        f"training/{name}": getattr(event, name)
        for name in ("loss", "accuracy", "mean_depth", "learning_rate")
    }
    held_out = event.held_out or {}
    return named | {f"held_out/{name}": held_out[name] for name in SCORES if name in held_out}
