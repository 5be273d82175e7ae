"""Texts and labels in Python: lists, arrays, and columns of pandas, polars, Arrow and Hugging Face."""

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import DataError


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts of any iterable or column as a list; raise TypeError for anything else."""
    if isinstance(texts, str):
        raise TypeError("expected a list of texts; for a single text, pass [text]")
    texts = single_column(texts, "text")
    # Iterating over a mapping or a table would yield column names.
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        kind = type(texts).__name__
        hint = "; pass one part, such as dataset['train']" if kind == "DatasetDict" else ""
        raise TypeError(f"expected a list or a single column of texts, not a {kind}{hint}")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} has type {type(text).__name__}; expected a string")
    return texts


def checked_pairs(X: Any, y: Any) -> tuple[list[str], NDArray[Any]]:
    """Return texts and labels, of which there must be equally many.

    Without ``y``, both are columns of the table ``X``.
    """
    from sklearn.utils import assert_all_finite, column_or_1d  # slow, and not needed to predict
    from sklearn.utils.multiclass import check_classification_targets

    texts = checked_texts(X)
    if y is None and "label" in column_names(X):
        y = X
    if y is None:
        raise DataError("TextClassifier requires y to be passed, but the target y is None")
    labels: NDArray[Any] = column_or_1d(checked_labels(y), warn=True)
    if labels.dtype.kind == "f":
        assert_all_finite(labels, input_name="y")
    check_classification_targets(labels)
    if len(texts) != len(labels):
        raise DataError(
            f"{len(texts)} texts, but {len(labels)} labels; expected one label per text"
        )
    return texts, labels


def checked_validation(validation: Any) -> tuple[list[str], NDArray[Any]]:
    """Return the texts and labels of a pair, or of a table with both columns."""
    if column_names(validation):
        return checked_pairs(validation, None)
    if not isinstance(validation, tuple | list) or len(validation) != 2:
        kind = type(validation).__name__
        raise TypeError(f"validation must be a pair (texts, labels) or a table, not this {kind}")
    return checked_pairs(*validation)


def checked_labels(labels: Iterable[Any]) -> Any:
    """Return a column of labels as an array or a list; raise an error if any is missing or a list."""
    labels = single_column(labels, "label")
    given = labels if hasattr(labels, "__array__") else list(labels)
    if getattr(given, "dtype", None) == np.float64 or getattr(given, "ndim", 1) != 1:
        return given  # scikit-learn reports NaN in arrays of numbers, and further dimensions
    for number, label in enumerate(given):
        if _is_missing(label):
            raise DataError(
                f"label {number} is missing ({label!r}); leave out rows without a label"
            )
        if isinstance(label, list | tuple | set | np.ndarray):
            raise DataError(
                f"label {number} is a {type(label).__name__}, but TextClassifier gives one label per "
                "text; fathomer train --multi-label learns several"
            )
    return given


def column_names(table: Any) -> list[str]:
    """Return the names of a table's columns; anything else has none."""
    names = getattr(table, "column_names", None)  # Arrow and Hugging Face
    if names is None:
        names = getattr(table, "columns", None)  # pandas and polars
    return [] if names is None or isinstance(table, Mapping) else list(names)


def single_column(values: Any, name: str) -> Any:
    """Return the column ``name`` of a table, or its only one; a column is returned as it is.

    Columns of Arrow and polars become lists.
    """
    if names := column_names(values):
        if name not in names and len(names) > 1:
            kind = type(values).__name__
            shown = ", ".join(map(str, names[:10]))
            raise TypeError(f"no column {name!r} in the {kind} ({shown}); pass a single column")
        values = values[name if name in names else names[0]]
    if hasattr(values, "to_pylist"):  # Arrow
        return values.to_pylist()
    return values.to_list() if type(values).__module__.startswith("polars") else values


def _is_missing(label: Any) -> bool:
    """Whether a label is None, NaN, blank, or a missing value of pandas."""
    if label is None or (isinstance(label, str) and not label.strip()):
        return True
    is_nan = isinstance(label, float) and math.isnan(label)
    return is_nan or type(label).__name__ in ("NAType", "NaTType")
