"""The command ``fathomer predict``."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.options import Device, Encoding, Folder, MaxDepth, Precision, TextColumn
from fathomer.cli.output import messages_console, open_model, print_json
from fathomer.errors import ConfigError, DataError, DepthError, MissingFileError

if TYPE_CHECKING:
    from fathomer.answer_file import Answering
    from fathomer.data.reading import ReadOptions, Row
    from fathomer.predictor import Predictor


def predict(
    folder: Folder,
    file: Annotated[
        str, typer.Argument(metavar="[FILE|-]", help="One text per line, or csv, tsv, jsonl.")
    ] = "-",
    depths: Annotated[bool, typer.Option("--depths", help="Add the words and depths.")] = False,
    abstain_below: Annotated[
        float, typer.Option(metavar="P", help="Give no label that is less probable than this.")
    ] = 0.0,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write here; a table keeps its columns.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Continue a stopped --out.")] = False,
    text_column: TextColumn = "text",
    max_depth: MaxDepth = None,
    precision: Precision = "float32",
    device: Device = "cpu",
    encoding: Encoding = "utf-8",
) -> None:
    """Answer the texts of a file, or of standard input.

    Each line is answered with a line of JSON. With --out, each row of a table keeps its columns and
    gets a label and its probability.

    Example: echo "a lovely film" | fathomer predict model --depths

    Example: fathomer predict model reviews.csv --out answers.csv
    """
    from fathomer.answer_file import Answering
    from fathomer.artifact import CONFIG
    from fathomer.data.reading import ReadOptions
    from fathomer.files import real_path, sha256_of

    path, options = Path(file), ReadOptions(text_column, None, encoding)
    _check(path, out, resume)
    predictor = open_model(folder, precision, device)
    if depths and not predictor.knows_depth:
        name = predictor.artifact.recipe.model.name
        raise DepthError(f"{folder}: words have no depth in the model {name}; leave --depths out")
    if out is None:
        for chunk in _chunks(path, options):
            texts = [record.text for record in chunk]
            for prediction in predictor.predict(
                texts, max_depth=max_depth, abstain_below=abstain_below
            ):
                print_json(prediction.to_dict(words=depths))
        return
    model = f"{sha256_of(folder / CONFIG)} {precision}"
    wanted = Answering(path, real_path(out), model, depths, max_depth, abstain_below)
    _write(predictor, wanted, options, resume)


_NO_LINES = {
    ".zip": "a zip file; unpack it first",
    ".json": "a JSON file; write one object per line and name it .jsonl",
    **dict.fromkeys(
        (".xlsx", ".xls", ".ods", ".parquet", ".docx", ".pdf"), "not a text file; save it as .csv"
    ),
}


def _check(path: Path, out: Path | None, resume: bool) -> None:
    """Find out before the model is loaded what cannot be done."""
    from fathomer.open_files import format_suffix

    kind = format_suffix(path)
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; name a file")
    elif path.is_dir() or not path.exists():
        problem = "no such file; one text is answered by fathomer explain"
        raise MissingFileError(f"{path}: {'a folder' if path.is_dir() else problem}")
    if kind in _NO_LINES:
        raise DataError(f"{path}: {_NO_LINES[kind]}")
    if out is None:
        if resume:
            raise ConfigError("--resume continues a file of answers: name it with --out")
        return
    if str(out) == "-":
        raise ConfigError("--out is a file; without it, answers go to standard output")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; --out is a file")
    if out.exists() and not out.is_file():
        raise ConfigError(f"{out}: is no file; without --out, answers go to standard output")
    if not out.parent.is_dir():
        raise MissingFileError(f"{out.parent}: no such folder")
    if out.exists() and path.exists() and out.samefile(path):
        raise ConfigError(f"{out}: is the input itself; give --out another name")
    kind = kind if kind in (".csv", ".tsv") else ".jsonl"
    if out.suffix.lower() in {".csv", ".tsv", ".jsonl", ".gz", *_NO_LINES} - {kind}:
        raise ConfigError(f"{out}: the answers to {path} are a {kind} file; name it so")


def _chunks(path: Path, options: "ReadOptions") -> "Iterator[list[Row]]":
    """Group the texts: a pipe is answered as its lines arrive."""
    from fathomer.answer_file import chunked
    from fathomer.data.reading import read_rows, read_stream

    if str(path) == "-":
        return read_stream(sys.stdin.buffer, options.encoding)  # type: ignore[arg-type]
    return chunked(read_rows(path, options))


def _write(
    predictor: "Predictor", wanted: "Answering", options: "ReadOptions", resume: bool
) -> None:
    from fathomer.answer_file import answer_file
    from fathomer.open_files import count_lines
    from fathomer.progress import watch_answers

    messages = messages_console()
    if wanted.out.exists() and not resume:
        messages.print(f"{wanted.out}: the file there will be replaced")
    lines = count_lines(wanted.path) if messages.is_terminal else None
    watch = partial(watch_answers, console=messages, lines=lines)
    records = chain.from_iterable(_chunks(wanted.path, options))
    try:
        rows = answer_file(predictor, records, wanted, resume=resume, watch=watch)
    except KeyboardInterrupt:
        messages.print(
            f"Stopped: {wanted.out}.partial holds the answers so far; "
            "the same command with --resume continues."
        )
        raise typer.Exit(130) from None
    messages.print(f"{wanted.out}: {rows:,} text{'' if rows == 1 else 's'} answered")
