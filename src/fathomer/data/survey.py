"""What a file holds, seen in one pass before anything is trained: lines, labels, words, oddities.

Where a file is not as its reader expects it, the survey tries what would help (another encoding,
other columns) and remembers that it did.
"""

import codecs
import gzip
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, tee
from pathlib import Path
from typing import NamedTuple

from fathomer.data.check import split_words
from fathomer.data.examples import Examples, split_labels
from fathomer.data.readers import Row, iterate_rows
from fathomer.data.records import read_columns
from fathomer.errors import DataError

SAMPLE = 500
"""Rows by which the columns are told apart."""

# UTF-8 that was read as if it were cp1252 or latin-1, cp1252 that was read as latin-1, and
# characters that somebody else has lost.
_MANGLED = re.compile("[ÃÂ][\u0080-\u00bf]|â€|[\u0080-\u009f]|\N{REPLACEMENT CHARACTER}")
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = re.compile("[\u0e01-\u0edf\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]{8}")
_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d[%€$]?\s*")


class Reading(NamedTuple):
    """Say how a file is read."""

    text_column: str = "text"
    label_column: str = "label"
    encoding: str = "utf-8"
    multi_label: bool = False


class Entry(NamedTuple):
    """Hold what is known of one example; the text itself is not kept."""

    line: int
    labels: tuple[str, ...]
    """One, unless a text may have several; those are in sorted order."""
    key: int
    """The same for the same text."""
    words: int
    is_number: bool
    is_mangled: bool
    is_unspaced: bool
    """Whether its words would have to be told apart without spaces."""


@dataclass(frozen=True)
class Survey:
    """Hold what a file or a part of a corpus holds."""

    name: str
    unit: str
    """What ``line`` counts: ``"line"`` in a file, ``"text"`` in a corpus."""
    asked: Reading
    used: Reading
    """What was tried instead, if it differs."""
    columns: tuple[str, ...]
    entries: list[Entry]
    skipped: dict[str, list[int]]
    """Lines of rows that are no examples, by what they lack."""
    problem: str | None = None
    """Why the file could not be read to its end; the entries are then empty."""

    @cached_property
    def label_counts(self) -> dict[str, int]:
        """Count the examples of each label, the most frequent first."""
        labels = (label for entry in self.entries for label in entry.labels)
        return dict(Counter(labels).most_common())

    @property
    def words(self) -> int:
        """Count the words of all texts."""
        return sum(entry.words for entry in self.entries)


def survey_examples(name: str, examples: Examples) -> Survey:
    """Look at the texts of a corpus."""
    rows = (Row(number, *example) for number, example in enumerate(examples, start=1))
    survey = Survey(name, "text", Reading(), Reading(), (), [], {})
    _collect(rows, survey)
    return survey


def survey_file(path: Path, asked: Reading) -> Survey:
    """Look at a user's file; whatever is wrong with it becomes a part of the survey."""
    try:
        "".encode(asked.encoding)
    except (LookupError, UnicodeError):
        raise DataError(f"unknown encoding {asked.encoding!r}; try utf-8 or cp1252") from None
    used = asked
    if codecs.lookup(asked.encoding).name == "utf-8":
        used = asked._replace(encoding=guess_encoding(path))
    columns: list[str] = []
    try:
        columns = read_columns(path, encoding=used.encoding)
        used = guess_columns(path, columns, used)
        survey = Survey(str(path), "line", asked, used, tuple(columns), [], {})
        _collect(iterate_rows(path, **used._asdict()), survey)
    except DataError as error:  # what was read so far says nothing about the rest
        return Survey(str(path), "line", asked, used, tuple(columns), [], {}, str(error))
    return survey


def _collect(rows: Iterable[Row], survey: Survey) -> None:
    """Go through the rows once and note what is needed of each."""
    rows, same_rows = tee(rows)
    multi_label, known = survey.used.multi_label, dict[str, tuple[str, ...]]()
    for row, words in zip(rows, split_words(row.text for row in same_rows), strict=True):
        if row.missing and not (multi_label and row.text.strip()):
            survey.skipped.setdefault(row.missing, []).append(row.line)
            continue
        if row.label not in known:
            several = tuple(sorted(split_labels(row.label)))
            known[row.label] = several if multi_label else (row.label,)
        entry = Entry(
            line=row.line,
            labels=known[row.label],
            key=hash(row.text),
            words=len(words),
            is_number=_NUMBER.fullmatch(row.text) is not None,
            is_mangled=_MANGLED.search(row.text) is not None,
            is_unspaced=_UNSPACED.search(row.text) is not None,
        )
        survey.entries.append(entry)


def guess_encoding(path: Path) -> str:
    """Find an encoding that fits all bytes: UTF-8 before all others."""
    fitting = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", "cp1252")}
    try:
        for number, block in enumerate(_blocks(path)):
            if number == 0 and block.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            for name in tuple(fitting):
                try:
                    fitting[name].decode(block, final=not block)
                except UnicodeDecodeError:
                    del fitting[name]
    except (OSError, EOFError, zlib.error):  # whoever reads the rows will say so
        return "utf-8"
    return next(iter(fitting), "latin-1")


def _blocks(path: Path) -> Iterator[bytes]:
    """Read a file in blocks; an empty one is the last."""
    with gzip.open(path) if path.name.lower().endswith(".gz") else path.open("rb") as stream:
        while block := stream.read(1 << 20):
            yield block
    yield b""


def guess_columns(path: Path, columns: list[str], reading: Reading) -> Reading:
    """Find columns that could be meant, in place of those that are not there.

    The texts are where the values are longest, the labels where there are fewest different ones.
    """
    there = {column.strip().casefold() for column in columns}
    text, label = reading.text_column, reading.label_column
    if text.strip().casefold() not in there:
        lengths = {
            column: sum(len(row.text) for row in rows)
            for column in columns
            if column.strip().casefold() != label.strip().casefold()
            and (rows := _sample(path, reading._replace(text_column=column, label_column=column)))
        }
        text = max(lengths, key=lengths.__getitem__, default=text)
    if label.strip().casefold() not in there:
        different = {}
        for column in columns:
            rows = _sample(path, reading._replace(text_column=text, label_column=column))
            found = len({row.label for row in rows if row.label})
            if column != text and 2 <= found <= len(rows) / 2:
                different[column] = found
        label = min(different, key=different.__getitem__, default=label)
    return reading._replace(text_column=text, label_column=label)


def _sample(path: Path, reading: Reading) -> list[Row]:
    """Read some rows; none if the file cannot be read like this."""
    try:
        return list(islice(iterate_rows(path, **reading._asdict()), SAMPLE))
    except DataError:
        return []
