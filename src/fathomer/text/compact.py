"""The compact format of word vectors: one safetensors file with half-precision numbers.

It holds the tensors ``vectors`` (float16, one row per word) and ``words`` (UTF-8 bytes, one word per
line). Its metadata says how wide each part is if the vectors are a join, and how they were made.
The same vectors always give the same bytes.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fathomer.errors import MissingFileError, VectorsError
from fathomer.files import parse_json, write_atomically
from fathomer.text.vectors import MAX_SIZE, Vectors

SUFFIX = ".safetensors"
_KEY = "fathomer_vectors"
"""The only key of the metadata: the library writes several in random order."""


def write_compact(path: Path, vectors: Vectors, made: dict[str, Any]) -> None:
    """Write vectors; ``made`` says how they were made, and is kept with them."""
    with np.errstate(over="ignore"):  # checked below
        numbers = vectors.matrix.astype(np.float16)
    if not np.isfinite(numbers).all():
        raise VectorsError(f"{path}: a number is too large for the compact format")
    if any("\n" in word for word in vectors.words):
        raise VectorsError(f"{path}: a word contains a line break")
    words = "\n".join(vectors.words).encode("utf-8", "replace")
    described = {"parts": list(vectors.parts or (vectors.size,)), "made": made}
    content = safetensors.numpy.save(
        {"vectors": numbers, "words": np.frombuffer(words, dtype=np.uint8)},
        metadata={_KEY: json.dumps(described, ensure_ascii=False)},
    )
    write_atomically(path, content)


def read_compact(path: Path, *, needed: Collection[str]) -> Vectors:
    """Read the vectors of the words in ``needed``; the others stay on disk."""
    words, table, parts, _ = _open(path)
    rows = [row for row, word in enumerate(words) if word in needed]
    half = np.array(table) if len(rows) == len(words) else table[rows]
    matrix = torch.from_numpy(half).float().numpy()  # several times as fast as NumPy's conversion
    if not np.isfinite(matrix).all():
        raise VectorsError(f"{path}: a number is not finite")
    return Vectors([words[row] for row in rows], matrix, tuple(parts))


def compact_words(path: Path) -> list[str]:
    """Return the words of a file."""
    return _open(path).words


def describe_compact(path: Path) -> dict[str, Any]:
    """Return how the vectors of a file were made, and their number and size."""
    found = _open(path)
    rows, size = found.table.shape
    return {"words": rows, "size": size, "parts": found.parts, "made": found.made}


class _Opened(NamedTuple):
    """An open file; its table is a map of the file, which is read where it is used."""

    words: list[str]
    table: NDArray[np.float16]
    parts: list[int]
    made: Any


def _open(path: Path) -> _Opened:
    if not path.exists():
        raise MissingFileError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:  # checks the file's size, too
            described = parse_json(file.metadata()[_KEY])
            parts, made = [int(width) for width in described["parts"]], described["made"]
            words = file.get_tensor("words").tobytes().decode("utf-8", "replace").split("\n")
            stored = file.get_slice("vectors")
            kind, (rows, size) = stored.get_dtype(), stored.get_shape()
            if not all(0 <= width <= MAX_SIZE for width in (*parts, size)):
                raise ValueError("a vector cannot be that long")
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            start = json.loads(stream.read(length))["vectors"]["data_offsets"][0] + 8 + length
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        reason = str(error).partition("\n")[0]
        raise VectorsError(
            f"{path}: not a file of vectors ({reason}); fathomer vectors writes such files"
        ) from None
    words = words if rows else []
    if (kind, len(words), sum(parts)) != ("F16", rows, size):
        raise VectorsError(
            f"{path}: damaged; {len(words):,} words and parts of {sum(parts):,} numbers for "
            f"{rows:,} vectors of {size:,} numbers ({kind})"
        )
    shape = (rows, size)
    empty = np.zeros(shape, dtype=np.float16)  # an empty map is an error
    table = np.memmap(path, "<f2", "r", start, shape) if rows * size else empty
    return _Opened(words, table, parts, made)
