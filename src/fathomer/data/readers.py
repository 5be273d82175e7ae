"""Readers of labelled texts: ``.csv``, ``.tsv``, ``.jsonl`` and fastText's ``__label__`` lines.

Each of them may also be compressed (``reviews.csv.gz``). Rows are streamed, and whatever is wrong
with a file is one :class:`DataError` that names the file and the physical line.

A line of nothing but white space is no row and is passed over; a row with an empty label or a blank
text is a row, and :func:`read_examples` counts it as skipped.
"""

import codecs
import csv
import gzip
import json
import re
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.data.examples import SEPARATOR, Example, Examples
from fathomer.errors import DataError, MissingFileError

KINDS = ".csv, .tsv, .jsonl, or fastText's __label__ lines in .txt or .ft, each also with .gz"
PREFIX = "__label__"
FIELD_LIMIT = 2**31 - 1  # the most that a C long holds on every platform
FASTTEXT = re.compile(rf"[ \t]*{PREFIX}([^ \t\r\n]*)[ \t]?")


class Row(NamedTuple):
    """Hold one row of a file with the physical line at which it begins."""

    line: int
    text: str
    label: str

    @property
    def missing(self) -> str | None:
        """Say why the row is no example: ``"empty label"``, ``"empty text"``, or nothing."""
        if not self.label:
            return "empty label"
        return None if self.text.strip() else "empty text"


@dataclass(frozen=True)
class _Source:
    """Hold what the user said about the file, and word the errors about it."""

    path: Path
    text_column: str
    label_column: str
    encoding: str
    multi_label: bool = False

    def error(self, problem: str, line: int | None = None) -> DataError:
        place = str(self.path) if line is None else f"{self.path}, line {line}"
        return DataError(f"{place}: {problem}")


_Reader = Callable[[_Source, Iterator[str]], Iterator[Row]]


def read_examples(
    path: Path,
    *,
    text_column: str = "text",
    label_column: str = "label",
    encoding: str = "utf-8",
    multi_label: bool = False,
) -> Examples:
    """Read a file of labelled texts, and count the rows that lack a text or a label.

    With ``multi_label`` a row may have several labels (a list, or ``a|b``), or none.
    """
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for row in iterate_rows(
        path,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        multi_label=multi_label,
    ):
        if row.missing and not (multi_label and row.text.strip()):
            skipped[row.missing] += 1
        else:
            items.append(Example(row.text, row.label))
    examples = Examples(items, dict(skipped), multi_label=multi_label)
    if not items:
        raise DataError(f"{path}: no row has both a text and a label; {examples.account()}")
    return examples


def iterate_rows(
    path: Path,
    *,
    text_column: str = "text",
    label_column: str = "label",
    encoding: str = "utf-8",
    multi_label: bool = False,
) -> Iterator[Row]:
    """Stream the rows of a file, those without a text or a label included.

    Labels come without surrounding white space, texts exactly as they stand in the file.
    """
    source = _Source(path, text_column, label_column, encoding, multi_label)
    reader = _reader_of(source)
    with _opened(source) as lines:
        row = None
        for row in reader(source, lines):
            yield row
        if row is None:
            raise source.error("the file is empty")


def _reader_of(source: _Source) -> _Reader:
    """Choose the reader by the file's name or, if that says nothing, by its first line."""
    name = source.path.name.lower().removesuffix(".gz")
    reader = _READERS.get(Path(name).suffix)
    if reader is not None:
        return reader
    with _opened(source) as lines:
        first = next(filter(str.strip, lines), None)
    if first is None:
        raise source.error("the file is empty")
    if first.lstrip().startswith(PREFIX):
        return _fasttext_rows
    raise source.error(f"not a kind of file that can be read; give {KINDS}")


@contextmanager
def _opened(source: _Source) -> Iterator[Iterator[str]]:
    """Open the file as lines of checked text, and turn what the system says into our errors."""
    path = source.path
    if path.is_dir():
        raise source.error("a folder where a file was expected")
    try:
        with path.open("rb") as stored:
            packed = path.name.lower().endswith(".gz")
            plain = gzip.GzipFile(fileobj=stored) if packed else stored
            # Bytes that cannot be decoded come through as surrogates, so that the line they stand
            # in is known; and newline="" because the csv module wants line ends as they are.
            codec = _codec(source)
            with TextIOWrapper(plain, codec, errors="surrogateescape", newline="") as text:
                yield _checked(source, text)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise source.error("a damaged or incomplete gzip file") from None
    except UnicodeError:  # from a codec that knows no surrogate escapes, such as UTF-16
        raise source.error(f"not {source.encoding.upper()}; --encoding says which it is") from None
    except OSError as error:
        raise source.error(f"cannot be read ({error.strerror or error})") from None


def _codec(source: _Source) -> str:
    """Return the codec of the encoding that the user named; that of UTF-8 drops a leading BOM."""
    try:
        codec = codecs.lookup(source.encoding).name
        "".encode(codec)  # refuses what is a codec but not of text, such as hex
    except (LookupError, ValueError):
        raise source.error(
            f"unknown encoding {source.encoding!r}; try utf-8, utf-16, latin-1 or cp1252"
        ) from None
    return "utf-8-sig" if codec == "utf-8" else codec


