"""Files of texts as Arrow tables, in chunks: csv, tsv, jsonl and parquet, on a disk or behind a URL.

The columns of parquet files keep their types; all others are strings, as they are in the file. A line
that cannot be parsed is a row with an error.
"""

import csv
import glob
import io
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import Any

from fathomer.data.csv_jsonl import find_delimiter, has_content, parse_object
from fathomer.data.file_store import FileStore, folder_of
from fathomer.errors import DataError, MissingFileError
from fathomer.open_files import format_suffix

KINDS = (".csv", ".tsv", ".jsonl", ".parquet")
KINDS_LISTED = f"{', '.join(KINDS[:-1])} or {KINDS[-1]}"
FIRST_LINES = 1000
"""Lines of a jsonl file whose keys are its columns; a later key is a further column."""
Chunk = tuple[Any, list[str | None]]
"""An Arrow table, and the error of each of its rows."""
ParsedRow = tuple[dict[str, str | None], str | None]
"""The cells of a row by column, and what is wrong with it."""


@dataclass(frozen=True)
class TextTables:
    """Files with the same columns, by the name of the file with their answers."""

    folder: FileStore
    files: dict[str, str]
    schema: Any
    text_column: str
    encoding: str

    @property
    def names(self) -> list[str]:
        """The names of the columns."""
        return list(self.schema.names)

    def empty(self) -> Any:
        """Return a table without rows."""
        return self.schema.empty_table()

    def read(self, path: str, *, rows: int) -> Iterator[Chunk]:
        """Read a file in chunks that depend only on its content; there may be none."""
        import pyarrow

        readers = {".parquet": self._read_parquet, ".jsonl": self._read_jsonl}
        try:
            yield from readers.get(format_suffix(Path(path)), self._read_csv)(path, rows)
        except (pyarrow.ArrowException, OSError, csv.Error) as error:
            reason = " ".join(str(error).split())
            raise DataError(f"cannot be read ({reason})") from None

    def _read_parquet(self, path: str, rows: int) -> Iterator[Chunk]:
        import pyarrow.parquet

        with pyarrow.parquet.ParquetFile(path, filesystem=self.folder.system) as file:
            for batch in file.iter_batches(batch_size=rows):
                yield pyarrow.Table.from_batches([batch]), [None] * len(batch)

    def _read_jsonl(self, path: str, rows: int) -> Iterator[Chunk]:
        lines = enumerate(_lines(self.folder.system, path, self.encoding), 1)
        return self._chunks((_parsed(line, number) for number, line in lines if line.strip()), rows)

    def _read_csv(self, path: str, rows: int) -> Iterator[Chunk]:
        """Read a csv or tsv file as strings, row by row, so that a bad row spoils no other."""
        table = _cells(self.folder.system, path, self.encoding)
        next(table, None)
        return self._chunks((_fitting(cells, self.names, line) for line, cells in table), rows)

    def _chunks(self, parsed: Iterator[ParsedRow], rows: int) -> Iterator[Chunk]:
        """Group parsed rows into tables of strings; the keys of jsonl rows may differ."""
        import pyarrow

        while chunk := list(islice(parsed, rows)):
            names = dict.fromkeys([*self.names, *(name for row, _ in chunk for name in row)])
            columns = {name: [row.get(name) for row, _ in chunk] for name in names}
            kinds = pyarrow.schema([(name, pyarrow.string()) for name in names])
            yield pyarrow.table(columns, schema=kinds), [error for _, error in chunk]


def _parsed(line: str, number: int) -> ParsedRow:
    """Return the values of a line of JSON as strings, and what is wrong with it."""
    try:
        values = parse_object(line)
    except ValueError as error:
        return {}, f"line {number}: {error}"
    return {
        name: value if value is None or isinstance(value, str) else json.dumps(value)
        for name, value in values.items()
    }, None


def _fitting(cells: list[str], names: list[str], line: int) -> ParsedRow:
    """Return the cells of a row by column, and an error if they are too few or too many."""
    error = f"line {line}: {len(cells)} columns, expected {len(names)}"
    found: dict[str, str | None] = dict(zip(names, cells, strict=False))
    return found, None if len(cells) == len(names) else error


