"""A TensorBoard log of a training run: the scores of every epoch, and the depths of the words."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

from fathomer.train.checkpoint import EpochDone
from fathomer.train.loop import Event

TRACKERS = ("tensorboard",)
SCORES = ("accuracy", "micro_f1", "macro_f1", "loss", "mean_depth", "calibration_error")


def track(events: Iterable[Event], folder: Path) -> Iterator[Event]:
    """Pass events on, and log every epoch to a folder for ``tensorboard --logdir``."""
    from torch.utils.tensorboard import SummaryWriter

    with SummaryWriter(str(folder)) as writer:
        for event in events:
            if isinstance(event, EpochDone):
                for name, value in epoch_scalars(event).items():
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


def epoch_scalars(event: EpochDone) -> dict[str, float]:
    """Return the scores of an epoch by their names in TensorBoard."""
    named = {
        f"training/{name}": getattr(event, name)
        for name in ("loss", "accuracy", "mean_depth", "learning_rate")
    }
    held_out = event.held_out or {}
    return named | {f"held_out/{name}": held_out[name] for name in SCORES if name in held_out}
