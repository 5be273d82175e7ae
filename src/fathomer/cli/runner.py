"""Run a Typer app so that a user's mistake is one line on stderr and exit code 2."""

import sys
from io import TextIOWrapper
from typing import Any

import typer
import typer.core

from fathomer.cli.output import print_wrapped
from fathomer.errors import FathomerError

# Base class of all usage errors; newer versions of typer vendor their own click.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Interrupted(Exception):
    """Ctrl-C that no command handled; typer itself would exit silently."""


class CommandGroup(typer.core.TyperGroup):
    """A group of commands that reports Ctrl-C."""

    def invoke(self, ctx: Any) -> Any:
        """Run the chosen command."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise Interrupted from None


def new_app(name: str) -> typer.Typer:
    """Create the app of a command with subcommands."""
    return typer.Typer(
        name=name,
        cls=CommandGroup,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
    )


def run_app(app: typer.Typer, name: str) -> None:
    """Run a command and exit with its code."""
    for stream in (sys.stdout, sys.stderr):
        _set_encoding(stream)
    try:
        code = app(standalone_mode=False, prog_name=name)
    except UsageError as error:
        code = _fail(error.format_message() + _see_help(error))  # type: ignore[attr-defined]
    except FathomerError as error:
        code = _fail(str(error))
    except OSError as error:  # a full disk, or a folder in place of a file
        where = f"{error.filename}: " if error.filename else ""
        code = _fail(f"{where}{error.strerror or error}")
    except (Interrupted, KeyboardInterrupt):  # inside a command, or before it
        _fail("stopped")  # a command that keeps something has already said so
        code = 130
    sys.exit(code if isinstance(code, int) else 0)


def _set_encoding(stream: Any) -> None:
    """Write UTF-8 to files and pipes; on a terminal, replace what it cannot show."""
    if isinstance(stream, TextIOWrapper):  # None without a console
        encoding = stream.encoding if stream.isatty() else "utf-8"
        stream.reconfigure(encoding=encoding, errors="replace")


def _fail(message: str) -> int:
    print_wrapped(f"fathomer: {' '.join(message.split())}", err=True)
    return 2


def _see_help(error: Exception) -> str:
    context = getattr(error, "ctx", None)
    return f" See {context.command_path} --help." if context else ""