def _cells(system: Any, path: str, encoding: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and the rows of a csv or tsv file, each with the line on which it ends."""
    delimiter, lines = find_delimiter(Path(path), _lines(system, path, encoding))
    reader = csv.reader(lines, delimiter=delimiter)
    for cells in reader:
        if has_content(cells):
            yield reader.line_num, cells


def _lines(system: Any, path: str, encoding: str) -> Iterator[str]:
    """Yield the lines of a file, decompressed by its suffix."""
    encoding = "utf-8-sig" if encoding.lower() in ("utf-8", "utf8") else encoding
    with (
        system.open_input_stream(path) as stream,
        io.TextIOWrapper(io.BufferedReader(stream, 1 << 20), encoding, "replace", "") as text,
    ):
        yield from text


def find_tables(pattern: str, text_column: str, encoding: str = "utf-8") -> TextTables:
    """Find the files that match a pattern, and check that they can be answered together."""
    folder, paths = _matching(pattern)
    base = os.path.commonpath([str(PurePosixPath(path).parent) for path in paths])
    files = {}
    for path in paths:
        name = os.path.relpath(path, base).replace("/", "-")
        files[name if format_suffix(Path(path)) == ".parquet" else f"{name}.parquet"] = path
    if len(files) < len(paths):
        raise DataError(f"{pattern}: several files have the same name; rename one of them")
    schemas = {path: _schema(folder.system, path, encoding) for path in paths}
    first, schema = next(iter(schemas.items()))
    for path, found in schemas.items():
        if not found.names:
            raise DataError(f"{path}: the file is empty")
        if text_column not in found.names:
            raise DataError(
                f"{path}: no column {text_column!r}; the columns are {', '.join(found.names)}; name "
                "the column of the texts with --text-column"
            )
        if not _same(found, schema, path):
            change = sorted(_columns(found) ^ _columns(schema)) or ["their order"]
            raise DataError(
                f"{path}: other columns than {first} ({'; '.join(change)}); answer them separately"
            )
    return TextTables(folder, files, schema, text_column, encoding)


def _columns(schema: Any) -> set[str]:
    return {f"{field.name}: {field.type}" for field in schema}


def _same(found: Any, schema: Any, path: str) -> bool:
    """Whether files have the same columns; the lines of a jsonl file need not have the same keys."""
    return format_suffix(Path(path)) == ".jsonl" or bool(found.equals(schema))


def _matching(pattern: str) -> tuple[FileStore, list[str]]:
    """Return the files that a pattern, a folder or a single path names, in order."""
    from pyarrow.fs import FileSelector, FileType

    if "://" not in pattern:
        folder = folder_of(".")
        where = f"{pattern}/*" if Path(pattern).is_dir() else pattern
        found = [str(Path(path).absolute()) for path in glob.glob(where, recursive=True)]  # noqa: PTH207
        paths = [path for path in found if Path(path).is_file()]
    else:
        plain, _, _ = pattern.partition("*")
        wild = "*" in pattern
        folder = folder_of(plain.rpartition("/")[0] if wild else pattern)
        selector = FileSelector(folder.base, recursive=True, allow_not_found=True)
        infos = folder.system.get_file_info(selector) if wild else []
        ending = pattern.removeprefix(plain.rpartition("/")[0])
        paths = [info.path for info in infos if fnmatch(info.path, folder.base + ending)]
        if not wild and folder.system.get_file_info(folder.base).type == FileType.File:
            paths = [folder.base]
    paths = sorted(path for path in paths if not PurePosixPath(path).name.startswith(("_", ".")))
    if not paths:
        found_folder = "://" not in pattern and Path(pattern).is_dir()
        problem = f"the folder has no {KINDS_LISTED} file" if found_folder else "no such file"
        raise MissingFileError(f"{pattern}: {problem}")
    for path in paths:
        if format_suffix(Path(path)) not in KINDS:
            raise DataError(f"{path}: not a {KINDS_LISTED} file")
    return folder, paths


def _schema(system: Any, path: str, encoding: str) -> Any:
    """Return the columns of a file."""
    import pyarrow.parquet

    kind = format_suffix(Path(path))
    try:
        if kind == ".parquet":
            return pyarrow.parquet.read_schema(path, filesystem=system).remove_metadata()
        if kind == ".jsonl":
            lines = islice(_lines(system, path, encoding), FIRST_LINES)
            rows = (_parsed(line, 1)[0] for line in lines if line.strip())
            names = list(dict.fromkeys(name for row in rows for name in row))
        else:
            names = next(_cells(system, path, encoding), (0, []))[1]
    except (pyarrow.ArrowException, OSError, csv.Error, LookupError) as error:
        raise DataError(f"{path}: cannot be read ({' '.join(str(error).split())})") from None
    return pyarrow.schema([(name, pyarrow.string()) for name in names])
