"""The folder that a model is trained into: what may be replaced there, and what a killed run left."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from fathomer.artifact import CARD, CONFIG, HISTORY, METRICS, TOKENIZER, WEIGHTS, read_config
from fathomer.errors import ArtifactError, FathomerError
from fathomer.files import leftovers_of, write_atomically
from fathomer.train.tracking import TRACKERS

CHECKPOINT, PROBE = "checkpoint.safetensors", ".probe"


@contextmanager
def created(folder: Path | None) -> Iterator[None]:
    """Create the folder, and remove it again if it was new and is still empty at the end."""
    new = folder is not None and not folder.exists()
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if folder and new and not any(folder.iterdir()):
            folder.rmdir()


def check_folder(folder: Path, *, resume: bool = False, overwrite: bool = False) -> None:
    """Raise an error if training into ``folder`` would overwrite other files, a model or a stopped run.

    With ``overwrite``, a model or a stopped run may be replaced.
    """
    if folder.exists() and not folder.is_dir():
        raise ArtifactError(f"{folder}: is a file; a model needs a folder")
    ours = (CHECKPOINT, CONFIG, TOKENIZER, WEIGHTS, METRICS, HISTORY, CARD, PROBE)
    leftovers = [folder / PROBE, *(file for name in ours for file in leftovers_of(folder / name))]
    if folder.is_dir() and _holds_files(folder, leftovers) and not _is_ours(folder):
        raise ArtifactError(f"{folder}: holds other files; choose an empty or a new folder")
    if resume and (folder / CONFIG).exists() and not (folder / CHECKPOINT).exists():
        raise ArtifactError(f"{folder}: the training there is finished; there is nothing to resume")
    if not resume and not overwrite and (folder / CHECKPOINT).exists():
        raise ArtifactError(
            f"{folder}: holds a stopped training; continue it with --resume, replace it with "
            "--overwrite, or choose another folder"
        )
    if not resume and not overwrite and (folder / CONFIG).exists():
        raise ArtifactError(
            f"{folder}: holds a model; replace it with --overwrite, or choose another folder"
        )
    _check_writable_folder(folder)
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)
    for replaced in leftovers_of(folder.resolve()):  # of a killed replacement of the whole folder
        shutil.rmtree(replaced, ignore_errors=True)


def _holds_files(folder: Path, leftovers: list[Path]) -> bool:
    """Whether a folder holds more than what a run leaves if it ends before its first epoch."""
    return any(path.name not in TRACKERS and path not in leftovers for path in folder.iterdir())


def _is_ours(folder: Path) -> bool:
    """Whether a folder holds a model or a checkpoint of ours; other tools write config.json too."""
    if (folder / CHECKPOINT).exists():
        return True
    try:
        read_config(folder)
    except FathomerError:
        return False
    return True


def _check_writable_folder(folder: Path) -> None:
    """Raise an error, before training, if its result could not be written."""
    new = not folder.exists()
    probe = folder / PROBE
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(probe, "")
        probe.unlink()
        if new:  # an error found later must not leave an empty folder behind
            folder.rmdir()
    except OSError as error:
        raise ArtifactError(f"{folder}: cannot be written to ({error.strerror})") from None
