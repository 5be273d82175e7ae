"""Parsing csv, tsv and jsonl files; csv and tsv files have a header.

Semicolons, tabs or bars between the columns are recognised by the header. A line of nothing but
white space is not a row. Errors name the line on which a row starts.
"""

import csv
import json
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from fathomer.open_files import file_error, find_surrogate, format_suffix, open_lines

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLES = (*DELIMITERS, ".jsonl")
FIELD_LIMIT = 2**31 - 1  # the largest value of a C long on every platform

SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
"""Characters that are recognised between columns, and their names in messages."""
_JSON_LIST = "a JSON list; write one object per line, without brackets and commas around them"


def find_delimiter(path: Path, lines: Iterator[str]) -> tuple[str, Iterator[str]]:
    """Return the character between the columns of a table, and an iterator over all its lines.

    It is what the suffix says, unless that does not split the header and another character does.
    Excel's first line ``sep=;`` names it, too, and is replaced by a blank line.
    """
    _raise_field_limit()
    blank = list[str]()
    header = next(lines, "")
    while header and not header.strip():
        blank.append(header)
        header = next(lines, "")
    named = re.fullmatch(r"sep=(.)\s*", header)
    if named and named[1] in SEPARATORS:
        return named[1], chain(blank, ["\n"], lines)
    usual = DELIMITERS[format_suffix(path)]
    columns = {mark: _count_columns(header, mark) for mark in (usual, *SEPARATORS)}
    found = usual if columns[usual] > 1 else max(columns, key=columns.__getitem__)
    return found, chain(blank, [header] * bool(header), lines)


def _count_columns(header: str, delimiter: str) -> int:
    return len(next(csv.reader([header], delimiter=delimiter), []))


def _raise_field_limit() -> None:
    # The limit is global to the process. Restoring it when one reader ends would break another
    # that is still in use, so it stays raised.
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))


def read_delimiter(path: Path, encoding: str) -> str | None:
    """Return the character between the columns of a csv or tsv file; others have none."""
    if format_suffix(path) not in DELIMITERS or not path.is_file():
        return None
    with open_lines(path, encoding) as lines:
        return find_delimiter(path, lines)[0]


def describe_delimiter(path: Path, delimiter: str | None) -> str | None:
    """Return a line about a delimiter that differs from what the suffix says.

    >>> describe_delimiter(Path("reviews.csv"), ";")
    'reviews.csv: columns separated by semicolons'
    """
    if delimiter == DELIMITERS.get(format_suffix(path)) or delimiter is None:
        return None
    return f"{path}: columns separated by {SEPARATORS[delimiter]}"


def split_cells(
    path: Path | str, lines: Iterator[str], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the line on which it starts."""
    _raise_field_limit()
    # Without strict, a quote that is never closed would silently swallow the rest of the file.
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
                problem = "a quoted field starts in this row and is never closed"
            raise file_error(path, problem, line) from None
        if has_content(cells):
            yield line, cells


def has_content(cells: Sequence[str]) -> bool:
    """Whether a row is more than a blank line."""
    return len(cells) > 1 or any(map(str.strip, cells))


def split_table(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Split a table into its header and its rows, which must have as many cells."""
    delimiter, lines = find_delimiter(path, lines)
    rows = split_cells(path, lines, delimiter)
    line, header = next(rows, (0, []))
    if not header:
        return
    yield line, header
    header_line = line
    for line, cells in rows:
        if len(cells) != len(header):
            columns = "1 column" if len(cells) == 1 else f"{len(cells)} columns"
            problem = f"{columns}, but the header has {len(header)}"
            if len(cells) > len(header):
                problem += f"; put texts that contain {SEPARATORS[delimiter]} in quotes"
            raise file_error(path, problem, line)
        yield line, cells
    if line == header_line:
        raise file_error(path, "no rows after the header")


def parse_objects(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse one JSON object per line, each with its line number."""
    for number, line in enumerate(lines, start=1):
        if line.strip():
            try:
                yield number, parse_object(line)
            except ValueError as error:
                raise file_error(path, str(error), number) from None


def parse_object(line: str) -> dict[str, Any]:
    """Parse a line of a jsonl file; a ``ValueError`` says what is wrong with it."""
    try:
        found = json.loads(line)
    except (ValueError, RecursionError) as error:
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        problem = _JSON_LIST if line.strip() == "[" else f"not valid JSON ({reason})"
        raise ValueError(problem) from None
    if isinstance(found, list):
        raise ValueError(_JSON_LIST)
    if not isinstance(found, dict):
        raise ValueError(f"expected a JSON object, found {line.strip()[:40]}")
    return found


def json_value(path: Path, found: dict[str, Any], key: str, line: int) -> Any:
    """Return a value of a JSON object; ``null`` is an empty string, like an empty cell."""
    value = found[key]
    if isinstance(value, str) and find_surrogate(value):
        raise file_error(path, f"half a surrogate pair in {key!r}, not a character", line)
    return "" if value is None else value


def find_column(path: Path, wanted: str, columns: Sequence[str], line: int, *, flags: str) -> int:
    """Return the index of a column or key; its case may differ.

    ``flags`` are the command-line options that the error suggests.
    """
    places = [place for place, name in enumerate(columns) if name == wanted]
    places = places or [i for i, name in enumerate(columns) if same_column(name, wanted)]
    if len(places) == 1:
        return places[0]
    is_json = format_suffix(path) == ".jsonl"
    holder = "object" if is_json else "header"
    shown = ", ".join(repr(name[:40]) for name in columns[:20])
    if places:
        problem, advice = f"{len(places)} columns {wanted!r}", "rename all but one"
    else:
        problem, advice = f"no column {wanted!r}", f"name yours with {flags}"
        if "--label-column" in flags:
            advice = f"{advice} (fathomer check suggests how)"
        if not is_json:
            advice = f"{advice}, or add a header if there is none"
    raise file_error(path, f"{problem} in the {holder} ({shown}); {advice}", line)


def same_column(one: str, other: str) -> bool:
    """Whether two names of columns differ at most in case and surrounding white space."""
    return one.strip().casefold() == other.strip().casefold()
