"""Hyperparameter search within a time budget and a limit on the model size.

Every trial trains a model as ``fathomer train`` would and is scored on the held-out part only. It
starts with a part of the texts, and gets more of them if it is among the best so far (successive
halving). Pruned trials do not count. The first trial uses the given settings and is never pruned;
another is preferred only if it is better by more than one standard error. Trials are stored in a
journal, so a search can be continued.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.examples import Examples, split_stratified
from fathomer.errors import ConfigError, DataError, TrainingError, require
from fathomer.model.interface import DirectNetwork
from fathomer.model.registry import MODELS
from fathomer.search_space import fitting_sizes, megabytes, nearest_settings, suggest
from fathomer.text.sources import checksum_of
from fathomer.train.checkpoint import EpochDone
from fathomer.train.fit import Fitted, fit
from fathomer.train.loop import Event
from fathomer.train.prepare import prepare

if TYPE_CHECKING:
    import optuna

SHARE_OF_FIRST = 0.15
"""Share of the time that the first trial may take; texts and epochs are reduced to fit."""
PATIENCE = 2.0
"""How many times as long as in the first trial a round may take; at least as many seconds."""
SHARE_OF_OTHERS = 0.16
"""Share of the time that a round of any other trial may take, so that at least five are tried."""
REDUCTION = 3
"""Every round of a trial has this many times the texts of the round before."""
FEW_TEXTS = 100  # in the smallest round
FEW_EPOCHS = 3


class Trial(NamedTuple):
    """One trial: its settings by name, and the scores of its model on the held-out part."""

    number: int
    settings: dict[str, Any]
    micro_f1: float
    """The objective; with one label per text it equals the accuracy."""
    accuracy: float
    loss: float
    mean_depth: float
    megabytes: float
    seconds: float


class SearchResult(NamedTuple):
    """The result of a search; the trials are sorted, best first."""

    trials: list[Trial]
    """Those that were not pruned."""
    interrupted: bool
    tried: int = 0
    """Settings that were tried, including pruned ones."""
    share: float = 1.0
    """Share of the training texts that the best trials were trained on."""
    epochs: int = 1
    """Epochs of each trial."""
    held_out: int = 1
    """Texts that the trials were scored on."""

    @property
    def best(self) -> Trial:
        """The first trial, unless another is better by more than one standard error."""
        first, leader = min(self.trials, key=lambda trial: trial.number), self.trials[0]
        mean = (first.micro_f1 + leader.micro_f1) / 2
        error = math.sqrt(mean * (1 - mean) / self.held_out)
        return leader if leader.micro_f1 - first.micro_f1 > error else first


class _OutOfTime(Exception):
    """The time budget ended before the first epoch of a trial."""


def tune(
    examples: Examples,
    recipe: Recipe,
    *,
    minutes: float,
    journal: Path,
    max_mb: float | None = None,
    vectors: Path | None = None,
    report: Callable[[Trial], None] | None = None,
) -> SearchResult:
    """Search until the time is up; trials already in the journal count as well."""
    check_search(recipe, minutes)
    prepared = prepare(examples, recipe, vectors=vectors)  # for the sizes derived from the data
    if not prepared.held_out:
        raise DataError("tuning needs a held-out part, but every label has only one text")
    sizes = fitting_sizes(prepared.recipe, max_mb)
    study = open_study(journal, fingerprint(examples, recipe, vectors), seed=recipe.train.seed)
    if not _best_first(study, max_mb):
        study.enqueue_trial(nearest_settings(recipe, sizes))
    texts, held_out = split_stratified(
        examples, fraction=recipe.train.held_out, seed=recipe.train.seed
    )
    deadline = time.monotonic() + 60 * minutes
    shares, epochs = study.user_attrs.get("rounds") or rounds(texts, recipe, minutes)
    study.set_user_attr("rounds", (shares, epochs))
    parts = [split_stratified(texts, fraction=1 - share, seed=0)[0] for share in shares]
    short = recipe.updated({"train": {"epochs": epochs}})

    def train(part: Examples, settings: Recipe, seconds: float) -> Fitted:
        watch = partial(_until, min(deadline, time.monotonic() + seconds))
        return fit(part, settings, held_out=held_out, vectors=vectors, watch=watch)

    interrupted = False
    try:
        while time.monotonic() < deadline and not interrupted:
            trial = study.ask()
            settings = short.with_values(suggest(trial, sizes))
            longest = SHARE_OF_OTHERS * 60 * minutes
            interrupted = _run_trial(study, trial, settings, parts, train, deadline, longest)
            if report and _is_complete(study.trials[trial.number]):
                report(_trial(study.trials[trial.number]))
    except _OutOfTime:
        pass
    except KeyboardInterrupt:
        interrupted = True
    tried = sum(trial.state.is_finished() for trial in study.trials)
    trials = _best_first(study, max_mb)
    return SearchResult(trials, interrupted, tried, shares[-1], epochs, len(held_out))


def rounds(texts: Examples, recipe: Recipe, minutes: float) -> tuple[list[float], int]:
    """Return the shares of the texts in the rounds of a trial, and the epochs of each.

    If time is short, both are reduced by about the same factor, so that the first trial is in time.
    """
    epochs = recipe.train.epochs
    if len(texts) < REDUCTION * FEW_TEXTS:
        return [1.0], epochs
    all_rounds = REDUCTION / (REDUCTION - 1) * measure_seconds(texts, recipe)
    affordable = min(1.0, SHARE_OF_FIRST * 60 * minutes / all_rounds)
    fewer = min(epochs, max(FEW_EPOCHS, round(epochs * math.sqrt(affordable))))
    shares = [min(1.0, max(affordable * epochs / fewer, FEW_TEXTS / len(texts)))]
    while shares[0] / REDUCTION * len(texts) >= FEW_TEXTS:
        shares.insert(0, shares[0] / REDUCTION)
    return shares, fewer


def measure_seconds(texts: Examples, recipe: Recipe) -> float:
    """Estimate the seconds of a training run from one epoch on few texts."""
    share = REDUCTION * FEW_TEXTS / len(texts)
    few = split_stratified(texts, fraction=1 - share, seed=0)[0]
    started = time.monotonic()
    with suppress(TrainingError):  # settings that diverge take as long
        fit(few, recipe.updated({"train": {"epochs": 1}}))
    return (time.monotonic() - started) * recipe.train.epochs * len(texts) / len(few)


def _run_trial(
    study: "optuna.Study",
    trial: "optuna.Trial",
    recipe: Recipe,
    parts: list[Examples],
    train: Callable[[Examples, Recipe, float], Fitted],
    deadline: float,
    longest: float,
) -> bool:
    """Train and score one model, on more and more texts; return whether Ctrl-C stopped it early."""
    states = require("optuna", "tune").trial.TrialState
    first_seconds = study.user_attrs.get("seconds")  # those of the first trial, by round
    limits = [math.inf] * len(parts)
    if first_seconds:
        limits = [max(1.0, min(longest, PATIENCE * max(1.0, each))) for each in first_seconds]
    started, seconds = time.monotonic(), list[float]()
    for number, (part, limit) in enumerate(zip(parts, limits, strict=True)):
        try:
            fitted = train(part, recipe, limit)
        except TrainingError:  # these settings diverge; others may not
            study.tell(trial, state=states.FAIL)
            return False
        except _OutOfTime:
            if time.monotonic() >= deadline:
                raise
            study.tell(trial, state=states.PRUNED)  # far slower than the first
            return False
        seconds.append(time.monotonic() - started - sum(seconds))
        trial.report(fitted.artifact.metrics["held_out"]["micro_f1"], REDUCTION**number)
        last, out_of_time = part is parts[-1], time.monotonic() >= deadline
        behind = trial.should_prune()  # also notes the score, with which later trials are compared
        if not last and first_seconds and (out_of_time or behind):
            study.tell(trial, state=states.PRUNED)
            return fitted.interrupted
        if last or out_of_time or fitted.interrupted:
            break
    _record(study, trial, fitted.artifact, sum(seconds))
    if not first_seconds and last:
        study.set_user_attr("seconds", seconds)
    return fitted.interrupted


def _record(
    study: "optuna.Study", trial: "optuna.Trial", artifact: Artifact, seconds: float
) -> None:
    """Write the scores of a trial to the journal."""
    found = artifact.metrics["held_out"]
    for name in ("accuracy", "loss", "mean_depth"):
        trial.set_user_attr(name, found[name])
    trial.set_user_attr("megabytes", megabytes(artifact.recipe))
    trial.set_user_attr("seconds", seconds)
    study.tell(trial, found["micro_f1"])


def check_search(recipe: Recipe, minutes: float) -> None:
    """Raise an error if a search cannot work: bad options, or optuna is not installed."""
    if not minutes > 0:
        raise ConfigError(f"--minutes must be greater than 0, not {minutes:g}")
    if not recipe.train.held_out:
        raise ConfigError("tuning needs a held-out part; set train.held_out above 0")
    if issubclass(MODELS[recipe.model.name].network, DirectNetwork):
        raise ConfigError(f"the model {recipe.model.name} has no settings to tune")
    require("optuna", "tune")


def open_study(journal: Path, expected: str, *, seed: int) -> "optuna.Study":
    """Open or create the journal; refuse one made with other data or another recipe."""
    optuna = require("optuna", "tune")
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    backend = optuna.storages.journal.JournalFileBackend(str(journal))
    try:
        study = optuna.create_study(
            storage=optuna.storages.JournalStorage(backend),
            study_name="fathomer",
            direction="maximize",
            load_if_exists=True,
            pruner=optuna.pruners.SuccessiveHalvingPruner(
                min_resource=1, reduction_factor=REDUCTION
            ),
        )
    except (ValueError, KeyError, TypeError):
        raise ConfigError(f"{journal}: not a journal of trials; delete it to start again") from None
    if study.user_attrs.setdefault("data", expected) != expected:
        raise ConfigError(
            f"{journal}: holds trials of other data or another recipe; delete it to start again"
        )
    study.set_user_attr("data", expected)
    study.sampler = optuna.samplers.TPESampler(seed=seed % 2**32 + len(study.trials))
    return study  # type: ignore[no-any-return]


def fingerprint(examples: Examples, recipe: Recipe, vectors: Path | None) -> str:
    """Return a checksum of everything that the trials of a search share."""
    shared = [recipe.to_dict(), examples.multi_label, checksum_of(vectors) if vectors else None]
    digest = hashlib.sha256(json.dumps(shared).encode())
    examples.update_digest(digest)
    return digest.hexdigest()[:16]


def _until(deadline: float, events: Iterable[Event]) -> Iterator[Event]:
    """Pass events through until the deadline; the best epoch finished by then counts."""
    done = False
    for event in events:
        yield event
        done = done or isinstance(event, EpochDone)
        if time.monotonic() >= deadline:
            if not done:
                raise _OutOfTime
            return


def _best_first(study: "optuna.Study", max_mb: float | None) -> list[Trial]:
    """Return the finished trials; those of an earlier search may exceed the size limit."""
    done = [_trial(trial) for trial in study.trials if _is_complete(trial)]
    fitting = [trial for trial in done if max_mb is None or trial.megabytes <= max_mb]
    return sorted(fitting, key=lambda trial: (-trial.micro_f1, trial.loss))


def _is_complete(trial: "optuna.trial.FrozenTrial") -> bool:
    return trial.state.name == "COMPLETE"


def _trial(frozen: "optuna.trial.FrozenTrial") -> Trial:
    return Trial(frozen.number, frozen.params, float(frozen.values[0]), **frozen.user_attrs)
