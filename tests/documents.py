"""Blocks of code in a document, and the commands in them."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

FATHOMER = [sys.executable, "-m", "fathomer"]


def blocks(text: str, language: str) -> list[str]:
    """Return what stands in the document's blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def commands(text: str) -> list[str]:
    """List the commands of the console blocks."""
    return [command for command, _ in sessions(text)]


def sessions(text: str) -> list[tuple[str, str]]:
    """List the commands of the console blocks, each with what is shown below it."""
    found = []
    for block in blocks(text, "console"):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown))
    return found


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a ``fathomer`` command, perhaps behind an ``echo``; what it would write is captured."""
    echo, _, command = command.partition(" > ")[0].rpartition(" | ")
    parts = [*FATHOMER, *shlex.split(command)[1:]]
    given = "".join(f"{text}\n" for text in shlex.split(echo)[1:])
    return subprocess.run(parts, cwd=folder, capture_output=True, text=True, input=given)
