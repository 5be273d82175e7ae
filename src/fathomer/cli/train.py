"""The command ``fathomer train``."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.options import Data, Encoding, Json, LabelColumn, TextColumn
from fathomer.cli.output import messages_console, print_json, print_line, print_scores
from fathomer.errors import ConfigError, did_you_mean

if TYPE_CHECKING:
    from fathomer.config import Recipe
    from fathomer.data.examples import Examples


def train(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the model.")],
    model: Annotated[str, typer.Option(metavar="NAME", help="Which model.")] = "fathomer",
    recipe: Annotated[
        str | None, typer.Option(metavar="R.toml", help="Settings: a file or a shipped name.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Same as --set train.seed=N.")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped training.")] = False,
    vectors: Annotated[
        Path | None, typer.Option(help="Word vectors: GloVe .txt, .txt.gz, .zip; word2vec .bin.")
    ] = None,
    held_out: Annotated[
        str | None, typer.Option(metavar="FILE", help="Texts to choose the best epoch by.")
    ] = None,
    test: Annotated[
        str | None, typer.Option(metavar="FILE", help="Texts to score the result on.")
    ] = None,
    baseline: Annotated[
        bool, typer.Option("--baseline", help="Train TF-IDF too, to compare with.")
    ] = False,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Train a classifier.

    Example: fathomer train reviews.csv --out model --set train.epochs=5
    """
    from fathomer.data.corpora import open_source
    from fathomer.fit import CHECKPOINT, check_folder, fit
    from fathomer.predictor import Predictor
    from fathomer.progress import watch

    if model != "fathomer":
        raise ConfigError(f"unknown model {model!r}; {did_you_mean(model, ['fathomer'])}")
    settings = _recipe(data, recipe, set_ or [], seed)
    check_folder(out, resume=resume)
    columns = {"text_column": text_column, "label_column": label_column, "encoding": encoding}
    source = open_source(data, **columns)
    chosen_by = open_source(held_out, **columns).train if held_out else None
    scored_on = open_source(test, **columns).train if test else source.test
    messages = messages_console()
    messages.print(f"{data}: {source.train.account()}", highlight=False)
    fitted = fit(
        source.train,
        settings,
        held_out=chosen_by,
        vectors=vectors,
        folder=out,
        resume=resume,
        watch=lambda events: watch(events, messages, epochs=settings.train.epochs),
    )
    metrics = {
        **fitted.artifact.metrics,
        "data_name": data,
        "command": " ".join(["fathomer", *sys.argv[1:]]),
    }
    if scored_on:
        metrics["test"] = Predictor(fitted.artifact).evaluate(scored_on).to_dict()
    if baseline:
        metrics["baseline"] = _baseline(source.train, scored_on or chosen_by, settings)
    replace(fitted.artifact, metrics=metrics).save(out)
    if fitted.interrupted:
        messages.print(f"Stopped: {out} holds the best epoch so far; --resume continues.")
    else:
        (out / CHECKPOINT).unlink(missing_ok=True)
    if as_json:
        print_json({"out": str(out), "labels": list(fitted.artifact.labels), **metrics})
    else:
        _print_training(metrics, out)
    if fitted.interrupted:
        raise typer.Exit(130)


def _recipe(data: str, name: str | None, assignments: list[str], seed: int | None) -> "Recipe":
    """Collect the settings: a recipe, by default the corpus's own, then what was set."""
    from fathomer.config import Recipe
    from fathomer.recipes import find_recipe, shipped_recipes

    recipe = Recipe()
    if name or data in shipped_recipes():
        recipe = find_recipe(name or data)
    recipe = recipe.with_settings(assignments)
    return recipe if seed is None else recipe.updated({"train": {"seed": seed}})


def _baseline(train: "Examples", other: "Examples | None", recipe: "Recipe") -> dict[str, Any]:
    """Score TF-IDF on the test texts, else on the very texts that training held out."""
    from fathomer.baselines.tfidf import TfidfBaseline
    from fathomer.data.examples import split_stratified

    if other is None:
        train, other = split_stratified(
            train, fraction=recipe.train.held_out, seed=recipe.train.seed
        )
    scores = TfidfBaseline(seed=recipe.train.seed).fit(train).evaluate(other)
    return {"name": "TF-IDF with logistic regression", **scores.to_dict()}


def _print_training(metrics: dict[str, Any], out: Path) -> None:
    rows = {
        name.replace("_", " "): metrics[name] for name in ("held_out", "test") if metrics.get(name)
    }
    if "baseline" in metrics:
        where = "test" if "test" in rows else "held out"
        rows[f"{where}, {metrics['baseline']['name']}"] = metrics["baseline"]
    print_scores(rows)
    print_line(f"best epoch {metrics['best_epoch']} of {metrics['epochs']}; the model is in {out}")
