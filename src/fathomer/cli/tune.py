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
from fathomer.errors import ConfigError

if TYPE_CHECKING:
    from fathomer.config import Recipe
    from fathomer.tune import Trial

Out = Annotated[Path, typer.Option(metavar="R.toml", help="Recipe to write.")]
Minutes = Annotated[float, typer.Option(metavar="N", help="Time for the search.")]
MaxMb = Annotated[float | None, typer.Option(metavar="N", help="Largest model, in megabytes.")]
Beginning = Annotated[str | None, typer.Option(metavar="R.toml", help="Settings to begin with.")]


def tune(
    data: Data,
    out: Out = Path("tuned.toml"),
    minutes: Minutes = 10.0,
    max_mb: MaxMb = None,
    recipe: Beginning = None,
    set_: Settings = None,
    multi_label: MultiLabel = False,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Search for good settings; the same command again continues the search.

    Example: fathomer tune reviews.csv --minutes 10 --max-mb 5 --out tuned.toml
    """
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.files import check_writable
    from fathomer.recipes import starting_recipe
    from fathomer.tune import check_search
    from fathomer.tune import tune as search

    settings = starting_recipe(data, recipe).with_settings(set_ or [])
    check_search(settings, minutes)
    check_writable(out)
    several = multi_label or settings.model.multi_label
    options = ReadOptions(text_column, label_column, encoding, several)
    source = open_dataset(data, options, data_dir=data_dir)
    aim = "micro F1" if source.train.multi_label else "accuracy"
    tuned = search(
        source.train,  # the test part is for the end, and not looked at
        settings,
        minutes=minutes,
        max_mb=max_mb,
        journal=out.with_name(f"{out.name}.trials"),
        vectors=find_vectors(vectors, data_dir) if vectors else None,
        report=lambda trial: _tell(trial, aim),
    )
    if not tuned.trials and not tuned.interrupted:
        raise ConfigError(f"no trial got through an epoch in {minutes:g} minutes; give more time")
    if tuned.trials:
        _keep(tuned.trials, settings, out, aim=aim, as_json=as_json)
    if tuned.interrupted:
        kept = "the best so far is kept; the same command continues"
        nothing = "no trial was done, and nothing is written"
        messages_console().print(f"Stopped: {kept if tuned.trials else nothing}.")
        raise typer.Exit(130)


def _tell(trial: "Trial", aim: str) -> None:
    messages_console().print(
        f"trial {trial.number + 1}: held-out {aim} {trial.micro_f1:.4f} after {trial.seconds:.0f} s"
    )


def _keep(trials: "list[Trial]", settings: "Recipe", out: Path, *, aim: str, as_json: bool) -> None:
    """Write the best trial's settings, and say which they are."""
    from fathomer.files import write_atomically

    best = trials[0]
    write_atomically(out, settings.with_values(best.settings).to_toml())
    if as_json:
        print_json({"out": str(out), "trials": [trial._asdict() for trial in trials]})
    else:
        _print(trials, aim)
        print_line(f"{out}: the settings of trial {best.number + 1}")


def _print(trials: "list[Trial]", aim: str) -> None:
    """Print the trials, the best first, and what decides by its name."""
    names = [name.partition(".")[2] for name in trials[0].settings]
    print_table(
        ["trial", aim, "depth", "MB", "seconds", *names],
        [
            [
                str(trial.number + 1),
                f"{trial.micro_f1:.4f}",
                f"{trial.mean_depth:.2f}",
                f"{trial.megabytes:.1f}",
                f"{trial.seconds:.0f}",
                *(
                    f"{value:.3g}" if isinstance(value, float) else str(value)
                    for value in trial.settings.values()
                ),
            ]
            for trial in trials
        ],
        right=0,
    )
