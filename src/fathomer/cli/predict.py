"""The command ``fathomer predict``."""

import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.options import (
    DepthBudget,
    Device,
    Encoding,
    Folder,
    MaxDepth,
    Precision,
    TextColumn,
)
from fathomer.cli.output import messages_console, open_model, print_json
from fathomer.cli.predict_ray import predict_on_ray
from fathomer.errors import ConfigError, DataError, DepthError, MissingFileError, did_you_mean

if TYPE_CHECKING:
    from fathomer.answer_file import AnswerRequest
    from fathomer.data.reading import ReadOptions, Row
    from fathomer.predictor import Predictor

_UNREADABLE = {
    ".zip": "a zip file; unpack it first",
    ".json": "a JSON file; write one object per line and name it .jsonl",
    **dict.fromkeys((".xls", ".ods", ".docx", ".pdf"), "not a text file; save it as .csv or .xlsx"),
}


def predict(
    folder: Folder,
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE|-",
            help="Plain text with one text per line, or csv, tsv, jsonl, xlsx, parquet.",
        ),
    ] = "-",
    depths: Annotated[bool, typer.Option("--depths", help="Add the words and depths.")] = False,
    abstain_below: Annotated[
        float, typer.Option(metavar="P", help="Leave out labels that are less probable than this.")
    ] = 0.0,
    out: Annotated[
        str | None,
        typer.Option(metavar="FILE|DIR", help="File, or with --engine ray folder, of the answers."),
    ] = None,
    engine: Annotated[
        str | None, typer.Option(metavar="ray", help="Answer many files on several workers.")
    ] = None,
    address: Annotated[
        str | None, typer.Option(metavar="A", help="Ray cluster: auto, or host:port.")
    ] = None,
    workers: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Ray workers; default: one per core.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Continue an interrupted run with --out.")
    ] = False,
    raw_cells: Annotated[
        bool,
        typer.Option("--raw-cells", help="Keep csv cells that look like formulas as they are."),
    ] = False,
    text_column: TextColumn = "text",
    max_depth: MaxDepth = None,
    depth_budget: DepthBudget = None,
    precision: Precision = "float32",
    device: Device = "cpu",
    encoding: Encoding = "utf-8",
) -> None:
    """Classify the texts of a file, or of standard input.

    Each text is answered with one line of JSON. With --out, a file of the same kind is written that
    has all columns of the input and the label and probability of each row.

    Example: echo "a lovely film" | fathomer predict model --depths

    Example: fathomer predict model reviews.csv --out answers.csv

    Example: fathomer predict model 'data/*.parquet' --out answers --engine ray
    """
    from fathomer.answer_file import AnswerRequest
    from fathomer.artifact import CONFIG
    from fathomer.data.csv_jsonl import describe_delimiter, read_delimiter
    from fathomer.data.reading import ReadOptions
    from fathomer.dataset import TableOptions
    from fathomer.files import real_path, sha256_of

    if engine is not None:
        if engine != "ray":
            raise ConfigError(f"--engine {engine}: {did_you_mean(engine, ['ray'])}")
        table = TableOptions(text_column, depths, max_depth, abstain_below, depth_budget)
        predict_on_ray(folder, file, out, table, address, workers, precision, encoding)
        return
    if address or workers:
        raise ConfigError("--address and --workers belong to --engine ray")
    path, options = Path(file), ReadOptions(text_column, None, encoding)
    _check_input(path)
    if out is not None:
        _check_output(Path(out), path)
    elif resume:
        raise ConfigError("--resume continues a file of answers: name it with --out")
    delimiter = read_delimiter(path, encoding)
    if note := describe_delimiter(path, delimiter):
        messages_console().print(note)
    predictor = open_model(folder, precision, device)
    if depths and not predictor.knows_depth:
        name = predictor.artifact.recipe.model.name
        raise DepthError(f"{folder}: words have no depth in the model {name}; leave --depths out")
    if out is not None:
        model = f"{sha256_of(folder / CONFIG)} {precision}"
        request = AnswerRequest(
            path,
            real_path(Path(out)),
            model,
            depths,
            max_depth,
            depth_budget,
            abstain_below,
            delimiter,
            raw_cells,
        )
        _write(predictor, request, options, resume=resume)
        return
    for chunk in _chunks(path, options):
        texts = [record.text for record in chunk]
        for answer in predictor.predict(
            texts, max_depth=max_depth, depth_budget=depth_budget, abstain_below=abstain_below
        ):
            _print_answer(answer.to_dict(words=depths))


