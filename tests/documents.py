"""Code blocks of the Markdown documents, and the commands in them."""

import re
import shlex
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest

from fathomer.cli import main


class Done(NamedTuple):
    """What a command has printed, and its exit code."""

    returncode: int
    stdout: str
    stderr: str


def code_blocks(text: str) -> list[tuple[str, str]]:
    """Return language and content of the document's code blocks, in order."""
    return re.findall(r"^```(\w+)\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def blocks(text: str, language: str) -> list[str]:
    """Return the contents of the code blocks in one language."""
    return [content for found, content in code_blocks(text) if found == language]


def commands(text: str) -> list[str]:
    """Return the commands of the console blocks."""
    return [command for command, _ in sessions(text)]


def sessions(text: str) -> list[tuple[str, str]]:
    """Return the commands of the console blocks, each with the output shown below it."""
    return [pair for block in blocks(text, "console") for pair in split_session(block)]


def split_session(block: str) -> list[tuple[str, str]]:
    """Split a console block into commands, each with the output shown below it."""
    parts = re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]
    return [(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]


def run(command: str, folder: Path) -> Done:
    """Run a ``fathomer`` command, optionally with piped ``echo`` input; redirections are ignored.

    It runs in this process, because a new one needs seconds to import its packages.
    """
    echo, _, command = command.partition(" > ")[0].rpartition(" | ")
    piped = "".join(f"{text}\n" for text in shlex.split(echo)[1:])
    out, err = StringIO(), StringIO()
    with (
        chdir(folder),
        patch.object(sys, "argv", shlex.split(command)),
        patch.object(sys, "stdin", TextIOWrapper(BytesIO(piped.encode()))),
        redirect_stdout(out),
        redirect_stderr(err),
        pytest.raises(SystemExit) as end,
    ):
        main()
    return Done(end.value.code, out.getvalue(), err.getvalue())


def run_python(code: str, folder: Path, names: dict[str, Any]) -> str:
    """Run a block of Python in this process and return its output; it shares names with other blocks."""
    printed = StringIO()
    with chdir(folder), redirect_stdout(printed):
        exec(code, names)
    return printed.getvalue()


def mask_numbers(text: str) -> str:
    """Replace every number, and a bar or sign before it, by 0: results differ between machines."""
    return re.sub(r"[▁-█+-]?\d[\d.e-]*", "0", text)
