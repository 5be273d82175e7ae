"""The formats in which the corpora are published, one small reader each.

A reader takes an open file of bytes and gives rows with the label as the file writes it. A byte
that the encoding does not have becomes U+FFFD, and ``fathomer data check`` counts such texts: a
published corpus is taken as it is, for its figures are known for the whole of it.
"""

import csv
from collections.abc import Callable, Iterator
from typing import IO

from fathomer.data.readers import Row
from fathomer.data.records import FIELD_LIMIT
from fathomer.errors import DataError

Layout = Callable[[IO[bytes], str, str], Iterator[Row]]
"""Takes a file, what to call it in errors, and its encoding."""


def _lines(stream: IO[bytes], encoding: str) -> Iterator[tuple[int, str]]:
    """Split at newlines only: these texts hold other characters that end a line elsewhere."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield number, line.decode(encoding, "replace").rstrip("\r\n")


def plain_lines(stream: IO[bytes], _where: str, encoding: str) -> Iterator[Row]:
    """Read one text per line; the label is that of the file (``rt-polarity``, ``plot``, ``quote``).

    >>> import io
    >>> next(plain_lines(io.BytesIO(b"a fine film . "), "mr", "cp1252")).text
    'a fine film .'
    """
    for number, line in _lines(stream, encoding):
        yield Row(number, line.strip(), "")


def question_lines(stream: IO[bytes], where: str, encoding: str) -> Iterator[Row]:
    """Read ``COARSE:fine question`` (``.label``); the coarse class is the label.

    >>> import io
    >>> next(question_lines(io.BytesIO(b"NUM:date When was it ?"), "trec", "cp1252"))
    Row(line=1, text='When was it ?', label='NUM')
    """
    for number, line in _lines(stream, encoding):
        classes, _, text = line.partition(" ")
        coarse, colon, _ = classes.partition(":")
        if not colon:
            raise DataError(f"{where}, line {number}: 'COARSE:fine question' was expected")
        yield Row(number, text.strip(), coarse)


def tabbed_lines(stream: IO[bytes], where: str, encoding: str) -> Iterator[Row]:
    """Read a label, a tab and a text (``.task.train``, ``.task.test``); the text may be empty."""
    for number, line in _lines(stream, encoding):
        label, tab, text = line.partition("\t")
        if not tab:
            raise DataError(f"{where}, line {number}: a label, a tab and a text were expected")
        yield Row(number, text.strip(), label.strip())


def whole_text(stream: IO[bytes], _where: str, encoding: str) -> Iterator[Row]:
    """Read a file that is one text (the reviews of ``aclImdb``)."""
    yield Row(1, stream.read().decode(encoding, "replace").strip(), "")


def csv_layout(*, columns: int, escapes: dict[str, str]) -> Layout:
    """Make the reader of a csv without header: the class, then the columns that make up the text.

    ``escapes`` says what stands for what, since these files write newlines in their own ways.
    """

    def csv_rows(stream: IO[bytes], where: str, encoding: str) -> Iterator[Row]:
        lines = (line.decode(encoding, "replace") for line in stream)
        for number, (label, *parts) in _cells(lines, where, columns):
            text = " ".join(parts)
            for written, meant in escapes.items():
                text = text.replace(written, meant)
            yield Row(number, text.strip(), label.strip())

    return csv_rows


def _cells(lines: Iterator[str], where: str, columns: int) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of so many cells, each with the line at which it begins."""
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    reader = csv.reader((line.replace("\0", "") for line in lines), strict=True)
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise DataError(f"{where}, line {number}: not a csv row ({error})") from None
        if not cells:
            continue
        if len(cells) != columns:
            raise DataError(
                f"{where}, line {number}: {len(cells)} columns where {columns} were expected"
            )
        yield number, cells
