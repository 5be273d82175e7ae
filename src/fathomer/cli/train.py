"""The command ``fathomer train``."""

import shlex
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.extra_sources import ExtraSources, SoftLabelsFile, TeacherFolder, Unlabelled
from fathomer.cli.options import (
    Data,
    DataDir,
    Device,
    Encoding,
    Fold,
    Folds,
    HeldOut,
    JoinedVectors,
    Json,
    LabelColumn,
    MultiLabel,
    Settings,
    Test,
    TextColumn,
)
from fathomer.cli.output import messages_console
from fathomer.cli.runner import UsageError
from fathomer.cli.settings import SettingChanges, automatic_settings, continued_recipe
from fathomer.cli.training_data import announce, has_baseline, read_splits, warn_of_forgetting
from fathomer.cli.training_processes import train_along, with_saved
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
Exact = Annotated[
    bool,
    typer.Option("--exact", help="Refuse to --resume if the number of threads has changed."),
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
Processes = Annotated[
    int | None,
    typer.Option(
        metavar="N", min=1, max=512, help="Train on this many processes, as torchrun does."
    ),
]

TargetDepth = Annotated[
    float | None,
    typer.Option(metavar="X", help="Train to read at this average depth (model.depth=supervised)."),
]


def train(
    context: typer.Context,
    data: Data,
    out: Out = None,
    model: Model = None,
    match_parameters: MatchParameters = False,
    recipe: RecipeName = None,
    set_: Settings = None,
    target_depth: TargetDepth = None,
    epochs: Epochs = None,
    batch_size: BatchSize = None,
    learning_rate: LearningRate = None,
    minutes: Minutes = None,
    seed: Seed = None,
    resume: Resume = False,
    overwrite: Overwrite = False,
    exact: Exact = False,
    continue_: Continue = None,
    multi_label: MultiLabel = False,
    calibrate: Calibrate = None,
    track: Track = None,
    vectors: JoinedVectors = None,
    held_out: HeldOut = None,
    test: Test = None,
    fold: Fold = None,
    folds: Folds = None,
    unlabelled: Unlabelled = None,
    teacher: TeacherFolder = None,
    soft_labels: SoftLabelsFile = None,
    data_dir: DataDir = None,
    device: Device = "cpu",
    processes: Processes = None,
    baseline: Baseline = True,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Train a classifier on labelled texts.

    Without --recipe, the settings follow from the size of the data. Some of the texts are held out
    to score every epoch and to calibrate the model, unless --held-out names a file. Ctrl-C saves the
    last epoch, or the best one if train.keep=best.

    With --processes, or started by torchrun, several processes divide every batch among them.

    Example: fathomer train reviews.csv --out model --test test.csv

    Example: fathomer train --continue model new.csv
    """
    from fathomer.artifact import Artifact
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.locks import locked
    from fathomer.recipes import chosen_recipe
    from fathomer.train.fit import fit
    from fathomer.train.folder import CHECKPOINT, check_folder
    from fathomer.train.processes import ProcessLostError, join_processes
    from fathomer.train.progress import watch_training

    replaces = overwrite or out is None
    out = out or continue_
    if out is None:
        raise UsageError("Missing option '--out'.", ctx=context)  # type: ignore[call-arg]
    program = context.find_root().info_name or "fathomer"
    joining = join_processes(processes, device=device, module=program.split()[-1])
    group = context.with_resource(joining)
    if group.rank:
        train_along(group, out, device)
        return
    changes = SettingChanges(
        set_ or [], minutes=minutes, seed=seed, model=model, calibrate=calibrate, epochs=epochs,
        batch_size=batch_size, learning_rate=learning_rate, target_depth=target_depth,
    )  # fmt: skip
    if continue_ and (vectors or unlabelled):
        raise ConfigError(
            "--continue keeps the model's word vectors; remove --vectors and --unlabelled"
        )
    start = Artifact.load(continue_) if continue_ else None
    chosen = continued_recipe(start) if start else chosen_recipe(data, recipe)
    given = changes.applied(chosen or Recipe())  # mistakes are found before anything is read
    context.with_resource(locked(out))
    check_folder(out, resume=resume, overwrite=replaces)
    if resume:
        _compare_threads(out / CHECKPOINT, exact=exact)
    log = _epoch_log(track, out)
    sources = [find_vectors(name, data_dir) for name in vectors or ()]
    multi_label = multi_label or given.model.multi_label
    options = ReadOptions(text_column, label_column, encoding, multi_label)
    read = partial(open_dataset, options=options, data_dir=data_dir)
    more = ExtraSources(
        data, out, options, unlabelled=unlabelled, teacher=teacher, soft_labels=soft_labels,
        data_dir=data_dir,
    )  # fmt: skip
    splits = read_splits(read(data, fold=fold, folds=folds), held_out, test, read)
    announce(splits.source, sources)
    if start:
        warn_of_forgetting(start, splits.source.train)
    stopped = out / CHECKPOINT if resume else None
    settings = (
        given
        if chosen
        else automatic_settings(splits, changes, checkpoint=stopped, suggest=not sources)
    )
    baseline = baseline and start is None and has_baseline(splits, settings)
    show = watch_training(settings, messages_console())
    splits, trained = more.used(splits, settings)
    sources += trained
    try:
        fitted = fit(
            splits.source.train, settings, held_out=splits.held_out, vectors=sources, start=start,
            match_parameters=match_parameters, folder=out, resume=resume, device=device,
            processes=group, watch=lambda events: log(show(events)),
        )  # fmt: skip
    except ProcessLostError as error:
        raise with_saved(error, out) from None
    except KeyboardInterrupt:  # before the first epoch or after the last
        if not (out / CHECKPOINT).exists():
            raise
        exit_stopped(out)
    command = shlex.join([*program.split(), *sys.argv[1:]])
    fitted.artifact.metrics.update(more.recorded)
    artifact = save_and_score(fitted, splits, out, command=command, baseline=baseline)
    print_result(artifact, out, matched=match_parameters, as_json=as_json)
    if fitted.interrupted:
        exit_stopped(out)


def _compare_threads(checkpoint: Path, *, exact: bool) -> None:
    """Warn about another number of threads than before, or raise an error if ``exact``."""
    from fathomer.train.checkpoint import other_threads

    if message := other_threads(checkpoint):
        if exact:
            raise ConfigError(f"{message}; set OMP_NUM_THREADS, or leave --exact out")
        messages_console().print(message)


def _epoch_log(tracker: str | None, out: Path) -> "Watch":
    """Return a function that logs the epochs, if a tracker is named."""
    from fathomer.train.tracking import TRACKERS, track

    if tracker is None:
        return iter
    if tracker not in TRACKERS:
        raise ConfigError(f"--track {tracker}: {did_you_mean(tracker, TRACKERS)}")
    require("tensorboard", "track")
    return lambda events: track(events, out / tracker)
