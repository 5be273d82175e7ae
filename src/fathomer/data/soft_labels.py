"""Soft labels: one probability per label for each text, from a file or an array.

A file (csv, tsv or jsonl) has one column for each label. With a column of texts, rows belong to the
texts they name. Without one, they belong to the training texts in their order.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from fathomer.data.csv_jsonl import DELIMITERS, TABLES, parse_objects, split_table
from fathomer.data.examples import Example, Examples, StoredExamples
from fathomer.errors import DataError
from fathomer.open_files import file_error, format_suffix, open_lines

TOLERANCE = 0.01
"""How far the probabilities of a text may be from a sum of one."""


class SoftLabels(NamedTuple):
    """Rows of probabilities, and the texts that they belong to if the file names them."""

    rows: NDArray[np.float32]
    texts: list[str] | None

    def of(self, texts: Iterable[str], where: str) -> NDArray[np.float32]:
        """Return the rows of ``texts``; all of them must be there."""
        wanted = list(texts)
        if self.texts is None:
            if len(wanted) != len(self.rows):
                raise DataError(
                    f"{where}: {len(self.rows):,} rows for {len(wanted):,} training texts; add a "
                    "column of texts to match them by text"
                )
            return self.rows
        row_of = {text.strip(): row for row, text in enumerate(self.texts)}
        rows = [row_of.get(text.strip(), -1) for text in wanted]
        if -1 in rows:
            missing = wanted[rows.index(-1)]
            raise DataError(
                f"{where}: {rows.count(-1):,} texts have no row, such as {missing[:60]!r}"
            )
        return self.rows[rows]


def read_soft_labels(
    path: Path, labels: Sequence[str], *, text_column: str = "text", encoding: str = "utf-8"
) -> SoftLabels:
    """Read a file with one column of probabilities for each label."""
    rows: list[list[float]] = []
    texts: list[str] = []
    if format_suffix(path) not in TABLES:
        raise file_error(path, f"unsupported file format; use {', '.join(sorted(TABLES))}")
    for line, found in _objects(path, encoding):
        missing = [label for label in labels if label not in found]
        if missing:
            problem = f"no column {missing[0]!r}; there must be one for each label"
            raise file_error(path, problem, line)
        try:
            rows.append([float(found[label]) for label in labels])
        except (OverflowError, TypeError, ValueError):
            raise file_error(path, "a probability is not a number", line) from None
        if text_column in found:
            texts.append(str(found[text_column]))
    if not rows:
        raise file_error(path, "holds no soft labels")
    checked = check_soft_labels(rows, shape=(len(rows), len(labels)), where=str(path))
    return SoftLabels(checked, texts if len(texts) == len(rows) else None)


def _objects(path: Path, encoding: str) -> Iterator[tuple[int, dict[str, Any]]]:
    with open_lines(path, encoding) as lines:
        if format_suffix(path) not in DELIMITERS:
            yield from parse_objects(path, lines)
            return
        table = split_table(path, lines)
        _, header = next(table, (0, []))
        for line, cells in table:
            yield line, dict(zip(header, cells, strict=True))


def check_soft_labels(
    given: ArrayLike, *, shape: tuple[int, int], where: str = "soft_labels"
) -> NDArray[np.float32]:
    """Return rows of probabilities that sum to one; raise an error if a row does not."""
    rows = np.asarray(given, dtype=np.float64)
    if rows.shape != shape:
        texts, labels = shape
        raise DataError(
            f"{where}: expected {texts:,} rows of {labels} probabilities, found shape {rows.shape}"
        )
    wrong = ~np.isfinite(rows).all(1) | (rows < 0).any(1) | (np.abs(rows.sum(1) - 1) > TOLERANCE)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        found = ", ".join(f"{number:g}" for number in rows[row][:5])
        raise DataError(
            f"{where}: row {row + 1} ({found}) does not hold probabilities that sum to one"
        )
    normalised: NDArray[np.float32] = (rows / rows.sum(1, keepdims=True)).astype(np.float32)
    return normalised


def with_soft_labels(examples: Examples, soft: NDArray[np.float32]) -> Examples:
    """Return examples with soft labels beside their own; columns are in the labels' sorted order."""
    given = np.ones(len(examples), dtype=bool)
    return replace(examples, soft=soft, given=given)


def add_guessed(
    examples: Examples, texts: Sequence[str], soft: NDArray[np.float32], labels: Sequence[str]
) -> Examples:
    """Return examples followed by unlabelled texts, which have only soft labels."""
    assert examples.soft is not None
    guessed = (
        Example(text, labels[best]) for text, best in zip(texts, soft.argmax(1), strict=True)
    )
    weights = examples.weights
    if weights is not None:
        weights = np.concatenate([weights, np.full(len(texts), weights.mean())])
    return replace(
        examples,
        items=StoredExamples.collect(chain(examples, guessed)),
        soft=np.concatenate([examples.soft, soft]),
        given=np.arange(len(examples) + len(texts)) < len(examples),
        weights=weights,
    )
