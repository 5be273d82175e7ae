"""Answers to the texts of a whole file, written to another one in constant memory.

A table keeps its columns and gets new ones; plain lines are answered with lines of JSON. The work
can be stopped at any moment, even by being killed, and continued: answers are written chunk by
chunk, and the chunks hold the same texts whether or not the work was stopped.
"""

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from fathomer.data.examples import SEPARATOR
from fathomer.data.reading import Row
from fathomer.data.tables import DELIMITERS, TABLES
from fathomer.errors import ConfigError, DataError, FathomerError
from fathomer.files import GrowingFile
from fathomer.open_files import file_error, find_surrogate, format_suffix
from fathomer.predictor import Prediction, Predictor

CHUNK_TEXTS, CHUNK_CHARACTERS = 500, 200_000
"""What is answered at a time: enough for full batches, and little to answer again after a stop."""

_TO_QUOTE = re.compile('[,\t"\r\n]')

Watch = Callable[[Iterator[list[Row]]], Iterable[list[Row]]]


@dataclass(frozen=True)
class Answering:
    """Hold what is asked for: the answers to which file go where, and which answers they are."""

    path: Path
    out: Path
    model: str
    """Checksum of the model, so that no other one goes on where this one stopped."""
    depths: bool = False
    max_depth: int | None = None
    abstain_below: float = 0.0

    def settings(self) -> dict[str, Any]:
        """Name what must be the same for the answers to be the same."""
        return {
            "model": self.model,
            "--depths": self.depths,
            "--max-depth": self.max_depth,
            "--abstain-below": self.abstain_below,
        }


def answer_file(
    predictor: Predictor,
    records: Iterator[Row],
    wanted: Answering,
    *,
    resume: bool = False,
    watch: Watch = iter,
) -> int:
    """Answer all records and return their number; with ``resume``, go on where it was stopped."""
    notes = {"settings": wanted.settings(), "rows": 0, "input": hashlib.sha256().hexdigest()}
    with GrowingFile(wanted.out, notes, resume=resume) as file:
        try:
            _check_settings(file, wanted.settings())
            _answer_all(predictor, records, wanted, file, watch)
        except FathomerError as error:
            if not file.notes["rows"]:
                file.discard()
            elif isinstance(error, DataError):
                kept = f"{file.notes['rows']:,} answers are kept, --resume continues"
                raise DataError(f"{error}; {kept}") from None
            raise
        file.finish()
        return int(file.notes["rows"])


def _check_settings(file: GrowingFile, now: dict[str, Any]) -> None:
    """Refuse to continue what would not be the same answers."""
    before = file.notes["settings"]
    for name in now:
        if before.get(name) != now[name]:
            change = "another model" if name == "model" else f"{name} = {before.get(name)}"
            raise ConfigError(
                f"{file.partial}: was made with {change}; use the same, or delete the file"
            )


def _answer_all(
    predictor: Predictor,
    records: Iterator[Row],
    wanted: Answering,
    file: GrowingFile,
    watch: Watch,
) -> None:
    """Pass over the records that were answered before, then answer the others."""
    first = list(islice(records, 1))
    records = chain(first, records)
    form = _Form(wanted, first[0].names if first else ())
    rows, digest = file.notes["rows"], hashlib.sha256()
    _add(digest, islice(records, rows))
    if digest.hexdigest() != file.notes["input"]:
        raise ConfigError(
            f"{file.partial}: its {rows:,} answers are not those to the first {rows:,} rows of "
            f"{wanted.path}; restore them, or delete the file"
        )
    lines = [] if rows else form.header()
    for chunk in watch(chunked(records)):
        texts = [record.text for record in chunk]
        predictions = predictor.predict(
            texts, max_depth=wanted.max_depth, abstain_below=wanted.abstain_below
        )
        lines += map(form.line, chunk, predictions)
        _add(digest, chunk)
        rows += len(chunk)
        notes = file.notes | {"rows": rows, "input": digest.hexdigest()}
        file.append("".join(lines).encode(), notes)
        lines = []


def _add(digest: "hashlib._Hash", records: Iterable[Row]) -> None:
    """Sum up what stands in records, wherever they stand."""
    for record in records:
        content = json.dumps([record.text, record.names, record.values])
        digest.update(content.encode())


def chunked(records: Iterable[Row]) -> Iterator[list[Row]]:
    """Group records so that a chunk has neither too many texts nor, unless one has, characters."""
    chunk: list[Row] = []
    characters = 0
    for record in records:
        chunk.append(record)
        characters += len(record.text)
        if len(chunk) == CHUNK_TEXTS or characters >= CHUNK_CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


class _Form:
    """Write answers as lines of the kind of file that the texts came in."""

    def __init__(self, wanted: Answering, names: Sequence[str]) -> None:
        self.path, self.depths, self.names = wanted.path, wanted.depths, names
        self.kind = format_suffix(wanted.path)
        added = ["label", "probability"]
        if wanted.depths:
            added.append("mean_depth" if self.kind in DELIMITERS else "words")
        self.added = [self._free(name) for name in added]

    def _free(self, name: str) -> str:
        """Choose a name that no column has."""
        taken = {name.strip().casefold() for name in self.names}
        for choice in (name, f"predicted_{name}"):
            if choice not in taken:
                return choice
        problem = f"the columns {name!r} and 'predicted_{name}' are both there already; rename one"
        raise file_error(self.path, problem, 1)

    def header(self) -> list[str]:
        """Write the names of the columns, if this kind of file has them in a line of their own."""
        if self.kind in DELIMITERS:
            return [self._cells([*self.names, *self.added])]
        return []

    def line(self, record: Row, prediction: Prediction) -> str:
        """Write one answer."""
        if self.kind not in TABLES:
            return _json_line(prediction.to_dict(words=self.depths))
        values = [_label(prediction), round(prediction.probabilities[prediction.best], 6)]
        if self.kind in DELIMITERS:
            depth = [_mean_depth(prediction)] if self.depths else []
            return self._cells([*record.values, *values, *depth])
        if taken := set(self.added) & set(record.names):
            problem = f"the key {min(taken)!r} is that of the answers, for the first row lacks it"
            raise file_error(self.path, f"{problem}; rename it", record.line)
        words = [prediction.to_dict(words=True)["words"]] if self.depths else []
        answer = dict(zip(self.added, [*values, *words], strict=True))
        return _json_line(dict(zip(record.names, record.values, strict=True)) | answer)

    def _cells(self, values: list[Any]) -> str:
        # The csv module of Python 3.11 does not quote a lone carriage return.
        return DELIMITERS[self.kind].join(map(_quoted, map(_cell, values))) + "\n"


def _label(prediction: Prediction) -> str | None:
    """Write the label, or several as they are read; one that is not given is nothing."""
    labels = prediction.labels
    return prediction.label if labels is None else SEPARATOR.join(labels)


def _cell(value: Any) -> str:
    return "" if value is None else str(value)


def _quoted(cell: str) -> str:
    doubled = cell.replace('"', '""')
    return f'"{doubled}"' if _TO_QUOTE.search(cell) else cell


def _mean_depth(prediction: Prediction) -> float | str:
    """Average the depths of the words; without words there is nothing to write."""
    words = prediction.words
    return round(sum(word.depth for word in words) / len(words), 4) if words else ""


def _json_line(content: dict[str, Any]) -> str:
    line = json.dumps(content, ensure_ascii=False)
    # Half a surrogate pair can be written escaped only.
    return (json.dumps(content) if find_surrogate(line) else line) + "\n"
