"""Readers of labelled texts: ``.csv``, ``.tsv``, ``.jsonl`` and fastText's ``__label__`` lines.

A row with an empty label or a blank text is a row, and :func:`read_examples` counts it as skipped.
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.data.examples import SEPARATOR, Example, Examples, StoredExamples
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
    skipped: Counter[str] = Counter()
    rows = iterate_rows(
        path,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        multi_label=multi_label,
    )

    def kept() -> Iterator[Example]:
        for row in rows:
            if row.missing and not (multi_label and row.text.strip()):
                skipped[row.missing] += 1
            else:
                yield Example(row.text, row.label)

    items = StoredExamples.collect(kept())
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
    source = Source(path, text_column, label_column, encoding, multi_label)
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
    if isinstance(label, list):
        return _joined(source, [_label(source, one, line) for one in label], line)
    if isinstance(label, bool):
        return "true" if label else "false"
    # Whole floats are what a table with a missing label becomes on its way through pandas.
    if isinstance(label, int) or (isinstance(label, float) and label.is_integer()):
        return str(int(label))
    found = json.dumps(label)[:40]
    raise source.error(f"the label must be a string or a whole number, found {found}", line)


def _joined(source: Source, labels: list[str], line: int) -> str:
    """Write several labels as one string, if they are welcome."""
    if not source.multi_label:
        raise source.error("a list of labels; --multi-label reads several per text", line)
    for label in labels:
        if not label or SEPARATOR in label:
            raise source.error(f"a label is empty or holds {SEPARATOR!r}: {label!r}", line)
    return SEPARATOR.join(labels)


def _fasttext_rows(source: Source, lines: Iterator[str]) -> Iterator[Row]:
    """Read lines of ``__label__X``, one space or tab, and a text."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = FASTTEXT.match(line)
        if found is None:
            hint = "; a table must be called .csv or .tsv" if number == 1 else ""
            raise source.error(f"no {PREFIX} at the start of the line{hint}", number)
        labels, end = [found[1].strip()], found.end()
        while source.multi_label and (found := FASTTEXT.match(line, end)):
            labels.append(found[1].strip())
            end = found.end()
        text = line[end:].rstrip("\r\n")
        if PREFIX in text and any(word.startswith(PREFIX) for word in text.split()):
            raise source.error("several labels; --multi-label reads them at the start", number)
        yield Row(number, text, labels[0] if len(labels) == 1 else _joined(source, labels, number))


_READERS: dict[str, _Reader] = {
    **dict.fromkeys(TABLES, _table_rows),
    ".txt": _fasttext_rows,
    ".ft": _fasttext_rows,
}
