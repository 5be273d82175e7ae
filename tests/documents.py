"""Code blocks of the Markdown documents, and the commands in them."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

FATHOMER = [sys.executable, "-m", "fathomer"]


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


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a ``fathomer`` command, optionally with piped ``echo`` input; redirections are ignored."""
    echo, _, command = command.partition(" > ")[0].rpartition(" | ")
    parts = [*FATHOMER, *shlex.split(command)[1:]]
    piped = "".join(f"{text}\n" for text in shlex.split(echo)[1:])
    return subprocess.run(parts, cwd=folder, capture_output=True, text=True, input=piped)


def mask_numbers(text: str) -> str:
    """Replace every number, and a bar before it, by 0: results differ between machines."""
    return re.sub(r"[▁-█]?\d[\d.e-]*", "0", text)
