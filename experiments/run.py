"""Carry out one planned run: train, test, measure. A process of its own does it, with its threads.

``python -m experiments.run`` reads a job from its standard input. It ends with whoever started it:
when that input closes, nobody waits for the answer any more.
"""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine
from experiments.clock import Clock, timed
from experiments.partial import open_corpus_or_part
from experiments.plan import Plan
from experiments.runs import Run, pack_bits
from fathomer.artifact import Artifact, versions
from fathomer.data.examples import Examples
from fathomer.data.opening import Dataset, training_texts
from fathomer.errors import ArtifactError, ConfigError, FathomerError
from fathomer.evaluate.metrics import score
from fathomer.evaluate.report import score_unseen
from fathomer.files import sha256_of
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor
from fathomer.train.events import EpochDone, Event
from fathomer.train.fit import CHECKPOINT, Fitted, fit
from fathomer.train.prepare import LabelledTexts, encode_examples

CLOCK = "clock.json"
SAMPLE_WORDS = 100
"""Words that a sample text should have at least."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """Hold a planned run together with where its files are."""

    plan: Plan
    results: Path
    work: Path
    """Folder for what an interrupted run goes on from."""
    vectors: Path | None = None
    data_dir: Path | None = None
    keep: Path | None = None
    """Folder for the trained models, if they are wanted."""
    command: str = ""

    @property
    def folder(self) -> Path:
        """Name the folder of this run."""
        return self.work / self.plan.name

    def to_json(self) -> str:
        """Write the job on one line."""
        return json.dumps({**asdict(self), "plan": self.plan.to_dict()}, default=str)

    @classmethod
    def from_json(cls, line: str) -> "Job":
        """Read a job back."""
        values = json.loads(line)
        plan = values.pop("plan")
        plan["forced_depths"] = tuple(plan["forced_depths"])
        command = values.pop("command")
        paths = {name: Path(value) if value else None for name, value in values.items()}
        return cls(plan=Plan(**plan), command=command, **paths)  # type: ignore[arg-type]


def carry_out(job: Job, tell: Callable[[str], None]) -> Run | None:
    """Train and test as planned; nothing if Ctrl-C has stopped it."""
    folder = job.folder
    folder.mkdir(parents=True, exist_ok=True)
    clock, plan = Clock(folder / CLOCK), job.plan
    commit = _commit()  # now: the sources may be others when the run ends
    source = open_corpus_or_part(
        plan.corpus, data_dir=job.data_dir, fold=plan.fold, folds=plan.folds
    )
    if source.test is None:
        raise ConfigError(f"{plan.corpus} has no test part; name folds for a cross validation")
    fitted = _train(job, source, folder, clock, tell)
    if fitted.interrupted:
        return None
    if job.keep:
        metrics = {**fitted.artifact.metrics, **source.describe(), "command": job.command}
        replace(fitted.artifact, metrics=metrics).save(job.keep / plan.name)
    return _test(job, source, source.test, fitted.artifact, clock, commit)


def _train(
    job: Job, source: Dataset, folder: Path, clock: Clock, tell: Callable[[str], None]
) -> Fitted:
    """Train, from the last epoch if there is one."""

    def train(*, resume: bool) -> Fitted:
        return fit(
            source.train,
            job.plan.recipe,
            vectors=job.vectors,
            match_parameters=job.plan.match_parameters,
            folder=folder,
            resume=resume,
            watch=lambda events: _told(clock.watch(events), tell, job.plan),
        )

    checkpoint = folder / CHECKPOINT
    if checkpoint.exists():
        try:
            return train(resume=True)
        except (ArtifactError, ConfigError) as error:  # of other data, or of an older Fathomer
            tell(f"{job.plan.name}: starts again ({error})")
            checkpoint.unlink()
            clock.restart()
    return train(resume=False)


def _told(events: Iterable[Event], tell: Callable[[str], None], plan: Plan) -> Iterator[Event]:
    """Tell of each epoch in a line."""
    for event in events:
        if isinstance(event, EpochDone):
            found = event.held_out["accuracy"] if event.held_out else None
            held_out = "" if found is None else f"  held out {found:.4f}"
            tell(
                f"{plan.name}: epoch {event.epoch}/{plan.recipe.train.epochs}  "
                f"loss {event.loss:.4f}  accuracy {event.accuracy:.4f}{held_out}"
            )
        yield event


def _test(
    job: Job, source: Dataset, test: Examples, artifact: Artifact, clock: Clock, commit: str | None
) -> Run:
    """Score the model on the test texts, and put down all there is to know."""
    predictor, metrics, plan = Predictor(artifact), artifact.metrics, job.plan
    data = encode_examples(test, artifact.tokenizer, artifact.labels, artifact.recipe.text)
    answers, speed = timed(predictor, data)
    found = score(answers, data.targets, artifact.labels)
    right = answers.labels == data.targets
    unseen = score_unseen(right, test, training_texts(source, data_dir=job.data_dir) or ())
    held_out = metrics["held_out"]
    return Run(
        name=plan.name,
        corpus=plan.corpus,
        model=artifact.recipe.model.name,
        variant=plan.variant,
        seed=artifact.recipe.train.seed,
        fold=plan.fold,
        folds=plan.folds,
        settings=plan.settings,
        match_parameters=plan.match_parameters,
        vectors=plan.vectors,
        notes=source.notes,
        accuracy=found.accuracy,
        macro_f1=found.macro_f1,
        loss=found.loss,
        examples=found.examples,
        correct=pack_bits(right),
        accuracy_unseen=unseen.accuracy,
        examples_unseen=unseen.examples,
        held_out_accuracy=held_out["accuracy"] if held_out else None,
        mean_depth=found.mean_depth,
        mean_depth_sampled=metrics["mean_depth_sampled"],
        depths=_histogram(predictor, answers),
        forced=_forced(predictor, data, plan.forced_depths),
        samples=_samples(predictor, data, answers),
        parameters=metrics["parameters"],
        hidden_size=artifact.recipe.model.hidden_size,
        epochs=metrics["epochs"],
        best_epoch=metrics["best_epoch"],
        curve=tuple(map(_point, metrics["history"])),
        train_words_per_second=round(clock.words_per_second, 1),
        predict_words_per_second=round(speed, 1),
        words=len(data.texts.ids),
        command=job.command,
        commit=commit,
        versions=versions(),
        checksums=_checksums(source.train, test, job.vectors),
        wall_seconds=round(clock.wall, 1),
        machine=describe_machine(),
    )


def _histogram(predictor: Predictor, answers: Classified) -> tuple[int, ...]:
    if not predictor.knows_depth:
        return ()
    return tuple(np.bincount(answers.depths, minlength=predictor.max_depth + 1)[1:].tolist())


def _forced(
    predictor: Predictor, data: LabelledTexts, depths: Iterable[int]
) -> tuple[dict[str, float], ...]:
    """Measure what the model does when every word is read to the same depth."""
    rows = []
    for depth in depths:
        if predictor.knows_depth and depth <= predictor.max_depth:
            answers, speed = timed(predictor, data, np.full(len(data.texts.ids), depth))
            accuracy = float(np.mean(answers.labels == data.targets))
            rows.append({"depth": depth, "accuracy": accuracy, "words_per_second": round(speed, 1)})
    return tuple(rows)


def _samples(
    predictor: Predictor, data: LabelledTexts, answers: Classified
) -> tuple[dict[str, Any], ...]:
    """Choose the first long text of each of two labels, the last label first; keep its depths."""
    if not predictor.knows_depth:
        return ()
    samples = []
    for target in (len(predictor.labels) - 1, 0):
        texts = np.flatnonzero(data.targets == target)
        if not len(texts):
            continue
        lengths = data.texts.lengths[texts]
        enough = min(SAMPLE_WORDS, int(lengths.max()))
        number = int(texts[np.argmax(lengths >= enough)])
        part = slice(data.texts.starts[number], data.texts.starts[number + 1])
        depths = answers.depths[part].tolist()
        label = predictor.labels[target]
        samples.append({"number": number + 1, "label": label, "depths": depths})
    return tuple(samples)


def _point(epoch: dict[str, Any]) -> dict[str, float | None]:
    """Keep of an epoch what a curve shows."""
    held_out = epoch["held_out"] or {}
    return {
        "loss": round(epoch["loss"], 5),
        "accuracy": round(epoch["accuracy"], 5),
        "mean_depth": round(epoch["mean_depth"], 3),
        "held_out_accuracy": held_out.get("accuracy"),
        "held_out_mean_depth": held_out.get("mean_depth"),
    }


def _checksums(train: Examples, test: Examples, vectors: Path | None) -> dict[str, str]:
    """Sum up what was read: it is the same whatever files it came from."""
    sums = {"train": train.checksum(), "test": test.checksum()}
    return {**sums, "vectors": sha256_of(vectors)} if vectors else sums


def _commit() -> str | None:
    """Name the state of the sources, if they are a checkout."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(  # noqa: S603
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


@contextmanager
def _alone(job: Job) -> Iterator[None]:
    """Hold the work folder, so that another experiment does not train the same model in it."""
    try:
        import fcntl
    except ImportError:  # on Windows nobody guards the folder
        yield
        return
    job.folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(job.folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ConfigError(f"another process is at work in {job.folder}") from None
    finally:
        os.close(lock)


def _end_with_parent() -> None:
    sys.stdin.read()
    os._exit(130)


def _tell(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Carry out the job that standard input names; the work folder goes when its run is written."""
    import experiments.rivals  # noqa: F401 (registers the models)

    job = Job.from_json(sys.stdin.readline())
    threading.Thread(target=_end_with_parent, daemon=True).start()
    try:
        with _alone(job):
            run = carry_out(job, _tell)
            if run is None:
                return 130
            run.save(job.results)
            rmtree(job.folder)
    except FathomerError as error:
        _tell(f"{job.plan.name}: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    # Not sys.exit: the thread that waits for standard input must not hold the process up.
    code = main()
    sys.stderr.flush()
    os._exit(code)
