"""Records of ``.csv``, ``.tsv`` and ``.jsonl`` files, and plain lines, as they stand in the file.

Each file may also be compressed (``reviews.csv.gz``). Records are streamed, and whatever is wrong
with a file is one :class:`DataError` that names the file and the physical line. In a table, a line
of nothing but white space is no record and is passed over.
"""

import codecs
import csv
import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import BufferedReader, TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.errors import DataError, MissingFileError

DELIMITERS = {".csv": ",", ".tsv": "\t"}
FIELD_LIMIT = 2**31 - 1  # the most that a C long holds on every platform


class Record(NamedTuple):
    """Hold one record of a file with the physical line at which it begins."""

    line: int
    text: str
    label: Any
    """What stands in the label column, or nothing if no such column was asked for."""
    names: Sequence[str] = ()
    values: Sequence[Any] = ()


@dataclass(frozen=True)
class Source:
    """Hold what the user said about the file, and word the errors about it."""

    path: Path
    text_column: str
    label_column: str | None
    encoding: str
    multi_label: bool = False
    """Whether a text may have several labels."""

    @property
    def kind(self) -> str:
        """Tell the kind of the file by its name, packed or not."""
        return Path(self.path.name.lower().removesuffix(".gz")).suffix

    def error(self, problem: str, line: int | None = None) -> DataError:
        """Word an error about the file, or about a line of it."""
        place = str(self.path) if line is None else f"{self.path}, line {line}"
        return DataError(f"{place}: {problem}")


def iterate_records(source: Source) -> Iterator[Record]:
    """Stream the records of a table; a file of any other kind is one of plain lines."""
    if source.kind not in TABLES:
        with opened(source, plain=True) as lines:
            for number, line in enumerate(lines, start=1):
                yield Record(number, line.removesuffix("\n").removesuffix("\r"), None)
        return
    with opened(source) as lines:
        record = None
        for record in TABLES[source.kind](source, lines):
            yield record
        if record is None:
            raise source.error("the file is empty")


def read_columns(path: Path, *, encoding: str = "utf-8") -> list[str]:
    """Name the columns of a table, or the keys of the first JSON object; other files have none."""
    source = Source(path, "", None, encoding)
    with opened(source) as lines:
        if source.kind in DELIMITERS:
            return next(_cells(source, lines, DELIMITERS[source.kind]), (0, []))[1]
        first = next(filter(str.strip, lines), "") if source.kind in TABLES else ""
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):  # whoever reads the rows will say so
        return []
    return list(found) if isinstance(found, dict) else []


def arriving_records(stream: BufferedReader, encoding: str) -> Iterator[list[Record]]:
    """Give the lines of a stream as they arrive, all that are there at a time.

    A stream goes on after bytes that cannot be decoded, which become U+FFFD.
    """
    codec = _codec(Source(Path("-"), "", None, encoding))
    decoder = codecs.getincrementaldecoder(codec)(errors="replace")
    number, pending, ended = 1, "", False
    while not ended:
        piece = stream.read1(1 << 16)  # waits for the first byte only
        ended = not piece
        lines, newline, rest = decoder.decode(piece, final=ended).rpartition("\n")
        arrived = (pending + lines).split("\n") if newline else []
        pending = rest if newline else pending + rest
        if ended and pending:
            arrived.append(pending)
        if arrived:
            yield [
                Record(place, line.removesuffix("\r"), None)
                for place, line in enumerate(arrived, start=number)
            ]
            number += len(arrived)


def count_lines(path: Path) -> int | None:
    """Count the lines of a file, unless it is a stream or packed."""
    if not path.is_file() or path.suffix.lower() == ".gz":
        return None
    with path.open("rb") as file:
        return sum(piece.count(b"\n") for piece in iter(partial(file.read, 1 << 20), b""))


