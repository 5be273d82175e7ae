"""The command ``fathomer predict``."""

import codecs
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO

import typer

from fathomer.cli.options import Encoding, Folder, MaxDepth
from fathomer.cli.output import print_json
from fathomer.errors import ConfigError, DataError, MissingFileError

TABLES = (".csv", ".tsv", ".jsonl", ".gz", ".zip")


def predict(
    folder: Folder,
    file: Annotated[str, typer.Argument(metavar="[FILE|-]", help="One text per line.")] = "-",
    depths: Annotated[bool, typer.Option("--depths", help="Add the words and depths.")] = False,
    abstain_below: Annotated[
        float, typer.Option(metavar="P", help="Give no label that is less probable than this.")
    ] = 0.0,
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
            for prediction in predictor.predict(
                chunk, max_depth=max_depth, abstain_below=abstain_below
            ):
                print_json(prediction.to_dict(words=depths))


@contextmanager
def _open_lines(file: str, encoding: str) -> Iterator[TextIO]:
    """Open plain text, one text per line; a stream goes on after bytes that cannot be read."""
    try:
        "".encode(encoding)
    except LookupError:
        raise ConfigError(f"unknown encoding {encoding!r}; try utf-8, latin-1 or cp1252") from None
    if file == "-":
        sys.stdin.reconfigure(encoding=encoding, errors="replace")  # type: ignore[union-attr]
        yield sys.stdin
        return
    path = Path(file)
    if not path.is_file():
        raise MissingFileError(f"{file}: {'a folder' if path.is_dir() else 'no such file'}")
    if path.suffix.lower() in TABLES:
        raise DataError(f"{file}: not plain text; give a file with one text per line")
    codec = "utf-8-sig" if codecs.lookup(encoding).name == "utf-8" else encoding
    try:
        with path.open(encoding=codec, newline="\n") as stream:
            yield stream
    except UnicodeDecodeError:
        raise DataError(f"{file}: not {encoding.upper()}; --encoding says which it is") from None