def _print_answer(answer: dict[str, Any]) -> None:
    try:
        print_json(answer)
    except BrokenPipeError:
        raise
    except OSError as error:  # a full disk
        advice = "make room; with --out, --resume would continue"
        raise DataError(f"standard output: {error.strerror}; {advice}") from None


def _check_input(path: Path) -> None:
    """Raise an error before the model is loaded if the input cannot be read."""
    from fathomer.open_files import format_suffix

    kind = format_suffix(path)
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed; name a file")
    elif path.is_dir():
        raise MissingFileError(f"{path}: is a folder; name a file")
    elif not path.exists():
        raise MissingFileError(f"{path}: no such file; to classify one text, use fathomer explain")
    if kind in _UNREADABLE:
        raise DataError(f"{path}: {_UNREADABLE[kind]}")


def _check_output(out: Path, path: Path) -> None:
    """Raise an error before the model is loaded if the answers cannot be written."""
    from fathomer.answer_file import answer_kinds
    from fathomer.errors import require

    if str(out) == "-":
        raise ConfigError("--out needs a file; without --out, answers go to standard output")
    if out.is_dir():
        raise ConfigError(f"{out}: is a folder; --out needs a file")
    if out.exists() and not out.is_file():
        raise ConfigError(f"{out}: not a regular file; without --out, answers go to stdout")
    if not out.parent.is_dir():
        raise MissingFileError(f"{out.parent}: no such folder")
    if out.exists() and path.exists() and out.samefile(path):
        raise ConfigError(f"{out}: is the input; choose another name for --out")
    kinds, known = answer_kinds(path), {".csv", ".tsv", ".jsonl", ".xlsx", ".parquet", ".gz"}
    if out.suffix.lower() in {*known, *_UNREADABLE} - {*kinds}:
        raise ConfigError(
            f"{out}: answers to {path} are a {' or '.join(kinds)} file; use that suffix"
        )
    if out.suffix.lower() == ".parquet":
        require("pyarrow", "arrow")


def _chunks(path: Path, options: "ReadOptions") -> "Iterator[list[Row]]":
    """Group the texts of a file; a pipe is answered as its lines arrive."""
    from fathomer.answer_file import chunked
    from fathomer.data.reading import read_rows, read_stream

    if str(path) == "-":
        return read_stream(sys.stdin.buffer, options.encoding)  # type: ignore[arg-type]
    return chunked(read_rows(path, options))


def _write(
    predictor: "Predictor", request: "AnswerRequest", options: "ReadOptions", *, resume: bool
) -> None:
    from fathomer.answer_file import answer_file
    from fathomer.cli.progress import show_answers
    from fathomer.data.xlsx_parquet import BINARY_TABLES
    from fathomer.open_files import count_lines, format_suffix

    messages = messages_console()
    if request.out.exists() and not resume:
        messages.print(f"{request.out}: the existing file will be replaced")
    has_lines = format_suffix(request.path) not in BINARY_TABLES
    lines = count_lines(request.path) if messages.is_terminal and has_lines else None
    watch = partial(show_answers, console=messages, lines=lines)
    records = chain.from_iterable(_chunks(request.path, options))
    try:
        rows = answer_file(predictor, records, request, resume=resume, watch=watch)
    except KeyboardInterrupt:
        messages.print(
            f"Stopped: {request.out}.partial holds the answers so far; "
            "the same command with --resume continues."
        )
        raise typer.Exit(130) from None
    messages.print(f"{request.out}: {rows:,} text{'' if rows == 1 else 's'} answered")
