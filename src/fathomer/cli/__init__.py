"""The command line: the table of commands, each a thin layer over the library in a file of its own.

Answers go to stdout, progress and messages to stderr; a user's mistake is one line and exit code 2.
Commands import the library inside their functions, so that ``--help`` answers at once.
"""

import sys
from io import TextIOWrapper
from typing import Annotated, Any

import typer
import typer.core

from fathomer import __version__
from fathomer.cli import bench, data, experiment
from fathomer.cli.bench_serve import bench_serve
from fathomer.cli.check import check
from fathomer.cli.evaluate import evaluate
from fathomer.cli.explain import explain
from fathomer.cli.export import export
from fathomer.cli.models import models
from fathomer.cli.predict import predict
from fathomer.cli.serve import serve
from fathomer.cli.threshold import threshold
from fathomer.cli.train import train
from fathomer.cli.tune import tune
from fathomer.errors import FathomerError

# The parent of all that a user can type wrong; newer versions of typer carry a click of their own.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Stopped(Exception):
    """Tell of a Ctrl-C that no command has caught; typer itself would end without a word."""


class Commands(typer.core.TyperGroup):
    """Hold all commands."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Stopped from None


app = typer.Typer(
    name="fathomer",
    cls=Commands,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)
for command in (check, tune, train, evaluate, predict, explain, threshold, serve, export, models):
    app.command()(command)
app.add_typer(data.app)
bench.app.command("serve")(bench_serve)
app.add_typer(bench.app)
app.add_typer(experiment.app)


@app.callback(invoke_without_command=True)
def fathomer(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False,
) -> None:
    """Classify texts, and see how deep each word was read."""
    if version:
        typer.echo(f"fathomer {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main() -> None:
    """Run a command; turn what a user did wrong into one line and exit code 2."""
    for stream in (sys.stdout, sys.stderr):
        _speak_any_language(stream)
    try:
        code = app(standalone_mode=False, prog_name="fathomer")
    except UsageError as error:
        code = _complain(error.format_message() + _see_help(error))  # type: ignore[attr-defined]
    except FathomerError as error:
        code = _complain(str(error))
    except OSError as error:  # a full disk, a folder where a file should be
        where = f"{error.filename}: " if error.filename else ""
        code = _complain(f"{where}{error.strerror or error}")
    except (Stopped, KeyboardInterrupt):  # in a command, or before it
        _complain("stopped")  # a command that keeps something has said what
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _speak_any_language(stream: Any) -> None:
    """Write UTF-8 to files and pipes, and to a terminal what it can show."""
    if isinstance(stream, TextIOWrapper):  # there is none without a console
        encoding = stream.encoding if stream.isatty() else "utf-8"
        stream.reconfigure(encoding=encoding, errors="replace")


def _complain(message: str) -> int:
    typer.echo(f"fathomer: {' '.join(message.split())}", err=True)
    return 2


def _see_help(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f" See {context.command_path} --help." if context else ""
