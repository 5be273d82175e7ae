"""The command line: every command in one place, each a thin layer over the library.

Answers go to stdout, progress and messages to stderr; a user's mistake is one line and exit code 2.
Imports of the library stand inside the commands, so that ``--help`` answers at once.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TextIO

import typer

from fathomer import __version__
from fathomer.errors import ConfigError, FathomerError, MissingFileError, did_you_mean

if TYPE_CHECKING:
    from rich.console import Console

    from fathomer.config import Recipe
    from fathomer.data.examples import Examples

# The parent of all that a user can type wrong; newer versions of typer carry a click of their own.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]

app = typer.Typer(
    name="fathomer",
    help="Classify texts, and see how deep each word was read.",
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Corpus name, or a csv, tsv, jsonl or fastText file.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that training has written.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
TextColumn = Annotated[str, typer.Option(help="Column or key of the texts.")]
LabelColumn = Annotated[str, typer.Option(help="Column or key of the labels.")]
Encoding = Annotated[str, typer.Option(help="Encoding of the file.")]
MaxDepth = Annotated[
    int | None, typer.Option(metavar="N", help="Let no word take more steps than this.")
]


@app.callback(invoke_without_command=True)
def fathomer(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Classify texts, and see how deep each word was read."""
    if version:
        _print(f"fathomer {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        _print(context.get_help())


@app.command()
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
    messages = _messages()
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
    metrics = {**fitted.artifact.metrics, "data_name": data, "command": _command()}
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
        _print_json({"out": str(out), "labels": list(fitted.artifact.labels), **metrics})
    else:
        _print_training(metrics, out)
    if fitted.interrupted:
        raise typer.Exit(130)


@app.command()
def evaluate(
    folder: Folder,
    data: Data,
    max_depth: MaxDepth = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Score a model on labelled texts.

    Example: fathomer evaluate model test.csv
    """
    from fathomer.data.corpora import open_source
    from fathomer.predictor import load

    predictor = load(folder)
    source = open_source(
        data, text_column=text_column, label_column=label_column, encoding=encoding
    )
    metrics = predictor.evaluate(source.test or source.train, max_depth=max_depth).to_dict()
    if as_json:
        _print_json(metrics)
        return
    _print_scores({data: metrics})
    _print_labels(metrics["per_label"])


@app.command()
def predict(
    folder: Folder,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="One text per line.")] = "-",
    depths: Annotated[bool, typer.Option("--depths", help="Add the words and depths.")] = False,
    max_depth: MaxDepth = None,
    encoding: Encoding = "utf-8",
) -> None:
    """Answer each line of a file, or of standard input, with a line of JSON.

    Example: echo "a lovely film" | fathomer predict model --depths
    """
    from fathomer.predictor import load

    predictor = load(folder)
    with _open_lines(file, encoding) as stream:
        lines = (line.removesuffix("\n").removesuffix("\r") for line in stream)
        while chunk := list(islice(lines, 500)):
            for prediction in predictor.predict(chunk, max_depth=max_depth):
                _print_json(prediction.to_dict(words=depths))


@app.command()
def explain(
    folder: Folder,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The text to classify.")],
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a self-contained page.")
    ] = None,
    max_depth: MaxDepth = None,
    as_json: Json = False,
) -> None:
    """Show how deep each word of a text was read.

    Example: fathomer explain model "not bad at all" --html depths.html
    """
    from rich.console import Console

    from fathomer.explain import draw, page
    from fathomer.files import write_atomically
    from fathomer.predictor import load

    predictor = load(folder)
    [prediction] = predictor.predict([text], max_depth=max_depth)
    if html:
        write_atomically(html, page(prediction, max_depth=predictor.max_depth))
    if as_json:
        _print_json(prediction.to_dict(words=True))
        return
    console = Console(highlight=False, soft_wrap=True)
    width = console.width if console.is_terminal else 100
    console.print(draw(prediction, max_depth=predictor.max_depth, width=width))


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


@contextmanager
def _open_lines(file: str, encoding: str) -> Iterator[TextIO]:
    if file == "-":
        sys.stdin.reconfigure(encoding=encoding, errors="replace")  # type: ignore[union-attr]
        yield sys.stdin
        return
    if not Path(file).is_file():
        raise MissingFileError(f"{file}: no such file")
    with Path(file).open(encoding=encoding, errors="replace", newline="\n") as stream:
        yield stream


def _print_training(metrics: dict[str, Any], out: Path) -> None:
    rows = {
        name.replace("_", " "): metrics[name] for name in ("held_out", "test") if metrics.get(name)
    }
    if "baseline" in metrics:
        where = "test" if "test" in rows else "held out"
        rows[f"{where}, {metrics['baseline']['name']}"] = metrics["baseline"]
    _print_scores(rows)
    _print(f"best epoch {metrics['best_epoch']} of {metrics['epochs']}; the model is in {out}")


def _print_scores(rows: dict[str, dict[str, Any]]) -> None:
    width = max([len("texts"), *map(len, rows)])
    _print(f"{'texts':<{width}}  examples  accuracy  macro F1  mean depth")
    for name, scores in rows.items():
        depth = f"{scores['mean_depth']:.2f}" if scores["mean_depth"] else "-"
        _print(
            f"{name:<{width}}  {scores['examples']:>8,}  {scores['accuracy']:>8.4f}  "
            f"{scores['macro_f1']:>8.4f}  {depth:>10}"
        )


def _print_labels(per_label: dict[str, dict[str, Any]]) -> None:
    width = max([len("label"), *map(len, per_label)])
    _print(f"\n{'label':<{width}}  precision  recall      F1  support")
    for label, scores in per_label.items():
        _print(
            f"{label:<{width}}  {scores['precision']:>9.4f}  {scores['recall']:>6.4f}  "
            f"{scores['f1']:>6.4f}  {scores['support']:>7,}"
        )


def _messages() -> "Console":
    from rich.console import Console

    return Console(stderr=True, soft_wrap=True)


def _command() -> str:
    return " ".join(["fathomer", *sys.argv[1:]])


def _print(line: str) -> None:
    typer.echo(line)


def _print_json(content: dict[str, Any]) -> None:
    typer.echo(json.dumps(content, ensure_ascii=False))


def main() -> None:
    """Run a command; turn what a user did wrong into one line and exit code 2."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        code = _complain(error.format_message() + _see_help(error))  # type: ignore[attr-defined]
    except FathomerError as error:
        code = _complain(str(error))
    except (typer.Abort, KeyboardInterrupt):
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _complain(message: str) -> int:
    typer.echo(f"fathomer: {' '.join(message.split())}", err=True)
    return 2


def _see_help(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f" See {context.command_path} --help." if context else ""


if __name__ == "__main__":
    main()
