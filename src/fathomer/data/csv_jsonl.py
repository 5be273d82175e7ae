"""Parsing csv, tsv and jsonl files; csv and tsv files have a header.

A line of nothing but white space is not a row. Errors name the line on which a row starts.
"""

import csv
import json
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from fathomer.open_files import file_error, find_surrogate, format_suffix

DELIMITERS = {".csv": ",", ".tsv": "\t"}
TABLES = (*DELIMITERS, ".jsonl")
FIELD_LIMIT = 2**31 - 1  # the largest value of a C long on every platform

_SEPARATORS = {
    "\t": "its columns are separated by tabs: rename the file to .tsv",
    ";": "its columns are separated by semicolons: save it with commas, or with tabs as .tsv",
    "|": "its columns are separated by bars: save it with commas, or with tabs as .tsv",
    ",": "its columns are separated by commas: rename the file to .csv",
}
_JSON_LIST = "a JSON list; write one object per line, without brackets and commas around them"


def split_cells(
    path: Path | str, lines: Iterator[str], delimiter: str = ","
) -> Iterator[tuple[int, list[str]]]:
    """Split lines into rows of cells, each with the line on which it starts."""
    # The limit is global to the process. Restoring it when one reader ends would break another
    # that is still in use, so it stays raised.
    csv.field_size_limit(max(FIELD_LIMIT, csv.field_size_limit()))
    first = next(lines, "")
    if first.startswith("sep="):
        raise file_error(path, f"{first.strip()[:40]!r} is only for Excel; delete this line", 1)
    # Without strict, a quote that is never closed would silently swallow the rest of the file.
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
                problem = "a quoted field starts in this row and is never closed"
            elif line == 1:
                problem = other_separator(first, quoted=True) or problem
            raise file_error(path, problem, line) from None
        if len(cells) > 1 or any(map(str.strip, cells)):
            yield line, cells


def split_table(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    """Split a table into its header and its rows, which must have as many cells."""
    rows = split_cells(path, lines, DELIMITERS[format_suffix(path)])
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
                delimiters = "commas" if format_suffix(path) == ".csv" else "tabs"
                problem += f"; put texts that contain {delimiters} in quotes"
            raise file_error(path, problem, line)
        yield line, cells
    if line == header_line:
        raise file_error(path, "no rows after the header")


def parse_objects(path: Path, lines: Iterator[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """Parse one JSON object per line, each with its line number."""
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError) as error:
            reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            problem = _JSON_LIST if line.strip() == "[" else f"not valid JSON ({reason})"
            raise file_error(path, problem, number) from None
        if isinstance(found, list):
            raise file_error(path, _JSON_LIST, number)
        if not isinstance(found, dict):
            problem = f"expected a JSON object, found {line.strip()[:40]}"
            raise file_error(path, problem, number)
        yield number, found


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
        if not is_json:
            found = other_separator(columns[0]) if len(columns) == 1 else None
            advice = found or f"{advice}, or add a header if there is none"
    raise file_error(path, f"{problem} in the {holder} ({shown}); {advice}", line)


def same_column(one: str, other: str) -> bool:
    """Whether two names of columns differ at most in case and surrounding white space."""
    return one.strip().casefold() == other.strip().casefold()


def other_separator(header: str, *, quoted: bool = False) -> str | None:
    """Return what to do about a header whose columns are separated by another character."""
    for mark, advice in _SEPARATORS.items():
        if (f'"{mark}"' if quoted else mark) in header:
            return advice
    return None
