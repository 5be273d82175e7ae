"""Readers of labelled texts: ``.csv``, ``.tsv``, ``.jsonl`` and fastText's ``__label__`` lines.

A row with an empty label or a blank text is a row, and :func:`read_examples` counts it as skipped.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.data.examples import Example, Examples
from fathomer.data.records import TABLES, Source, opened
from fathomer.errors import DataError

KINDS = ".csv, .tsv, .jsonl, or fastText's __label__ lines in .txt or .ft, each also with .gz"
PREFIX = "__label__"
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


_Reader = Callable[[Source, Iterator[str]], Iterator[Row]]


def read_examples(
    path: Path, *, text_column: str = "text", label_column: str = "label", encoding: str = "utf-8"
) -> Examples:
    """Read a file of labelled texts, and count the rows that lack a text or a label."""
    items: list[Example] = []
    skipped: Counter[str] = Counter()
    for row in iterate_rows(
        path, text_column=text_column, label_column=label_column, encoding=encoding
    ):
        if row.missing:
            skipped[row.missing] += 1
        else:
            items.append(Example(row.text, row.label))
    examples = Examples(items, dict(skipped))
    if not items:
        raise DataError(f"{path}: no row has both a text and a label; {examples.account()}")
    return examples


def iterate_rows(
    path: Path, *, text_column: str = "text", label_column: str = "label", encoding: str = "utf-8"
) -> Iterator[Row]:
    """Stream the rows of a file, those without a text or a label included.

    Labels come without surrounding white space, texts exactly as they stand in the file.
    """
    source = Source(path, text_column, label_column, encoding)
    reader = _reader_of(source)
    with opened(source) as lines:
        row = None
        for row in reader(source, lines):
            yield row
        if row is None:
            raise source.error("the file is empty")


def _reader_of(source: Source) -> _Reader:
    """Choose the reader by the file's name or, if that says nothing, by its first line."""
    reader = _READERS.get(source.kind)
    if reader is not None:
        return reader
    with opened(source) as lines:
        first = next(filter(str.strip, lines), None)
    if first is None:
        raise source.error("the file is empty")
    if first.lstrip().startswith(PREFIX):
        return _fasttext_rows
    raise source.error(f"not a kind of file that can be read; give {KINDS}")


def _table_rows(source: Source, lines: Iterator[str]) -> Iterator[Row]:
    """Read the records of a table, each with its label as a string."""
    for record in TABLES[source.kind](source, lines):
        yield Row(record.line, record.text, _label(source, record.label, record.line))


def _label(source: Source, label: Any, line: int) -> str:
    """Write a label as a string: ``true`` for a boolean, ``4`` for 4 and for 4.0."""
    if isinstance(label, str):
        return label.strip()
    if isinstance(label, bool):
        return "true" if label else "false"
    # Whole floats are what a table with a missing label becomes on its way through pandas.
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))
    found = json.dumps(label)[:40]
    raise source.error(f"the label must be a string or a whole number, found {found}", line)


def _fasttext_rows(source: Source, lines: Iterator[str]) -> Iterator[Row]:
    """Read lines of ``__label__X``, one space or tab, and a text."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = FASTTEXT.match(line)
        if found is None:
            raise source.error(f"no {PREFIX} at the start of the line", number)
        text = line[found.end() :].rstrip("\r\n")
        if PREFIX in text and any(word.startswith(PREFIX) for word in text.split()):
            raise source.error("several labels; multi-label data is not supported", number)
        yield Row(number, text, found[1].strip())


_READERS: dict[str, _Reader] = {
    **dict.fromkeys(TABLES, _table_rows),
    ".txt": _fasttext_rows,
    ".ft": _fasttext_rows,
}
