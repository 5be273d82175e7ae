"""The command ``fathomer train``."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

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
from fathomer.cli.output import messages_console
from fathomer.cli.runner import UsageError
from fathomer.cli.settings import Changes, automatic_settings, continued_recipe
from fathomer.cli.training_data import announce, has_baseline, read_splits, warn_of_forgetting
from fathomer.cli.training_result import exit_stopped, print_result, save_and_score
from fathomer.config import Recipe
from fathomer.errors import ConfigError, did_you_mean, require

if TYPE_CHECKING:
    from fathomer.train.fit import Watch

Out = Annotated[Path | None, typer.Option(metavar="DIR", help="Folder to save the model in.")]
Model = Annotated[str | None, typer.Option(metavar="NAME", help="Same as --set model.name=NAME.")]
MatchParameters = Annotated[
    bool,
    typer.Option("--match-parameters", help="Give the model as many parameters as fathomer."),
]
RecipeName = Annotated[
    str | None,
    typer.Option(metavar="R.toml", help="Recipe of settings: a file, a shipped name, or paper."),
]
Seed = Annotated[int | None, typer.Option(metavar="N", help="Same as --set train.seed=N.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted training.")]
Continue = Annotated[
    Path | None,
    typer.Option(
        "--continue",
        metavar="DIR",
        help="Train this model further on new texts; it is replaced, unless --out is given.",
    ),
]
Overwrite = Annotated[
    bool, typer.Option("--overwrite", help="Replace the model or stopped training in the folder.")
]
Epochs = Annotated[int | None, typer.Option(metavar="N", help="Passes over the training texts.")]
BatchSize = Annotated[int | None, typer.Option(metavar="N", help="Words per batch.")]
LearningRate = Annotated[
    float | None, typer.Option(metavar="R", help="Learning rate at the start.")
]
Calibrate = Annotated[
    bool | None, typer.Option(help="Same as --set train.calibrate=true or false.")
]
Track = Annotated[
    str | None, typer.Option(metavar="tensorboard", help="Also log the epochs for TensorBoard.")
]
Baseline = Annotated[
    bool,
    typer.Option("--baseline/--no-baseline", help="Also train TF-IDF, for comparison."),
]
Minutes = Annotated[
    float | None, typer.Option(metavar="N", help="Stop training after this many minutes.")
]


def train(
    context: typer.Context,
    data: Data,
    out: Out = None,
    model: Model = None,
    match_parameters: MatchParameters = False,
    recipe: RecipeName = None,
    set_: Settings = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    minutes: Minutes = None,
    seed: Seed = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    continue_: Continue = None,
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
    baseline: Baseline = True,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Train a classifier on labelled texts.

    Without --recipe, the settings follow from the size of the data. Some of the texts are held out
    to score every epoch and to calibrate the model, unless --held-out names a file. Ctrl-C saves the
    best epoch so far, or the last one if train.keep=last.

    Example: fathomer train reviews.csv --out model --test test.csv

    Example: fathomer train --continue model new.csv
    """
    from fathomer.artifact import Artifact
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.recipes import chosen_recipe
    from fathomer.train.fit import CHECKPOINT, check_folder, fit

    changes = Changes(
        set_ or [], minutes=minutes, seed=seed, model=model, calibrate=calibrate, epochs=epochs,
        batch_size=batch_size, learning_rate=learning_rate,
    )  # fmt: skip
    if out is None and continue_ is None:
        raise UsageError("Missing option '--out'.", ctx=context)  # type: ignore[call-arg]
    start = Artifact.load(continue_) if continue_ else None
    replaces = overwrite or out is None
    out = out or continue_
    assert out is not None
    chosen = continued_recipe(start) if start else chosen_recipe(data, recipe)
    given = changes.applied(chosen or Recipe())  # mistakes are found before anything is read
    check_folder(out, resume=resume, overwrite=replaces)
    log = _epoch_log(track, out)
    vectors_file = find_vectors(vectors, data_dir) if vectors else None
    multi_label = multi_label or given.model.multi_label
    options = ReadOptions(text_column, label_column, encoding, multi_label)
    read = partial(open_dataset, options=options, data_dir=data_dir)
    splits = read_splits(read(data, fold=fold, folds=folds), held_out, test, read)
    announce(splits.source, vectors_file)
    if start:
        warn_of_forgetting(start, splits.source.train)
    stopped = out / CHECKPOINT if resume else None
    settings = (
        given
        if chosen
        else automatic_settings(splits, changes, checkpoint=stopped, suggest=vectors_file is None)
    )
    baseline = baseline and start is None and has_baseline(splits, settings)
    watch = _watch(log, settings)
    try:
        fitted = fit(
            splits.source.train, settings, held_out=splits.held_out, vectors=vectors_file,
            start=start, match_parameters=match_parameters, folder=out, resume=resume,
            device=device, watch=watch,
        )  # fmt: skip
    except KeyboardInterrupt:  # before the first epoch or after the last
        if not (out / CHECKPOINT).exists():
            raise
        exit_stopped(out)
    program = context.find_root().info_name or "fathomer"
    command = shlex.join([*program.split(), *sys.argv[1:]])
    artifact = save_and_score(fitted, splits, out, command=command, baseline=baseline)
    print_result(artifact, out, matched=match_parameters, as_json=as_json)
    if fitted.interrupted:
        exit_stopped(out)


def _watch(log: "Watch", settings: Recipe) -> "Watch":
    """Return a function that shows the progress and logs the epochs."""
    from fathomer.train.automatic import is_direct
    from fathomer.train.progress import show_training

    if is_direct(settings.model.name):
        return log
    messages = messages_console()
    epochs, mark_best = settings.train.epochs, settings.train.keep == "best"
    return lambda events: log(show_training(events, messages, epochs=epochs, mark_best=mark_best))


def _epoch_log(tracker: str | None, out: Path) -> "Watch":
    """Return a function that logs the epochs, if a tracker is named."""
    from fathomer.train.tracking import TRACKERS, track

    if tracker is None:
        return iter
    if tracker not in TRACKERS:
        raise ConfigError(f"--track {tracker}: {did_you_mean(tracker, TRACKERS)}")
    require("tensorboard", "track")
    return lambda events: track(events, out / tracker)
