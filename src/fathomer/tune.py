"""A search for good settings within a time budget and a size cap, by the held-out part alone.

Every trial trains a model as ``fathomer train`` would. Trials are kept in a file, so that a search
can be continued; the first one takes the settings as they are given.
"""

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.examples import Examples
from fathomer.errors import ConfigError, DataError, TrainingError, require
from fathomer.files import sha256_of
from fathomer.model.interface import DirectNetwork
from fathomer.model.registry import MODELS, build_model
from fathomer.train.checkpoint import EpochDone
from fathomer.train.fit import fit
from fathomer.train.loop import Event
from fathomer.train.prepare import prepare

if TYPE_CHECKING:
    import optuna

SIZES = range(20, 401, 20)
"""Hidden sizes to choose from."""


class Trial(NamedTuple):
    """Hold one trial: its settings by name, and how good the model was on the held-out part."""

    number: int
    settings: dict[str, Any]
    micro_f1: float
    """What decides: with one label per text it is the accuracy."""
    accuracy: float
    loss: float
    mean_depth: float
    megabytes: float
    seconds: float


class Tuned(NamedTuple):
    """Hold the trials of a search, the best first, and whether it was stopped by Ctrl-C."""

    trials: list[Trial]
    interrupted: bool


class _OutOfTime(Exception):
    """Tell that the budget ended before the first epoch of a trial."""


def tune(
    examples: Examples,
    recipe: Recipe,
    *,
    minutes: float,
    journal: Path,
    max_mb: float | None = None,
    vectors: Path | None = None,
    report: Callable[[Trial], None] | None = None,
) -> Tuned:
    """Search until the time is over; trials that stand in the journal already count too."""
    check_search(recipe, minutes)
    prepared = prepare(examples, recipe, vectors=vectors)  # knows the sizes that the data decides
    if not prepared.held_out:
        raise DataError("tuning needs a held-out part; every label has a single text")
    sizes = fitting_sizes(prepared.recipe, max_mb)
    study = open_study(journal, fingerprint(examples, recipe, vectors), seed=recipe.train.seed)
    if not _best_first(study, max_mb):
        study.enqueue_trial(own_settings(recipe, sizes))
    deadline, interrupted = time.monotonic() + 60 * minutes, False
    try:
        while time.monotonic() < deadline and not interrupted:
            trial, started = study.ask(), time.monotonic()
            chosen = recipe.with_values(suggest(trial, sizes))
            try:
                fitted = fit(
                    examples, chosen, vectors=vectors, watch=lambda events: _until(deadline, events)
                )
            except TrainingError:  # these settings lead nowhere; others may
                study.tell(trial, state=require("optuna", "tune").trial.TrialState.FAIL)
                continue
            _keep(study, trial, fitted.artifact, time.monotonic() - started)
            interrupted = fitted.interrupted
            if report:
                report(_trial(study.trials[trial.number]))
    except _OutOfTime:
        pass
    except KeyboardInterrupt:
        interrupted = True
    return Tuned(_best_first(study, max_mb), interrupted)


def _keep(study: "optuna.Study", trial: "optuna.Trial", artifact: Artifact, seconds: float) -> None:
    """Write down in the journal how good a trial was."""
    found = artifact.metrics["held_out"]
    for name in ("accuracy", "loss", "mean_depth"):
        trial.set_user_attr(name, found[name])
    trial.set_user_attr("megabytes", megabytes(artifact.recipe))
    trial.set_user_attr("seconds", seconds)
    study.tell(trial, found["micro_f1"])


def check_search(recipe: Recipe, minutes: float) -> None:
    """Refuse a search that could find nothing, or that optuna is missing for."""
    if not minutes > 0:
        raise ConfigError(f"tuning takes time; give more than {minutes:g} minutes")
    if not recipe.train.held_out:
        raise ConfigError("tuning needs a held-out part; set train.held_out above 0")
    if issubclass(MODELS[recipe.model.name].network, DirectNetwork):
        raise ConfigError(f"the model {recipe.model.name} has none of the settings that are tuned")
    require("optuna", "tune")


