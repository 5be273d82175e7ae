"""The command ``fathomer train``."""

import shlex
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NoReturn

import typer

from fathomer.cli.options import (
    Data,
    DataDir,
    Device,
    Encoding,
    Fold,
    Folds,
    HeldOut,
    Json,
    LabelColumn,
    MultiLabel,
    Settings,
    Test,
    TextColumn,
    Vectors,
)
from fathomer.cli.output import messages_console, print_json, print_line, print_scores
from fathomer.errors import ConfigError, did_you_mean, require

if TYPE_CHECKING:
    from fathomer.artifact import Artifact
    from fathomer.config import Recipe
    from fathomer.data.examples import Examples
    from fathomer.data.opening import Dataset
    from fathomer.train.fit import Fitted, Watch


Out = Annotated[Path, typer.Option(metavar="DIR", help="Folder for the model.")]
Model = Annotated[str | None, typer.Option(metavar="NAME", help="Same as --set model.name=NAME.")]
MatchParameters = Annotated[
    bool, typer.Option("--match-parameters", help="Make the model as large as fathomer's.")
]
RecipeName = Annotated[
    str | None, typer.Option(metavar="R.toml", help="Settings: a file or a shipped name.")
]
Seed = Annotated[int | None, typer.Option(help="Same as --set train.seed=N.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue a stopped training.")]
Calibrate = Annotated[
    bool | None, typer.Option(help="Fit the probabilities to the held-out part (as set).")
]
Track = Annotated[
    str | None, typer.Option(metavar="tensorboard", help="Write a log of the epochs there.")
]
Baseline = Annotated[bool, typer.Option("--baseline", help="Train TF-IDF too, to compare with.")]


