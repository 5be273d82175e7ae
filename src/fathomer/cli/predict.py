"""The command ``fathomer predict``."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from fathomer.cli.options import Encoding, Folder, MaxDepth
from fathomer.cli.output import print_json
from fathomer.errors import MissingFileError


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
        # A person at a terminal wants each answer at once, a program all of them soon.
        size = 1 if stream.isatty() else 500
        while chunk := list(islice(lines, size)):
            for prediction in predictor.predict(chunk, max_depth=max_depth):
                print_json(prediction.to_dict(words=depths))


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
