"""The command ``fathomer tune``."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.options import (
    Data,
    DataDir,
    Encoding,
    Json,
    LabelColumn,
    MultiLabel,
    Settings,
    TextColumn,
    Vectors,
)
from fathomer.cli.output import messages_console, print_json, print_line, print_table
from fathomer.cli.settings import SettingChanges
from fathomer.config import Recipe
from fathomer.errors import ConfigError

if TYPE_CHECKING:
    from fathomer.tune import SearchResult, Trial

Out = Annotated[Path, typer.Option(metavar="R.toml", help="Recipe to write.")]
Minutes = Annotated[float, typer.Option(metavar="N", help="Time budget of the search.")]
MaxMb = Annotated[float | None, typer.Option(metavar="N", help="Largest model, in megabytes.")]
StartingRecipe = Annotated[
    str | None,
    typer.Option(metavar="R.toml", help="Recipe to start from: a file, or a shipped name."),
]


def tune(
    data: Data,
    out: Out = Path("tuned.toml"),
    minutes: Minutes = 10.0,
    max_mb: MaxMb = None,
    recipe: StartingRecipe = None,
    set_: Settings = None,
    multi_label: MultiLabel = False,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Search for good settings, and write them as a recipe.

    Running the same command again continues the search.

    Example: fathomer tune reviews.csv --minutes 10 --max-mb 5 --out tuned.toml
    """
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.files import check_writable
    from fathomer.recipes import chosen_recipe
    from fathomer.train.automatic import automatic_settings
    from fathomer.tune import check_search
    from fathomer.tune import tune as search

    changes, chosen = SettingChanges(set_ or []), chosen_recipe(data, recipe)
    settings = changes.applied(chosen or Recipe())  # mistakes are found before anything is read
    check_search(settings, minutes)
    check_writable(out)
    multi_label = multi_label or settings.model.multi_label
    options = ReadOptions(text_column, label_column, encoding, multi_label)
    source = open_dataset(data, options, data_dir=data_dir)
    if chosen is None:
        settings = automatic_settings(source.train, changes.applied)[0]
    objective = "micro F1" if source.train.multi_label else "accuracy"
    result = search(
        source.train,  # the test set is never used here
        settings,
        minutes=minutes,
        max_mb=max_mb,
        journal=out.with_name(f"{out.name}.trials"),
        vectors=find_vectors(vectors, data_dir) if vectors else None,
        report=lambda trial: _print_progress(trial, objective),
    )
    if not result.trials and not result.interrupted:
        raise ConfigError(f"no trial finished an epoch in {minutes:g} minutes; increase --minutes")
    if result.trials:
        _write_best(result, settings, out, objective=objective, as_json=as_json)
    if result.interrupted:
        kept = "the best settings so far are saved; the same command continues"
        nothing = "no trial was finished, so nothing was written"
        messages_console().print(f"Stopped: {kept if result.trials else nothing}.")
        raise typer.Exit(130)


def _print_progress(trial: "Trial", objective: str) -> None:
    messages_console().print(
        f"trial {trial.number + 1}: held-out {objective} {trial.micro_f1:.4f} "
        f"after {trial.seconds:.0f} s"
    )


def _write_best(
    result: "SearchResult", settings: Recipe, out: Path, *, objective: str, as_json: bool
) -> None:
    """Write the settings of the best trial as a recipe, and print all trials."""
    from fathomer.files import write_atomically

    trials, best = result.trials, result.best
    write_atomically(out, settings.with_values(best.settings).to_toml())
    if as_json:
        found = {"best": best.number, "trials": [trial._asdict() for trial in trials]}
        print_json({"out": str(out), **found, "tried": result.tried, "share": result.share})
    else:
        _print_trials(trials, objective)
        print_line(_learned(result, objective))
        print_line(f"{out}: the settings of trial {best.number + 1}")


def _learned(result: "SearchResult", objective: str) -> str:
    """Return a line about what the search has found out."""
    best, first = result.best, min(result.trials, key=lambda trial: trial.number)
    settings = "1 setting" if result.tried == 1 else f"{result.tried} settings"
    epochs = "1 epoch" if result.epochs == 1 else f"{result.epochs} epochs"
    tried = f"{settings} tried, {epochs} on up to {result.share:.0%} of the texts"
    if best.number == first.number:
        return f"{tried}: none is clearly better than those of trial {first.number + 1}"
    changes = [
        f"{name.partition('.')[2]} {_shown(first.settings[name])} -> {_shown(value)}"
        for name, value in best.settings.items()
        if value != first.settings[name]
    ]
    gain = 100 * (best.micro_f1 - first.micro_f1)
    return f"{tried}: {objective} {gain:+.1f} points with {', '.join(changes)}"


def _shown(value: float) -> str:
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _print_trials(trials: "list[Trial]", objective: str) -> None:
    """Print a table of the trials, best first, in at most 80 columns."""
    print_table(
        [
            *("trial", objective, "depth", "MB", "seconds"),
            *("rate", "batch", "hidden", "steps", "dropout"),
        ],
        [
            [
                str(trial.number + 1),
                f"{trial.micro_f1:.4f}",
                f"{trial.mean_depth:.2f}",
                f"{trial.megabytes:.1f}",
                f"{trial.seconds:.0f}",
                f"{trial.settings['train.learning_rate']:.2g}",
                f"{trial.settings['train.batch_words']}",
                f"{trial.settings['model.hidden_size']}",
                f"{trial.settings['model.max_depth']}",
                f"{trial.settings['model.word_dropout']:g}, "
                f"{trial.settings['model.hidden_dropout']:g}",
            ]
            for trial in trials
        ],
        right=0,
    )