@contextmanager
def opened(source: Source, *, plain: bool = False) -> Iterator[Iterator[str]]:
    """Open the file as lines of checked text, and turn what the system says into our errors.

    Plain lines end at newlines only and may hold anything; those of a table hold no NUL.
    """
    path = source.path
    if path.is_dir():
        raise source.error("a folder where a file was expected")
    try:
        with path.open("rb") as stored:
            packed = path.name.lower().endswith(".gz")
            content = gzip.GzipFile(fileobj=stored) if packed else stored
            # Bytes that cannot be decoded come through as surrogates, so that the line they stand
            # in is known; and newline="" because the csv module wants line ends as they are.
            codec, newline = _codec(source), "\n" if plain else ""
            with TextIOWrapper(content, codec, errors="surrogateescape", newline=newline) as text:
                lines = _checked(source, text)
                yield lines if plain else _without_nul(source, lines)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise source.error("a damaged or incomplete gzip file") from None
    except UnicodeError:  # from a codec that knows no surrogate escapes, such as UTF-16
        raise source.error(f"not {source.encoding.upper()}; --encoding says which it is") from None
    except OSError as error:
        raise source.error(f"cannot be read ({error.strerror or error})") from None


def _codec(source: Source) -> str:
    """Return the codec of the encoding that the user named; that of UTF-8 drops a leading BOM."""
    try:
        codec = codecs.lookup(source.encoding).name
        "".encode(codec)  # refuses what is a codec but not of text, such as hex
    except (LookupError, ValueError):
        raise source.error(
            f"unknown encoding {source.encoding!r}; try utf-8, utf-16, latin-1 or cp1252"
        ) from None
    return "utf-8-sig" if codec == "utf-8" else codec


def _checked(source: Source, lines: Iterable[str]) -> Iterator[str]:
    """Pass on lines that are text; stop at a byte that is not."""
    for number, line in enumerate(lines, start=1):
        if bad := surrogate_in(line):
            byte = ord(bad) & 0xFF
            guess = "utf-16" if number == 1 and byte in codecs.BOM_UTF16 else "cp1252"
            raise source.error(
                f"not {source.encoding.upper()} (byte {byte:#04x}); "
                f"if you know the encoding, say so, e.g. --encoding {guess}",
                number,
            )
        yield line


