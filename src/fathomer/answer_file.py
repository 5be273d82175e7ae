"""Answers for a whole file: predictions written beside its rows, in constant memory.

A table keeps its columns and gets new ones; plain lines are answered with lines of JSON. The run can
be interrupted at any time, even killed, and resumed. Rows are answered in chunks whose boundaries do
not depend on interruptions, so a resumed run writes the same bytes as an uninterrupted one.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fathomer.data.csv_jsonl import DELIMITERS, TABLES
from fathomer.data.reading import Row
from fathomer.data.xlsx_parquet import write_parquet
from fathomer.dataset import free_name, label_and_probability
from fathomer.errors import ConfigError, DataError, FathomerError
from fathomer.locks import locked
from fathomer.open_files import file_error, find_surrogate, format_suffix
from fathomer.prediction import Prediction
from fathomer.predictor import Predictor
from fathomer.resumable_file import ResumableFile

CHUNK_TEXTS, CHUNK_CHARACTERS = 1000, 400_000
"""Limits of a chunk: enough texts for full batches, few enough to repeat after an interruption."""

_FORMULA = re.compile(r"\s*[=+\-@\uFF0B\uFF0D\uFF1D\uFF20]|[\t\r\n]")
_NUMBER = re.compile(r"[+-]?\d+([.,]\d+)?")
_NEEDS_QUOTES = re.compile('[,\t"\r\n]')

Watch = Callable[[Iterator[list[Row]]], Iterable[list[Row]]]
"""A function that passes the chunks through, for example to show a progress bar."""


@dataclass(frozen=True)
class AnswerRequest:
    """A file to answer, the file to write, and the options of the predictions."""

    path: Path
    out: Path
    model: str
    """Checksum of the model; a run cannot be resumed with a different one."""
    depths: bool = False
    max_depth: int | None = None
    depth_budget: float | None = None
    abstain_below: float = 0.0
    delimiter: str | None = None
    """Character between the columns of a csv or tsv file, if it is not the usual one."""
    raw_cells: bool = False
    """Whether cells of csv and tsv files that look like formulas are written as they are."""

    @property
    def kind(self) -> str:
        """Suffix that names the format of the answers."""
        own = answer_kinds(self.path)
        named = format_suffix(self.out)
        return named if named in own else own[0]

    def settings(self) -> dict[str, Any]:
        """Return everything that must stay the same when a run is resumed."""
        return {
            "model": self.model,
            "--depths": self.depths,
            "--max-depth": self.max_depth,
            "--depth-budget": self.depth_budget,
            "--abstain-below": self.abstain_below,
            "--raw-cells": self.raw_cells,
        }


def answer_kinds(path: Path) -> tuple[str, ...]:
    """Return the suffixes that answers to a file can have, the usual one first."""
    kinds = {
        ".csv": (".csv", ".parquet"),
        ".tsv": (".tsv", ".parquet"),
        ".xlsx": (".csv", ".parquet"),
        ".parquet": (".parquet", ".csv"),
    }
    return kinds.get(format_suffix(path), (".jsonl",))


def answer_file(
    predictor: Predictor,
    records: Iterator[Row],
    request: AnswerRequest,
    *,
    resume: bool = False,
    watch: Watch = iter,
) -> int:
    """Answer all records and return their number; ``resume`` continues an interrupted run."""
    notes = {"settings": request.settings(), "rows": 0, "input": hashlib.sha256().hexdigest()}
    with locked(request.out), ResumableFile(request.out, notes, resume=resume) as file:
        try:
            _check_settings(file, request.settings())
            _answer_records(predictor, records, request, file, watch)
            if request.kind == ".parquet":
                _write_parquet(request, file.partial)
        except FathomerError as error:
            if not file.notes["rows"]:
                file.discard()
            elif isinstance(error, DataError):
                kept = f"{file.notes['rows']:,} answers are kept, --resume continues"
                raise DataError(f"{error}; {kept}") from None
            raise
        except OSError as error:  # a full disk
            kept = f"{file.notes['rows']:,} answers are kept, --resume continues"
            where = error.filename or file.partial
            raise DataError(f"{where}: {error.strerror or error}; make room; {kept}") from None
        rows = int(file.notes["rows"])
        file.finish()
        return rows


def _check_settings(file: ResumableFile, settings: dict[str, Any]) -> None:
    """Refuse to resume a run with a different model or different options."""
    before = file.notes["settings"]
    for name in settings:
        if before.get(name) != settings[name]:
            change = "another model" if name == "model" else f"{name} = {before.get(name)}"
            raise ConfigError(
                f"{file.partial}: was made with {change}; use the same, or delete the file"
            )


def _answer_records(
    predictor: Predictor,
    records: Iterator[Row],
    request: AnswerRequest,
    file: ResumableFile,
    watch: Watch,
) -> None:
    """Skip the records that are already answered, then answer the rest chunk by chunk."""
    first = list(islice(records, 1))
    records = chain(first, records)
    writer = _AnswerWriter(request, first[0].names if first else ())
    rows, digest = file.notes["rows"], hashlib.sha256()
    _update(digest, islice(records, rows))
    if digest.hexdigest() != file.notes["input"]:
        raise ConfigError(
            f"{file.partial}: its {rows:,} answers do not belong to the first {rows:,} rows of "
            f"{request.path}; restore them, or delete the file"
        )
    lines = [] if rows else writer.header()
    for chunk in watch(chunked(records)):
        texts = [record.text for record in chunk]
        predictions = predictor.predict(
            texts,
            max_depth=request.max_depth,
            depth_budget=request.depth_budget,
            abstain_below=request.abstain_below,
        )
        lines += map(writer.line, chunk, predictions)
        _update(digest, chunk)
        rows += len(chunk)
        notes = file.notes | {"rows": rows, "input": digest.hexdigest()}
        file.append("".join(lines).encode(), notes)
        lines = []


def _update(digest: "hashlib._Hash", records: Iterable[Row]) -> None:
    """Add the content of records to a digest, without their line numbers."""
    for record in records:
        content = json.dumps([record.text, record.names, record.values], default=str)
        digest.update(content.encode())


def chunked(records: Iterable[Row]) -> Iterator[list[Row]]:
    """Group records into chunks of bounded size; only a single long text can exceed the limit."""
    chunk: list[Row] = []
    characters = 0
    for record in records:
        chunk.append(record)
        characters += len(record.text)
        if len(chunk) == CHUNK_TEXTS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def _write_parquet(request: AnswerRequest, partial: Path) -> None:
    """Replace lines of JSON, which can be resumed, by the Parquet file made of them."""
    complete = partial.with_name(f"{partial.name}.parquet")
    beside = request.path if format_suffix(request.path) == ".parquet" else None
    try:
        with partial.open(encoding="utf-8") as lines:
            write_parquet(complete, json.loads(next(lines)), map(json.loads, lines), beside=beside)
        complete.replace(partial)
    finally:
        complete.unlink(missing_ok=True)


class _AnswerWriter:
    """A formatter of answers, as lines of the file of answers.

    Before it is complete, a Parquet file is a line of JSON with the names and types of the columns,
    and one for each row. The columns of an input that is itself Parquet are added at the end.
    """

    def __init__(self, request: AnswerRequest, names: Sequence[str]) -> None:
        self.path, self.depths, self.names = request.path, request.depths, names
        self.raw_cells = request.raw_cells
        self.kind = request.kind
        self.delimiter = request.delimiter or DELIMITERS.get(self.kind)
        self.is_parquet = self.kind == ".parquet"
        self.keeps_values = not (self.is_parquet and format_suffix(request.path) == ".parquet")
        added = ["label", "probability"]
        if self.depths:
            added.append("words" if self.kind == ".jsonl" else "mean_depth")
        self.added = [self._free_name(name) for name in added]

    def _free_name(self, name: str) -> str:
        """Return ``name``, or a prefixed one if the input already has such a column."""
        try:
            return free_name(name, self.names)
        except DataError as error:
            raise file_error(self.path, str(error), 1) from None

    def header(self) -> list[str]:
        """Return the line before the answers, if the kind of file has one."""
        if self.is_parquet:
            kept = [(name, "string") for name in self.names if self.keeps_values]
            kinds = ("string", "float64", "float64")
            return [_json_line([*kept, *zip(self.added, kinds, strict=False)])]
        if not self.delimiter:
            return []
        return [csv_line([*self._safe(self.names), *self.added], self.delimiter)]

    def _safe(self, cells: Iterable[Any]) -> list[Any]:
        """Return cells that spreadsheets do not run as formulas."""
        return [cell if self.raw_cells else disarmed(cell) for cell in cells]

    def line(self, record: Row, prediction: Prediction) -> str:
        """Return the line that answers one record."""
        if self.is_parquet:
            kept = [None if v is None else str(v) for v in record.values if self.keeps_values]
            return _json_line([*kept, *self._answers(prediction)])
        if self.delimiter:
            return csv_line(
                self._safe([*record.values, *self._answers(prediction)]), self.delimiter
            )
        if format_suffix(self.path) in TABLES:
            return self._object(record, prediction)
        return _json_line(prediction.to_dict(words=self.depths))

    def _answers(self, prediction: Prediction) -> list[str | float | None]:
        """Return the values of the new columns."""
        answers = [*label_and_probability(prediction)]
        if self.depths:
            depth = prediction.mean_depth
            answers.append(None if depth is None else round(depth, 4))
        return answers

    def _object(self, record: Row, prediction: Prediction) -> str:
        if taken := set(self.added) & set(record.names):
            problem = f"the key {min(taken)!r} is used for the answers, as the first row lacks it"
            raise file_error(self.path, f"{problem}; rename it", record.line)
        values = [*record.values, *label_and_probability(prediction)]
        if self.depths:
            values.append([word.to_dict() for word in prediction.words])
        return _json_line(dict(zip([*record.names, *self.added], values, strict=True)))


def disarmed(cell: Any) -> Any:
    """Prefix a formula with an apostrophe, so that spreadsheets do not run it; leave numbers alone.

    >>> disarmed("=1+1"), disarmed("-3.5"), disarmed("a - b")
    ("'=1+1", '-3.5', 'a - b')
    """
    is_formula = isinstance(cell, str) and _FORMULA.match(cell) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if is_formula else cell


def csv_line(values: Iterable[Any], delimiter: str = ",") -> str:
    """Return one line of a csv or tsv file; None becomes an empty cell."""
    return delimiter.join(_cell(value, delimiter) for value in values) + "\n"


def _cell(value: Any, delimiter: str) -> str:
    # Python 3.11's csv module would leave a lone carriage return unquoted.
    cell = "" if value is None else str(value)
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if delimiter in cell or _NEEDS_QUOTES.search(cell) else cell


def _json_line(content: dict[str, Any] | list[Any]) -> str:
    line = json.dumps(content, ensure_ascii=False)
    # A lone surrogate cannot be encoded as UTF-8, only escaped.
    return (json.dumps(content) if find_surrogate(line) else line) + "\n"
