"""What ``fathomer check`` and ``fathomer data check`` know about each text, gathered in one pass.

If a file cannot be read as asked, the survey tries another encoding or other columns and records
that it did.
"""

import codecs
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, tee
from pathlib import Path
from typing import NamedTuple

from fathomer.data.csv_jsonl import describe_delimiter, read_delimiter, same_column
from fathomer.data.examples import Examples, split_labels
from fathomer.data.reading import ReadOptions, Row, read_columns, read_rows
from fathomer.data.xlsx_parquet import BINARY_TABLES, check_kind
from fathomer.errors import DataError
from fathomer.open_files import codec_of, format_suffix, guess_encoding
from fathomer.text.tokenizer import split_words

SAMPLE = 500
"""Rows that are read to guess the columns."""

# UTF-8 that was read as cp1252 or Latin-1, cp1252 that was read as Latin-1, and U+FFFD.
_MANGLED = re.compile("[ÃÂ][\u0080-\u00bf]|â€|[\u0080-\u009f]|\N{REPLACEMENT CHARACTER}")
# Scripts without spaces between words: Thai, Lao, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = re.compile("[\u0e01-\u0edf\u1000-\u109f\u1780-\u17ff\u3041-\u30ff\u3400-\u9fff]{8}")
_NUMBER = re.compile(r"\s*[-+]?[\d.,]*\d[%€$]?\s*")


class SurveyedText(NamedTuple):
    """The facts about one row; the text itself is not kept."""

    line: int
    labels: tuple[str, ...]
    """Its label, or several labels in sorted order."""
    skip_reason: str | None
    """Why the row is not an example, or ``None`` if it is one."""
    key: int
    """A hash, equal for equal texts."""
    words: int
    is_number: bool
    is_mangled: bool
    """Whether characters were lost or damaged by a wrong encoding."""
    is_undecodable: bool
    """Whether some bytes were lost when the text was decoded."""
    is_unspaced: bool
    """Whether the text is in a script without spaces between words."""


@dataclass(frozen=True)
class Survey:
    """The facts about a file, or about one part of a corpus."""

    name: str
    unit: str
    """What ``line`` counts: ``"line"`` of a text file, ``"row"`` of a workbook or Parquet file,
    ``"text"`` of a corpus."""
    asked: ReadOptions
    used: ReadOptions
    """The options that the file was read with, which may differ from those asked for."""
    columns: tuple[str, ...]
    texts: list[SurveyedText]
    problem: str | None = None
    """Why the file could not be read to its end; there are no texts then."""
    separator: str | None = None
    """A line about the separator of the columns, if it is an unusual one."""

    @cached_property
    def examples(self) -> list[SurveyedText]:
        """The texts that training would use."""
        return [text for text in self.texts if text.skip_reason is None]

    @cached_property
    def skipped(self) -> dict[str, list[int]]:
        """Lines of the rows that training would skip, by reason."""
        lines: dict[str, list[int]] = {}
        for text in self.texts:
            if text.skip_reason:
                lines.setdefault(text.skip_reason, []).append(text.line)
        return lines

    @cached_property
    def label_counts(self) -> dict[str, int]:
        """Number of examples of each label, the most frequent first."""
        labels = (label for example in self.examples for label in example.labels)
        return dict(Counter(labels).most_common())

    @property
    def words(self) -> int:
        """Number of words in all examples."""
        return sum(example.words for example in self.examples)


def survey_examples(name: str, examples: Examples) -> Survey:
    """Survey the examples of a corpus."""
    rows = (Row(number, *example) for number, example in enumerate(examples, start=1))
    options = ReadOptions()
    return Survey(name, "text", options, options, (), list(_survey_rows(rows, options)))


def survey_file(path: Path, asked: ReadOptions) -> Survey:
    """Survey a user's file; an error in the file becomes part of the survey."""
    used, columns, texts = asked, list[str](), list[SurveyedText]()
    problem = separator = None
    is_binary = format_suffix(path) in BINARY_TABLES
    codec_of(asked.encoding)  # an unknown encoding is the user's mistake, not a finding
    try:
        if not is_binary:
            check_kind(path)  # before a workbook is taken for a text in another encoding
            if codecs.lookup(asked.encoding).name == "utf-8":
                used = replace(asked, encoding=guess_encoding(path))
        columns = read_columns(path, used.encoding)
        separator = describe_delimiter(path, read_delimiter(path, used.encoding))
        used = guess_columns(path, columns, used)
        texts = list(_survey_rows(read_rows(path, used), used))
    except DataError as error:
        problem = str(error)
    unit = "row" if is_binary else "line"
    return Survey(str(path), unit, asked, used, tuple(columns), texts, problem, separator)


def _survey_rows(rows: Iterable[Row], options: ReadOptions) -> Iterator[SurveyedText]:
    rows, same_rows = tee(rows)
    labels_of: dict[str, tuple[str, ...]] = {}
    for row, words in zip(rows, split_words(row.text for row in same_rows), strict=True):
        if row.label not in labels_of:
            several = tuple(sorted(split_labels(row.label)))
            labels_of[row.label] = several if options.multi_label else (row.label,)
        yield SurveyedText(
            line=row.line,
            labels=labels_of[row.label],
            skip_reason=row.skip_reason(multi_label=options.multi_label),
            key=hash(row.text),
            words=len(words),
            is_number=_NUMBER.fullmatch(row.text) is not None,
            is_mangled=_MANGLED.search(row.text) is not None,
            is_undecodable="\N{REPLACEMENT CHARACTER}" in row.text,
            is_unspaced=_UNSPACED.search(row.text) is not None,
        )


def guess_columns(path: Path, columns: list[str], options: ReadOptions) -> ReadOptions:
    """Return options with likely columns in place of those that the file does not have.

    Texts are where the values are longest, labels where the fewest different values are.
    """
    text, label = options.text_column, options.label_column or ""
    if not any(same_column(column, text) for column in columns):
        lengths = {
            column: sum(len(row.text) for row in rows)
            for column in columns
            if not same_column(column, label)
            and (rows := _sample(path, replace(options, text_column=column, label_column=column)))
        }
        text = max(lengths, key=lengths.__getitem__, default=text)
    if not any(same_column(column, label) for column in columns):
        values = {}
        for column in columns:
            rows = _sample(path, replace(options, text_column=text, label_column=column))
            found = len({row.label for row in rows if row.label})
            if column != text and 2 <= found <= len(rows) / 2:
                values[column] = found
        label = min(values, key=values.__getitem__, default=label)
    return replace(options, text_column=text, label_column=label)


def _sample(path: Path, options: ReadOptions) -> list[Row]:
    """Read the first rows; return none if the file cannot be read with these options."""
    try:
        return list(islice(read_rows(path, options), SAMPLE))
    except DataError:
        return []