def train(
    context: typer.Context,
    data: Data,
    out: Out,
    model: Model = None,
    match_parameters: MatchParameters = False,
    recipe: RecipeName = None,
    set_: Settings = None,
    seed: Seed = None,
    resume: Resume = False,
    multi_label: MultiLabel = False,
    calibrate: Calibrate = None,
    track: Track = None,
    vectors: Vectors = None,
    held_out: HeldOut = None,
    test: Test = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    device: Device = "cpu",
    baseline: Baseline = False,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Train a classifier.

    Example: fathomer train reviews.csv --out model --recipe small --set train.epochs=5
    """
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.train.fit import CHECKPOINT, check_folder, fit

    settings = _recipe(data, recipe, set_ or [], seed, model, calibrate)
    check_folder(out, resume=resume)
    watch = _watch(track, out, settings.train.epochs)
    vectors_file = find_vectors(vectors, data_dir) if vectors else None
    several = multi_label or settings.model.multi_label
    options = ReadOptions(text_column, label_column, encoding, several)
    read = partial(open_dataset, options=options, data_dir=data_dir)
    parts = _parts(read(data, fold=fold, folds=folds), held_out, test, read)
    _check_scoring(parts, settings, baseline)
    _announce(parts.source, out, resume=resume)
    try:
        fitted = fit(
            parts.source.train, settings, held_out=parts.held_out, vectors=vectors_file,
            match_parameters=match_parameters, folder=out, resume=resume, device=device,
            watch=watch,
        )  # fmt: skip
    except KeyboardInterrupt:  # before the first epoch, or after the last
        if not (out / CHECKPOINT).exists():
            raise
        _stop(out)
    program = context.find_root().info_name or "fathomer"
    command = shlex.join([*program.split(), *sys.argv[1:]])
    artifact = _keep(fitted, parts, out, command=command, baseline=baseline)
    _tell(artifact, out, matched=match_parameters, as_json=as_json)
    if fitted.interrupted:
        _stop(out)


def _watch(tracker: str | None, out: Path, epochs: int) -> "Watch":
    """Choose who follows the training: a person, and on request a log of the epochs."""
    from fathomer.progress import watch

    followed, messages = _tracker(tracker, out), messages_console()
    return lambda events: followed(watch(events, messages, epochs=epochs))


def _tracker(name: str | None, out: Path) -> "Watch":
    """Choose who writes a log of the epochs; by default nobody does."""
    from fathomer.train.tracking import TRACKERS, track

    if name is None:
        return iter
    if name not in TRACKERS:
        raise ConfigError(f"--track {name}: {did_you_mean(name, TRACKERS)}")
    require("tensorboard", "track")
    return lambda events: track(events, out / name)


class Parts(NamedTuple):
    """Hold the texts to learn from, to choose the best epoch by, and to score the result on."""

    source: "Dataset"
    held_out: "Examples | None"
    test: "Examples | None"


def _parts(
    source: "Dataset", held_out: str | None, test: str | None, read: Callable[[str], "Dataset"]
) -> Parts:
    """Read what is held out and scored on, where it does not come with the source."""
    return Parts(
        source,
        held_out=read(held_out).train if held_out else None,
        test=read(test).evaluation_set if test else source.test,
    )


def _check_scoring(parts: Parts, recipe: "Recipe", baseline: bool) -> None:
    """Find out before training what could not be scored after it."""
    from fathomer.data.labelled import check_labels

    if parts.test:
        check_labels(parts.test, parts.source.train.label_counts)
    if baseline and not (parts.test or parts.held_out):
        most = max(Counter(parts.source.train.strata).values(), default=0)
        if not recipe.train.held_out or most == 1:  # a label's only text is not held out
            raise ConfigError("--baseline needs texts to be scored on: give --test or --held-out")


def _announce(source: "Dataset", out: Path, *, resume: bool) -> None:
    """Say what is read, and what will be written over."""
    from fathomer.artifact import CONFIG

    messages = messages_console()
    if (out / CONFIG).exists() and not resume:
        messages.print(f"{out}: the model there will be replaced")
    for line in (f"{source.name}: {source.train.summary()}", *source.notes):
        messages.print(line)


def _keep(fitted: "Fitted", parts: Parts, out: Path, *, command: str, baseline: bool) -> "Artifact":
    """Save the model, score it, and save the scores beside it."""
    from fathomer.train.fit import CHECKPOINT

    metrics = {**fitted.artifact.metrics, **parts.source.describe(), "command": command}
    artifact = replace(fitted.artifact, metrics=metrics)
    artifact.save(out)  # whatever comes next, the model is there
    try:
        metrics |= _scores(artifact, parts, baseline)
        artifact.save(out)
    except KeyboardInterrupt:
        _stop(out)
    if not fitted.interrupted:
        (out / CHECKPOINT).unlink(missing_ok=True)
    return artifact


def _scores(artifact: "Artifact", parts: Parts, baseline: bool) -> dict[str, Any]:
    """Score the model on the test texts, and on request a baseline beside it."""
    from fathomer.predictor import Predictor

    scores: dict[str, Any] = {}
    if parts.test:
        scores["test"] = Predictor(artifact).evaluate(parts.test).to_dict()
    if baseline:
        scores["baseline"] = _baseline(parts, artifact.recipe)
    return scores


def _recipe(
    data: str,
    name: str | None,
    assignments: list[str],
    seed: int | None = None,
    model: str | None = None,
    calibrate: bool | None = None,
) -> "Recipe":
    """Collect the settings: a recipe, by default the corpus's own, then what was set."""
    from fathomer.model.registry import find_model
    from fathomer.recipes import starting_recipe

    recipe = starting_recipe(data, name).with_settings(assignments)
    if model is not None:
        recipe = recipe.updated({"model": {"name": model}})
    find_model(recipe.model.name)
    given = {"seed": seed, "calibrate": calibrate}
    return recipe.updated({"train": {k: v for k, v in given.items() if v is not None}})


def _baseline(parts: Parts, recipe: "Recipe") -> dict[str, Any]:
    """Score TF-IDF on the test texts, else on the very texts that training held out."""
    from fathomer.predictor import Predictor
    from fathomer.train.fit import fit

    recipe = recipe.updated({"model": {"name": "tfidf"}})
    artifact = fit(parts.source.train, recipe, held_out=parts.held_out).artifact
    scores = artifact.metrics["held_out"]
    if parts.test:
        scores = Predictor(artifact).evaluate(parts.test).to_dict()
    return {"name": "TF-IDF with logistic regression", **scores}


def _tell(artifact: "Artifact", out: Path, *, matched: bool, as_json: bool) -> None:
    """Say what came out."""
    metrics, messages = artifact.metrics, messages_console()
    if matched:
        size = artifact.recipe.model.hidden_size
        messages.print(f"hidden size {size}: {metrics['parameters']:,} trainable parameters")
    if metrics.get("calibration", True) is None:
        messages.print("not calibrated: the held-out texts have only one label")
    if as_json:
        print_json({"out": str(out), "labels": list(artifact.labels), **metrics})
    else:
        _print_training(metrics, out)


def _stop(out: Path) -> NoReturn:
    """Say what Ctrl-C has left, and how it can go on."""
    from fathomer.train.fit import CHECKPOINT

    kept = "the best epoch so far; the same command with --resume continues"
    if not (out / CHECKPOINT).exists():  # of a model that learns at once
        kept = "the model; fathomer evaluate scores it"
    messages_console().print(f"Stopped: {out} holds {kept}.")
    raise typer.Exit(130)


def _print_training(metrics: dict[str, Any], out: Path) -> None:
    rows = {
        name.replace("_", " "): metrics[name] for name in ("held_out", "test") if metrics.get(name)
    }
    if "baseline" in metrics:
        where = "test" if "test" in rows else "held out"
        rows[f"{where}, {metrics['baseline']['name']}"] = metrics["baseline"]
    print_scores(rows)
    if found := metrics.get("calibration"):
        few = f"; only {found['examples']} texts: a rough guess" if found["examples"] < 50 else ""
        print_line(
            f"held out, calibrated: error {found['error_before']:.3f} -> "
            f"{found['error_after']:.3f} (temperature {found['temperature']:.2f}{few})"
        )
    print_line(f"best epoch {metrics['best_epoch']} of {metrics['epochs']}; the model is in {out}")