def _checked(source: _Source, lines: Iterable[str]) -> Iterator[str]:
    """Pass on lines that are text; stop at a byte that is not."""
    for number, line in enumerate(lines, start=1):
        if bad := _surrogate(line):
            byte = ord(bad) & 0xFF
            guess = "utf-16" if number == 1 and byte in codecs.BOM_UTF16 else "latin-1"
            raise source.error(
                f"not {source.encoding.upper()} (byte {byte:#04x}); "
                f"if you know the encoding, say so, e.g. --encoding {guess}",
                number,
            )
        if "\0" in line:
            raise source.error("a NUL byte; if the file is UTF-16, say --encoding utf-16", number)
        yield line


def _surrogate(text: str) -> str | None:
    """Find a surrogate, which is no character; encoding finds it far faster than a search."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return text[error.start]
    return None


def _table_rows(
    source: _Source, lines: Iterator[str], delimiter: str, delimiters: str
) -> Iterator[Row]:
    """Read a header, then rows of as many cells as it has."""
    rows = _cells(source, lines, delimiter)
    header_line, header = next(rows, (0, []))
    if not header:
        return
    text_at = _column(source, source.text_column, header, "header", header_line)
    label_at = _column(source, source.label_column, header, "header", header_line)
    line = header_line
    for line, cells in rows:
        if len(cells) != len(header):
            problem = f"{len(cells)} columns where the header has {len(header)}"
            raise source.error(f"{problem}; a text with {delimiters} must stand in quotes", line)
        yield Row(line, cells[text_at], cells[label_at].strip())
    if line == header_line:
        raise source.error("no rows after the header")


def _cells(
    source: _Source, lines: Iterator[str], delimiter: str
) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the line at which it begins."""
    # The limit belongs to the whole process, so raise it and leave it: restoring it when one
    # generator ends would cut the fields of another that is still being read.
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    # Without strict, a quote that is never closed would swallow the rest of the file in silence.
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
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
            raise source.error(problem, line) from None
        if len(cells) > 1 or any(map(str.strip, cells)):
            yield line, cells


def _column(source: _Source, wanted: str, found: list[str], holder: str, line: int) -> int:
    """Find the one column, or key, of the name that is wanted; its case may differ."""
    at = [i for i, name in enumerate(found) if name == wanted]
    folded = wanted.strip().casefold()
    at = at or [i for i, name in enumerate(found) if name.strip().casefold() == folded]
    if len(at) == 1:
        return at[0]
    shown = ", ".join(repr(name[:40]) for name in found[:20])
    problem = f"{len(at) or 'no'} column{'s' if at else ''} {wanted!r} in the {holder} ({shown})"
    raise source.error(f"{problem}; name yours with --text-column and --label-column", line)


def _json_rows(source: _Source, lines: Iterator[str]) -> Iterator[Row]:
    """Read one JSON object per line; ``null`` is an empty text or label, as an empty cell is."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise source.error(f"not valid JSON ({reason})", number) from None
        if not isinstance(record, dict):
            raise source.error(f"a JSON object was expected, found {line.strip()[:40]}", number)
        text = _json_value(source, record, source.text_column, number)
        label = _json_value(source, record, source.label_column, number)
        if not isinstance(text, str):
            raise source.error(f"the text must be a string, found {json.dumps(text)[:40]}", number)
        yield Row(number, text, _json_label(source, label, number))


def _json_value(source: _Source, record: dict[str, Any], key: str, line: int) -> Any:
    """Look a value up by its key, whose case may differ."""
    if key not in record:
        key = list(record)[_column(source, key, list(record), "object", line)]
    value = record[key]
    if isinstance(value, str) and _surrogate(value):
        raise source.error(f"half a surrogate pair in {key!r}, which is no character", line)
    return "" if value is None else value


def _json_label(source: _Source, label: Any, line: int) -> str:
    """Write a label as a string: ``true`` for a boolean, ``4`` for 4 and for 4.0."""
    if isinstance(label, str):
        return label.strip()
    if isinstance(label, list):
        return _joined(source, [_json_label(source, one, line) for one in label], line)
    if isinstance(label, bool):
        return "true" if label else "false"
    # Whole floats are what a table with a missing label becomes on its way through pandas.
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))
    found = json.dumps(label)[:40]
    raise source.error(f"the label must be a string or a whole number, found {found}", line)


def _joined(source: _Source, labels: list[str], line: int) -> str:
    """Write several labels as one string, if they are welcome."""
    if not source.multi_label:
        raise source.error("a list of labels; --multi-label reads several per text", line)
    for label in labels:
        if not label or SEPARATOR in label:
            raise source.error(f"a label is empty or holds {SEPARATOR!r}: {label!r}", line)
    return SEPARATOR.join(labels)


def _fasttext_rows(source: _Source, lines: Iterator[str]) -> Iterator[Row]:
    """Read lines of ``__label__X``, one space or tab, and a text."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = FASTTEXT.match(line)
        if found is None:
            raise source.error(f"no {PREFIX} at the start of the line", number)
        labels, end = [found[1].strip()], found.end()
        while source.multi_label and (found := FASTTEXT.match(line, end)):
            labels.append(found[1].strip())
            end = found.end()
        text = line[end:].rstrip("\r\n")
        if PREFIX in text and any(word.startswith(PREFIX) for word in text.split()):
            raise source.error("several labels; --multi-label reads them at the start", number)
        yield Row(number, text, labels[0] if len(labels) == 1 else _joined(source, labels, number))


_READERS: dict[str, _Reader] = {
    ".csv": partial(_table_rows, delimiter=",", delimiters="commas"),
    ".tsv": partial(_table_rows, delimiter="\t", delimiters="tabs"),
    ".jsonl": _json_rows,
    ".txt": _fasttext_rows,
    ".ft": _fasttext_rows,
}
