"""Reading files of texts: csv, tsv, jsonl, Excel, Parquet, fastText and plain lines.

Rows are streamed. :func:`read_examples` skips and counts those without a text or a label.
"""

import codecs
import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from io import BufferedReader
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.data.csv_jsonl import (
    DELIMITERS,
    TABLES,
    find_column,
    json_value,
    parse_objects,
    same_column,
    split_table,
)
from fathomer.data.examples import SEPARATOR, Example, Examples, StoredExamples
from fathomer.data.xlsx_parquet import BINARY_TABLES, check_kind, read_names, read_records
from fathomer.errors import DataError
from fathomer.open_files import codec_of, file_error, format_suffix, open_lines

FORMATS = (
    ".csv, .tsv, .jsonl, or fastText's __label__ lines in .txt or .ft, each also with .gz; "
    ".xlsx or .parquet"
)
MISSING_LABELS = ("nan", "null", "<na>", "#n/a")
"""What programs write, in any case, where there is no label."""
PREFIX = "__label__"
FASTTEXT_LABEL = re.compile(rf"[ \t]*{PREFIX}([^ \t\r\n]*)[ \t]?")


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file of texts."""

    text_column: str = "text"
    label_column: str | None = "label"
    """If ``None``, labels are ignored, and a file that is not a table has one text per line."""
    encoding: str = "utf-8"
    multi_label: bool = False
    """Whether a text may have several labels (a list, or ``a|b``), or none."""


DEFAULT_OPTIONS = ReadOptions()


class Row(NamedTuple):
    """One row of a file."""

    line: int
    """The line on which the row starts, from 1."""
    text: str
    label: str = ""
    names: Sequence[str] = ()
    """All columns of a table, or keys of a JSON object."""
    values: Sequence[Any] = ()

    def skip_reason(self, *, multi_label: bool = False) -> str | None:
        """Return why the row is not an example, or ``None`` if it is one."""
        if not self.label and not multi_label:
            return "empty label"
        if self.label.casefold() in MISSING_LABELS:
            return "missing label"
        return None if self.text.strip() else "empty text"


_Parser = Callable[[Path, Iterator[str], ReadOptions], Iterator[Row]]


def read_examples(path: Path, options: ReadOptions = DEFAULT_OPTIONS) -> Examples:
    """Read a file of labelled texts, and count the rows without a text or a label."""
    skipped: Counter[str] = Counter()

    def usable() -> Iterator[Example]:
        for row in read_rows(path, options):
            if reason := row.skip_reason(multi_label=options.multi_label):
                skipped[reason] += 1
            else:
                yield Example(row.text, row.label)

    items = StoredExamples.collect(usable())
    examples = Examples(items, dict(skipped), multi_label=options.multi_label)
    if not items:
        raise DataError(f"{path}: no row has both a text and a label; {examples.summary()}")
    return examples


def read_rows(path: Path, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Row]:
    """Stream the rows of a file, including those without a text or a label.

    Labels are stripped of surrounding white space; texts are exactly as in the file.
    """
    if format_suffix(path) in BINARY_TABLES:
        yield from _parse_records(path, options)
        return
    check_kind(path)
    parse = _parser_for(path, options)
    is_plain = parse is _parse_plain
    with open_lines(path, options.encoding, plain=is_plain) as lines:
        row = None
        for row in parse(path, lines, options):
            yield row
        if row is None and not is_plain:
            raise file_error(path, "the file is empty")


def read_stream(stream: BufferedReader, encoding: str) -> Iterator[list[Row]]:
    """Yield the lines of a stream as they arrive, all that are available at a time.

    Bytes that cannot be decoded become U+FFFD, so that a stream goes on after them.
    """
    decoder = codecs.getincrementaldecoder(codec_of(encoding))(errors="replace")
    number, pending, ended = 1, "", False
    while not ended:
        block = stream.read1(1 << 16)  # blocks only until the first byte
        ended = not block
        try:
            decoded = decoder.decode(block, final=ended)
        except UnicodeError as error:  # UTF-16 without a byte order mark
            raise DataError(f"standard input: {error}; pass the right --encoding") from None
        lines, newline, rest = decoded.rpartition("\n")
        arrived = (pending + lines).split("\n") if newline else []
        pending = rest if newline else pending + rest
        if ended and pending:
            arrived.append(pending)
        if arrived:
            yield [
                Row(place, line.removesuffix("\r")) for place, line in enumerate(arrived, number)
            ]
            number += len(arrived)


def read_columns(path: Path, encoding: str) -> list[str]:
    """Return the columns of a table, or the keys of the first JSON object; others have none."""
    suffix = format_suffix(path)
    if suffix in BINARY_TABLES:
        return read_names(path)
    if suffix not in TABLES:
        return []
    check_kind(path)
    with open_lines(path, encoding) as lines:
        if suffix in DELIMITERS:
            return next(split_table(path, lines), (0, []))[1]
        first = next(filter(str.strip, lines), "")
    try:
        found = json.loads(first)
    except (ValueError, RecursionError):  # reading the rows reports it
        return []
    return list(found) if isinstance(found, dict) else []


def _parser_for(path: Path, options: ReadOptions) -> _Parser:
    """Choose the parser by the file's name or, if that is not enough, by its first line."""
    suffix = format_suffix(path)
    if suffix in TABLES:
        return _parse_table if suffix in DELIMITERS else _parse_json
    if options.label_column is None:
        return _parse_plain
    if suffix in (".txt", ".ft"):
        return _parse_fasttext
    with open_lines(path, options.encoding) as lines:
        first = next(filter(str.strip, lines), None)
    if first is None:
        raise file_error(path, "the file is empty")
    if first.lstrip().startswith(PREFIX):
        return _parse_fasttext
    raise file_error(path, f"unsupported file format; use {FORMATS}")


