"""Training of one planned run, continued from its last epoch if it was interrupted."""

import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from experiments.clock import StoredClock
from experiments.job import Job, Log
from experiments.measure import measure
from experiments.partial import open_corpus_or_part
from experiments.plan import Plan
from experiments.runs import Run
from fathomer.data.opening import Dataset
from fathomer.errors import ArtifactError, ConfigError
from fathomer.train.checkpoint import EpochDone
from fathomer.train.fit import Fitted, fit
from fathomer.train.folder import CHECKPOINT
from fathomer.train.loop import Event

CLOCK = "clock.json"


def execute(job: Job, log: Log) -> Run | None:
    """Train and test as planned; return None if Ctrl-C stopped the training."""
    plan, clock = job.plan, StoredClock(job.folder / CLOCK)
    job.folder.mkdir(parents=True, exist_ok=True)
    commit = _commit()  # at the start: the sources may change while the run lasts
    source = open_corpus_or_part(
        plan.corpus, data_dir=job.data_dir, fold=plan.fold, folds=plan.folds
    )
    if source.test is None:
        raise ConfigError(f"{plan.corpus} has no test set; give folds for a cross validation")
    fitted = _train(job, source, clock, log)
    if fitted.interrupted:
        return None
    if job.keep:
        metrics = {**fitted.artifact.metrics, **source.describe(), "command": job.command}
        replace(fitted.artifact, metrics=metrics).save(job.keep / plan.name)
    return measure(job, source, fitted.artifact, clock, commit=commit)


def _train(job: Job, source: Dataset, clock: StoredClock, log: Log) -> Fitted:
    """Train from the last checkpoint if there is one, else from the start."""

    def train(*, resume: bool) -> Fitted:
        return fit(
            source.train,
            job.plan.recipe,
            vectors=job.vectors,
            match_parameters=job.plan.match_parameters,
            folder=job.folder,
            resume=resume,
            watch=lambda events: _log_epochs(clock.watch(events), log, job.plan),
        )

    checkpoint = job.folder / CHECKPOINT
    if checkpoint.exists():
        try:
            return train(resume=True)
        except (ArtifactError, ConfigError) as error:  # other data, or an older Fathomer
            log(f"{job.plan.name}: starts again ({error})")
            checkpoint.unlink()
            clock.restart()
    return train(resume=False)


def _log_epochs(events: Iterable[Event], log: Log, plan: Plan) -> Iterator[Event]:
    """Pass training events through and log one line per epoch."""
    for event in events:
        if isinstance(event, EpochDone):
            accuracy = event.held_out["accuracy"] if event.held_out else None
            held_out = "" if accuracy is None else f"  held out {accuracy:.4f}"
            log(
                f"{plan.name}: epoch {event.epoch}/{plan.recipe.train.epochs}  "
                f"loss {event.loss:.4f}  accuracy {event.accuracy:.4f}{held_out}"
            )
        yield event


def _commit() -> str | None:
    """Return the commit of the sources, marked if there are uncommitted changes."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()
