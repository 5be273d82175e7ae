"""Training on several processes: the others are silent, unless the first one is killed."""

import signal
from pathlib import Path
from typing import TYPE_CHECKING

from fathomer.errors import TrainingError

if TYPE_CHECKING:
    from fathomer.train.processes import Processes


def train_along(processes: "Processes", out: Path, device: str) -> None:
    """Train together with the first process, which reports every error unless it is killed."""
    from fathomer.train.follow import follow
    from fathomer.train.processes import ProcessGroup

    assert isinstance(processes, ProcessGroup)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the first process ends the run
    try:
        follow(processes, device=device)
    except TrainingError as error:
        if processes.first_is_lost():
            raise with_saved(error, out) from None


def with_saved(error: TrainingError, out: Path) -> TrainingError:
    """Return the error with what was saved and how to continue."""
    from fathomer.train.folder import CHECKPOINT

    if (out / CHECKPOINT).exists():
        saved = f"{out} holds a checkpoint, the same command with --resume continues"
    else:
        saved = "nothing is saved before the end of the first epoch; run the command again"
    return TrainingError(f"{error}; {saved}")
