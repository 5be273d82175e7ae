"""Excel workbooks (extra ``xlsx``) and Parquet files (extra ``arrow``): read and written row by row."""

import zipfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from itertools import islice, repeat
from pathlib import Path
from typing import Any

from fathomer.errors import DataError, MissingFileError, refuse_damage, require
from fathomer.open_files import file_error, format_suffix, open_bytes

BINARY_TABLES = (".xlsx", ".parquet")
BATCH_ROWS = 1000
"""Rows of a Parquet file that are decoded at a time."""
MAX_SHEET_ROWS = 1 << 20
"""Rows that a sheet can have. A row may claim any number, and openpyxl adds blank rows before it."""

_KINDS = {
    b"PAR1": "a Parquet file; rename it to .parquet",
    b"\xd0\xcf\x11\xe0": "an old Excel workbook; save it as .xlsx",
    b"\xfd7zX": "an xz file; unpack it first",
    b"PK\x03\x04": "a zip file; unpack it first",
}
"""What files are that begin with these bytes, and what to do."""


def check_kind(path: Path) -> None:
    """Raise an error for a workbook, Parquet file or archive under the name of a text file."""
    if not path.is_file():  # a pipe, or nothing
        return
    with open_bytes(path) as file:
        problem = _KINDS.get(file.peek(4)[:4])
    if problem and _is_workbook(path):
        problem = "an Excel workbook; rename it to .xlsx"
    if problem:
        raise file_error(path, problem)


def _is_workbook(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as archive:
            return "xl/workbook.xml" in archive.namelist()
    except (zipfile.BadZipFile, OSError):
        return False


def read_records(path: Path) -> Iterator[tuple[int, list[str], list[Any]]]:
    """Yield the rows of a table: number, names of the columns, and values.

    In a workbook, it is the first sheet, and the first row that is not blank holds the names.
    Numbers are counted as a spreadsheet does; in a Parquet file, the first row is row 1.
    """
    if not path.is_file():
        problem = "expected a file, found a folder" if path.exists() else "no such file"
        raise MissingFileError(f"{path}: {problem}")
    return _read_sheet(path) if format_suffix(path) == ".xlsx" else _read_parquet(path)


def _read_sheet(path: Path) -> Iterator[tuple[int, list[str], list[Any]]]:
    openpyxl = require("openpyxl", "xlsx")
    names: list[str] = []
    with (
        refuse_damage(DataError, f"{path}: not an Excel workbook, or damaged"),
        closing(openpyxl.load_workbook(path, read_only=True, data_only=True)) as book,
    ):
        for number, cells in enumerate(book.worksheets[0].iter_rows(values_only=True), start=1):
            if number > MAX_SHEET_ROWS:
                raise ValueError("too many rows")
            if all(cell is None for cell in cells):
                continue
            if not names:
                names = ["" if cell is None else str(cell) for cell in cells]
                continue
            yield number, names, [*cells, *[None] * (len(names) - len(cells))][: len(names)]


def _read_parquet(path: Path) -> Iterator[tuple[int, list[str], list[Any]]]:
    with (
        open_parquet(path) as file,
        refuse_damage(DataError, f"{path}: not a Parquet file, or damaged"),
    ):
        names, number = file.schema_arrow.names, 0
        for batch in file.iter_batches(batch_size=BATCH_ROWS):
            columns = [column.to_pylist() for column in batch.columns]
            for values in zip(*columns, strict=True):
                number += 1
                yield number, names, list(values)


def open_parquet(path: Path) -> Any:
    """Open a Parquet file; its rows are read as they are needed."""
    parquet = require("pyarrow.parquet", "arrow")
    with refuse_damage(DataError, f"{path}: not a Parquet file, or damaged"):
        return parquet.ParquetFile(path)


def read_names(path: Path) -> list[str]:
    """Return the names of the columns."""
    if format_suffix(path) == ".parquet" and path.is_file():
        with open_parquet(path) as file:
            return list(file.schema_arrow.names)
    return next((names for _, names, _ in read_records(path)), [])


def write_parquet(
    path: Path,
    types: Sequence[tuple[str, str]],
    rows: Iterator[Sequence[Any]],
    *,
    beside: Path | None = None,
) -> None:
    """Write rows to a Parquet file, after the columns of the Parquet file ``beside`` if it is given.

    ``types`` has the name and the Arrow type of each column. Memory use does not depend on the
    number of rows.
    """
    arrow, parquet = require("pyarrow", "arrow"), require("pyarrow.parquet", "arrow")
    fields = [arrow.field(name, arrow.type_for_alias(kind)) for name, kind in types]
    source = open_parquet(beside) if beside else None
    schema = arrow.schema([*(source.schema_arrow if source else []), *fields])
    batches = source.iter_batches(batch_size=BATCH_ROWS) if source else repeat(None)
    with parquet.ParquetWriter(path, schema) as writer:
        for batch in batches:
            chunk = list(islice(rows, BATCH_ROWS if batch is None else len(batch)))
            if not chunk:
                break
            columns = zip(fields, zip(*chunk, strict=True), strict=True)
            added = [arrow.array(values, field.type) for field, values in columns]
            given = [] if batch is None else batch.columns
            writer.write_batch(arrow.RecordBatch.from_arrays([*given, *added], schema=schema))
