"""The training path: labelled texts in, a trained model out. Command line and estimator share it."""

import hashlib
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from fathomer.artifact import (
    CARD,
    CONFIG,
    HISTORY,
    METRICS,
    TOKENIZER,
    WEIGHTS,
    Artifact,
    json_lines,
    read_config,
    versions,
)
from fathomer.config import Recipe
from fathomer.data.examples import Examples
from fathomer.errors import ArtifactError, FathomerError
from fathomer.evaluate.calibrate import Calibration, calibrate
from fathomer.files import leftovers_of, write_atomically
from fathomer.model.interface import find_device, trainable_parameters
from fathomer.spool import pieces
from fathomer.train.checkpoint import TrainingState
from fathomer.train.events import EpochDone, Event, VectorsFound
from fathomer.train.loop import train
from fathomer.train.prepare import Prepared, Start, prepare
from fathomer.train.tracking import TRACKERS

CHECKPOINT = "checkpoint.safetensors"

Watch = Callable[[Iterable[Event]], Iterable[Event]]


class Fitted(NamedTuple):
    """Hold a trained model, and whether its training was stopped by Ctrl-C."""

    artifact: Artifact
    interrupted: bool


def fit(
    examples: Examples,
    recipe: Recipe,
    *,
    held_out: Examples | None = None,
    vectors: Path | None = None,
    start: Artifact | None = None,
    match_parameters: bool = False,
    folder: Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    watch: Watch = iter,
) -> Fitted:
    """Train a model, with checkpoints in ``folder``; ``watch`` sees the events pass by.

    With ``start``, training goes on from that model: with its weights, words and labels.
    Ctrl-C ends the training early and keeps the best epoch so far; before the first epoch is done
    there is nothing to keep, and it goes through.
    """
    started = time.perf_counter()
    known = (
        Start(start.tokenizer, start.labels, start.network, start.recipe.text.max_chars)
        if start
        else None
    )
    prepared = prepare(
        examples,
        recipe,
        held_out=held_out,
        vectors=vectors,
        match_parameters=match_parameters,
        start=known,
    )
    settings = _settings(prepared)
    prepared.network.to(find_device(device))
    checkpoint = folder / CHECKPOINT if folder else None
    if resume and checkpoint:
        state = TrainingState.resume(prepared.network, checkpoint, settings)
    else:
        state = TrainingState.start(prepared.network)
    state.began = started  # what was prepared counts, too
    found = (
        [VectorsFound(vectors.name, *prepared.coverage)] if vectors and prepared.coverage else []
    )
    events = chain(found, train(state, prepared, checkpoint=checkpoint, settings=settings))
    with _made(folder):
        interrupted = _follow(watch(events), state, folder)
    metrics = _metrics(state, settings)
    if found:
        metrics["vectors"] = found[0].to_dict()
    return Fitted(_artifact(prepared, metrics), interrupted)


@contextmanager
def _made(folder: Path | None) -> Iterator[None]:
    """Make the folder; if training ends before anything is in it, a new one goes away again."""
    new = folder is not None and not folder.exists()
    if folder:
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield
    finally:
        if folder and new and not any(folder.iterdir()):
            folder.rmdir()


def _follow(events: Iterable[Event], state: TrainingState, folder: Path | None) -> bool:
    """Train, and write down each epoch; say whether Ctrl-C has ended it early."""
    try:
        for event in events:
            if folder and isinstance(event, EpochDone):
                records = [epoch.to_dict() for epoch in state.history]
                write_atomically(folder / HISTORY, json_lines(records))
    except KeyboardInterrupt:
        if not state.best_epoch:
            raise
        interrupted = True
    else:
        interrupted = False
    state.restore_best()  # also when whoever watches has stopped listening
    return interrupted


def _artifact(prepared: Prepared, metrics: dict[str, Any]) -> Artifact:
    """Put together what is kept."""
    calibration = _calibrate(prepared, metrics)
    return Artifact(
        recipe=prepared.recipe,
        labels=prepared.labels,
        tokenizer=prepared.tokenizer,
        network=prepared.network,
        metrics=metrics,
        temperature=calibration.temperature if calibration else 1.0,
        thresholds=calibration.thresholds if calibration else None,
    )


