"""The command line: one module per command, each a thin layer over the library.

Results go to stdout, progress and messages to stderr; a user's mistake is one line and exit code 2.
Commands import the library inside their functions, so that ``--help`` responds immediately.
"""

from typing import Annotated

import typer

from fathomer import __version__
from fathomer.cli import data, vectors
from fathomer.cli.check import check
from fathomer.cli.evaluate import evaluate
from fathomer.cli.explain import explain
from fathomer.cli.export import export
from fathomer.cli.models import models
from fathomer.cli.moved import bench, experiment
from fathomer.cli.predict import predict
from fathomer.cli.runner import new_app, run_app
from fathomer.cli.serve import serve
from fathomer.cli.threshold import threshold
from fathomer.cli.train import train
from fathomer.cli.tune import tune

app = new_app("fathomer")
for command in (check, train, tune, evaluate, predict, explain, threshold, serve, export, models):
    app.command()(command)
for moved in (bench, experiment):  # without --help, so that any arguments lead to the message
    app.command(
        hidden=True,
        add_help_option=False,
        context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    )(moved)
app.add_typer(data.app)
app.add_typer(vectors.app)


@app.callback(invoke_without_command=True)
def fathomer(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Classify texts with a model that decides, word by word, how deep to read."""
    if version:
        typer.echo(f"fathomer {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run the command ``fathomer``."""
    run_app(app, "fathomer")