def _without_nul(source: Source, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise source.error("a NUL byte; if the file is UTF-16, say --encoding utf-16", number)
        yield line


def surrogate_in(text: str) -> str | None:
    """Find a surrogate, which is no character; encoding finds it far faster than a search."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return text[error.start]
    return None


def _table_records(
    source: Source, lines: Iterator[str], delimiter: str, delimiters: str
) -> Iterator[Record]:
    """Read a header, then rows of as many cells as it has."""
    rows = _cells(source, lines, delimiter)
    header_line, header = next(rows, (0, []))
    if not header:
        return
    text_at, label_at = _columns(source, header, "header", header_line)
    line = header_line
    for line, cells in rows:
        if len(cells) != len(header):
            columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            problem = f"{columns} where the header has {len(header)}"
            if len(cells) > len(header):
                problem += f"; a text with {delimiters} must stand in quotes"
            raise source.error(problem, line)
        label = None if label_at is None else cells[label_at]
        yield Record(line, cells[text_at], label, header, cells)
    if line == header_line:
        raise source.error("no rows after the header")


def _cells(source: Source, lines: Iterator[str], delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the line at which it begins."""
    # The limit belongs to the whole process, so raise it and leave it: restoring it when one
    # generator ends would cut the fields of another that is still being read.
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    first = next(lines, "")
    if first.startswith("sep="):
        raise source.error(f"{first.strip()[:40]!r} is for Excel alone; delete this line", 1)
    # Without strict, a quote that is never closed would swallow the rest of the file in silence.
    reader = csv.reader(chain([first] * bool(first), lines), delimiter=delimiter, strict=True)
    while True:
        line = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            problem = 'a quote inside a quoted field must be doubled ("")'
            if "unexpected end" in str(error):
                problem = "a quoted field begins in this row and is never closed"
            elif line == 1:
                problem = _other_separator(first, '"{}"') or problem
            raise source.error(problem, line) from None
        if len(cells) > 1 or any(map(str.strip, cells)):
            yield line, cells


def _columns(source: Source, found: list[str], holder: str, line: int) -> tuple[int, int | None]:
    """Find the columns, or keys, of the text and, if it is asked for, of the label."""
    label = source.label_column
    return (
        _column(source, source.text_column, found, holder, line),
        None if label is None else _column(source, label, found, holder, line),
    )


def _column(source: Source, wanted: str, found: list[str], holder: str, line: int) -> int:
    """Find the one column, or key, of the name that is wanted; its case may differ."""
    at = [i for i, name in enumerate(found) if name == wanted]
    folded = wanted.strip().casefold()
    at = at or [i for i, name in enumerate(found) if name.strip().casefold() == folded]
    if len(at) == 1:
        return at[0]
    shown = ", ".join(repr(name[:40]) for name in found[:20])
    problem = f"{len(at) or 'no'} column{'s' if at else ''} {wanted!r} in the {holder} ({shown})"
    advice = "rename all but one" if at else _advice(source, found)
    raise source.error(f"{problem}; {advice}", line)


def _advice(source: Source, found: list[str]) -> str:
    """Say what to do about a missing column: often the columns are separated by something else."""
    if source.kind != ".jsonl" and len(found) == 1 and (other := _other_separator(found[0])):
        return other
    labels = "" if source.label_column is None else " and --label-column"
    header = "" if source.kind == ".jsonl" else ", or add a header if there is none"
    return f"name yours with --text-column{labels}{header}"


def _other_separator(header: str, pattern: str = "{}") -> str | None:
    """Say what to do about a header whose columns are separated by something else."""
    marks = (mark for mark in _OTHER_SEPARATORS if pattern.format(mark) in header)
    return next((_OTHER_SEPARATORS[mark] for mark in marks), None)


_OTHER_SEPARATORS = {
    "\t": "its columns are separated by tabs: rename the file to .tsv",
    ";": "its columns are separated by semicolons: save it with commas, or with tabs as .tsv",
    "|": "its columns are separated by bars: save it with commas, or with tabs as .tsv",
    ",": "its columns are separated by commas: rename the file to .csv",
}


_ONE_LIST = "a JSON list; write one object per line, without brackets and commas around them"


def _json_records(source: Source, lines: Iterator[str]) -> Iterator[Record]:
    """Read one JSON object per line; ``null`` is an empty text or label, as an empty cell is."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            problem = _ONE_LIST if line.strip() == "[" else f"not valid JSON ({reason})"
            raise source.error(problem, number) from None
        if isinstance(record, list):
            raise source.error(_ONE_LIST, number)
        if not isinstance(record, dict):
            raise source.error(f"a JSON object was expected, found {line.strip()[:40]}", number)
        names = list(record)
        text_at, label_at = _columns(source, names, "object", number)
        text = _json_value(source, record, names[text_at], number)
        label = None if label_at is None else _json_value(source, record, names[label_at], number)
        if not isinstance(text, str):
            raise source.error(f"the text must be a string, found {json.dumps(text)[:40]}", number)
        yield Record(number, text, label, names, list(record.values()))


def _json_value(source: Source, record: dict[str, Any], key: str, line: int) -> Any:
    value = record[key]
    if isinstance(value, str) and surrogate_in(value):
        raise source.error(f"half a surrogate pair in {key!r}, which is no character", line)
    return "" if value is None else value


TABLES: dict[str, Callable[[Source, Iterator[str]], Iterator[Record]]] = {
    ".csv": partial(_table_records, delimiter=DELIMITERS[".csv"], delimiters="commas"),
    ".tsv": partial(_table_records, delimiter=DELIMITERS[".tsv"], delimiters="tabs"),
    ".jsonl": _json_records,
}