def _calibrate(prepared: Prepared, metrics: dict[str, Any]) -> Calibration | None:
    """Fit what follows from the held-out part, and write down what that has changed."""
    if not (prepared.recipe.train.calibrate and prepared.held_out):
        return None
    data = prepared.held_out
    calibration = calibrate(
        prepared.network,
        data.texts,
        data.targets,
        prepared.labels,
        batch_words=prepared.recipe.train.batch_words,
    )
    metrics["calibration"] = calibration and calibration.to_dict()
    if calibration:
        metrics["held_out"] = calibration.after.to_dict()
    return calibration


def check_folder(folder: Path, *, resume: bool) -> None:
    """Refuse to write over somebody else's files, or over a training that can be continued."""
    if folder.exists() and not folder.is_dir():
        raise ArtifactError(f"{folder}: is a file; a model needs a folder")
    ours = (CHECKPOINT, CONFIG, TOKENIZER, WEIGHTS, METRICS, HISTORY, CARD)
    leftovers = [file for name in ours for file in leftovers_of(folder / name)]
    if folder.is_dir() and _holds_files(folder, leftovers) and not _is_ours(folder):
        raise ArtifactError(f"{folder}: holds other files; choose an empty or a new folder")
    if resume and (folder / CONFIG).exists() and not (folder / CHECKPOINT).exists():
        raise ArtifactError(f"{folder}: the training there is finished; there is nothing to resume")
    if not resume and (folder / CHECKPOINT).exists():
        raise ArtifactError(
            f"{folder}: holds a stopped training; continue it with --resume, delete "
            f"{folder / CHECKPOINT}, or choose another folder"
        )
    _check_writable(folder)
    for leftover in leftovers:
        leftover.unlink(missing_ok=True)


def _holds_files(folder: Path, leftovers: list[Path]) -> bool:
    """Say whether a folder holds more than what a training that was stopped early leaves."""
    return any(path.name not in TRACKERS and path not in leftovers for path in folder.iterdir())


def _is_ours(folder: Path) -> bool:
    """Say whether a folder holds a model or a training of ours; others have a config.json too."""
    if (folder / CHECKPOINT).exists():
        return True
    try:
        read_config(folder)
    except FathomerError:
        return False
    return True


def _check_writable(folder: Path) -> None:
    """Find out before training whether its result can be written."""
    new = not folder.exists()
    probe = folder / ".probe"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(probe, "")
        probe.unlink()
        if new:  # a mistake that is found later leaves no empty folder behind
            folder.rmdir()
    except OSError as error:
        raise ArtifactError(f"{folder}: cannot be written to ({error.strerror})") from None


def _settings(prepared: Prepared) -> dict[str, Any]:
    """Name everything that must be the same for a training to be the same."""
    sections = prepared.recipe.to_dict().items()
    flat = {f"{section}.{name}": v for section, values in sections for name, v in values.items()}
    return {**flat, "data": _fingerprint(prepared)}


def _fingerprint(prepared: Prepared) -> str:
    """Sum up the texts and labels, and the vectors where they are fixed."""
    digest = hashlib.sha256(prepared.tokenizer.to_json().encode())
    for part in _parts(prepared):
        digest.update(part)
    return digest.hexdigest()[:16]


def _parts(prepared: Prepared) -> Iterator[bytes]:
    yield "\0".join(prepared.labels).encode()
    for data in (prepared.train, prepared.held_out):
        if data is not None:
            texts = data.texts
            for array in (texts.ids, texts.starts, texts.unknown, data.targets, data.weights):
                if array is not None:
                    yield from (piece.tobytes() for piece in pieces(np.asarray(array)))
    vectors = prepared.network.word_vectors
    if prepared.recipe.model.fixed_words and vectors is not None:
        yield vectors.weight.numpy(force=True).tobytes()


def _metrics(state: TrainingState, settings: dict[str, Any]) -> dict[str, Any]:
    best = state.history[state.best_epoch - 1]
    return {
        "best_epoch": state.best_epoch,
        "epochs": len(state.history),
        "parameters": trainable_parameters(state.network),
        "held_out": best.held_out,
        "mean_depth_sampled": best.mean_depth,
        "rollbacks": state.rollbacks,
        "history": [epoch.to_dict() for epoch in state.history],
        "data": settings["data"],
        "seed": settings["train.seed"],
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "wall_seconds": round(state.seconds, 1),
    }