def open_study(journal: Path, expected: str, *, seed: int) -> "optuna.Study":
    """Open the trials so far; those of other data or another recipe are not continued."""
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(str(journal))
    try:
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name="fathomer",
            direction="maximize",
            load_if_exists=True,
        )
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{journal}: holds no trials; delete it to begin again") from None
    if study.user_attrs.setdefault("data", expected) != expected:
        raise ConfigError(
            f"{journal}: holds trials with other data or another recipe; delete it to begin again"
        )
    study.set_user_attr("data", expected)
    study.sampler = optuna.samplers.TPESampler(seed=seed % 2**32 + len(study.trials))
    return study  # type: ignore[no-any-return]


def fingerprint(examples: Examples, recipe: Recipe, vectors: Path | None) -> str:
    """Sum up what all trials of a search must share."""
    shared = [recipe.to_dict(), examples.multi_label, sha256_of(vectors) if vectors else None]
    digest = hashlib.sha256(json.dumps(shared).encode())
    examples.update_digest(digest)
    return digest.hexdigest()[:16]


def suggest(trial: "optuna.Trial", sizes: range) -> dict[str, Any]:
    """Choose the settings of a trial."""
    return {
        "train.learning_rate": trial.suggest_float("train.learning_rate", 1e-4, 2e-2, log=True),
        "train.batch_words": trial.suggest_int("train.batch_words", 100, 5000, log=True),
        "model.hidden_size": trial.suggest_int(
            "model.hidden_size", sizes[0], sizes[-1], step=sizes.step
        ),
        "model.max_depth": trial.suggest_int("model.max_depth", 1, 9),
        "model.word_dropout": trial.suggest_float("model.word_dropout", 0.0, 0.6, step=0.05),
        "model.hidden_dropout": trial.suggest_float("model.hidden_dropout", 0.0, 0.6, step=0.05),
    }


def own_settings(recipe: Recipe, sizes: range) -> dict[str, Any]:
    """Give a recipe's own settings, moved to the nearest ones that are searched."""
    model, training = recipe.model, recipe.train
    return {
        "train.learning_rate": min(max(training.learning_rate, 1e-4), 2e-2),
        "train.batch_words": min(max(training.batch_words, 100), 5000),
        "model.hidden_size": min(sizes, key=lambda size: abs(size - model.hidden_size)),
        "model.max_depth": min(model.max_depth, 9),
        "model.word_dropout": min(round(model.word_dropout * 20) / 20, 0.6),
        "model.hidden_dropout": min(round(model.hidden_dropout * 20) / 20, 0.6),
    }


def fitting_sizes(recipe: Recipe, max_mb: float | None) -> range:
    """Find the hidden sizes whose models are small enough, before anything is trained."""
    sizes = [size for size in SIZES if max_mb is None or _megabytes_at(recipe, size) <= max_mb]
    if not sizes:
        raise ConfigError(
            f"no model fits in {max_mb:g} MB; with {recipe.model.vocab_size:,} known words the "
            f"smallest takes {_megabytes_at(recipe, SIZES[0]):.2g}: raise --max-mb, or lower "
            "text.max_vocabulary or model.word_size"
        )
    return SIZES[: len(sizes)]


def _megabytes_at(recipe: Recipe, hidden_size: int) -> float:
    return megabytes(recipe.updated({"model": {"hidden_size": hidden_size, "max_depth": 9}}))


def megabytes(recipe: Recipe) -> float:
    """Estimate the weights' file, without taking memory for it."""
    with torch.device("meta"):
        shape = recipe.model.vocab_size, recipe.text.max_chars
        network = build_model(recipe.model, spellings=torch.zeros(shape, dtype=torch.uint8))
    tensors: list[torch.Tensor] = list(network.state_dict().values())
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors) / 1e6


def _until(deadline: float, events: Iterable[Event]) -> Iterator[Event]:
    """Let events pass until the time is over; the best of the epochs that are done then counts."""
    done = False
    for event in events:
        yield event
        done = done or isinstance(event, EpochDone)
        if time.monotonic() >= deadline:
            if not done:
                raise _OutOfTime
            return


def _best_first(study: "optuna.Study", max_mb: float | None) -> list[Trial]:
    """List the trials that are done; an earlier search may have had another cap."""
    done = [_trial(trial) for trial in study.trials if trial.values]
    fitting = [trial for trial in done if max_mb is None or trial.megabytes <= max_mb]
    return sorted(fitting, key=lambda trial: (-trial.micro_f1, trial.loss))


def _trial(frozen: "optuna.trial.FrozenTrial") -> Trial:
    return Trial(frozen.number, frozen.params, float(frozen.values[0]), **frozen.user_attrs)