def _parse_plain(_path: Path, lines: Iterator[str], _options: ReadOptions) -> Iterator[Row]:
    for number, line in enumerate(lines, start=1):
        yield Row(number, line.removesuffix("\n").removesuffix("\r"))


def _parse_table(path: Path, lines: Iterator[str], options: ReadOptions) -> Iterator[Row]:
    rows = split_table(path, lines)
    header_line, header = next(rows, (0, []))
    if not header:
        return
    text_at, label_at = _find_columns(path, header, options, header_line)
    for line, cells in rows:
        label = "" if label_at is None else cells[label_at].strip()
        yield Row(line, cells[text_at], label, header, cells)


def _parse_json(path: Path, lines: Iterator[str], options: ReadOptions) -> Iterator[Row]:
    for line, found in parse_objects(path, lines):
        names = list(found)
        text_at, label_at = _find_columns(path, names, options, line)
        text, label = json_value(path, found, names[text_at], line), ""
        if not isinstance(text, str):
            problem = f"the text must be a string, found {json.dumps(text)[:40]}"
            raise file_error(path, problem, line)
        if label_at is not None:
            value = json_value(path, found, names[label_at], line)
            label = _label_string(path, value, line, options)
        yield Row(line, text, label, names, list(found.values()))


def _parse_records(path: Path, options: ReadOptions) -> Iterator[Row]:
    """Parse the rows of a workbook or a Parquet file."""
    row = None
    for number, names, values in read_records(path):
        if row is None:
            text_at, label_at = _find_columns(path, names, options, number)
        text = values[text_at]
        if text is None or text != text:
            text = ""
        elif format_suffix(path) == ".xlsx":
            text = str(text)  # Excel turns what looks like a number into one
        elif not isinstance(text, str):
            raise file_error(path, f"the text must be a string, found {text!r:.40}", number)
        label = "" if label_at is None else _label_string(path, values[label_at], number, options)
        row = Row(number, text, label, names, values)
        yield row
    if row is None:
        raise file_error(path, "the file has no rows")


def _find_columns(
    path: Path, names: Sequence[str], options: ReadOptions, line: int
) -> tuple[int, int | None]:
    """Return the index of the text column and, where labels are read, of the label column."""
    label = options.label_column
    has_label = label is None or any(same_column(name, label) for name in names)
    flags = "--text-column" if has_label else "--text-column and --label-column"
    return (
        find_column(path, options.text_column, names, line, flags=flags),
        None if label is None else find_column(path, label, names, line, flags="--label-column"),
    )


def _label_string(path: Path, label: Any, line: int, options: ReadOptions) -> str:
    """Return a label as a string: ``true`` for a boolean, ``4`` for 4 and for 4.0."""
    if isinstance(label, str):
        return label.strip()
    if label is None:
        return ""
    if label != label:  # NaN
        return "NaN"
    if isinstance(label, list):
        labels = [_label_string(path, one, line, options) for one in label]
        return _join_labels(path, labels, line, options)
    if isinstance(label, bool):
        return "true" if label else "false"
    # pandas writes whole numbers as floats if some label of the column is missing.
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))
    found = json.dumps(label, default=str)[:40]
    raise file_error(path, f"the label must be a string or a whole number, found {found}", line)


def _join_labels(path: Path, labels: list[str], line: int, options: ReadOptions) -> str:
    """Return several labels as one string, if they are allowed."""
    if not options.multi_label:
        raise file_error(path, "a list of labels; pass --multi-label to read it", line)
    for label in labels:
        if not label or SEPARATOR in label:
            problem = f"a label must not be empty or contain {SEPARATOR!r}, found {label!r}"
            raise file_error(path, problem, line)
    return SEPARATOR.join(labels)


def _parse_fasttext(path: Path, lines: Iterator[str], options: ReadOptions) -> Iterator[Row]:
    """Parse lines of ``__label__X``, one space or tab, and a text."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = FASTTEXT_LABEL.match(line)
        if found is None:
            hint = "; rename a table to .csv or .tsv" if number == 1 else ""
            raise file_error(path, f"no {PREFIX} at the start of the line{hint}", number)
        labels, end = [found[1].strip()], found.end()
        while options.multi_label and (found := FASTTEXT_LABEL.match(line, end)):
            labels.append(found[1].strip())
            end = found.end()
        text = line[end:].rstrip("\r\n")
        if PREFIX in text and any(word.startswith(PREFIX) for word in text.split()):
            problem = "several labels; put them at the start and pass --multi-label"
            raise file_error(path, problem, number)
        label = labels[0] if len(labels) == 1 else _join_labels(path, labels, number, options)
        yield Row(number, text, label)
