"""The compact format of word vectors: one safetensors file with half-precision numbers.

It holds the tensors ``vectors`` (float16, one row per word) and ``words`` (UTF-8 bytes, one word per
line). Its metadata says how wide each part is if the vectors are a join, and how they were made.
The same vectors always give the same bytes.
"""

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
import torch
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from fathomer.errors import MissingFileError, VectorsError
from fathomer.files import write_atomically
from fathomer.text.vectors import Vectors

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
    words, table, parts = _open(path)
    rows = [row for row, word in enumerate(words) if word in needed]
    half = np.array(table) if len(rows) == len(words) else table[rows]
    matrix = torch.from_numpy(half).float().numpy()  # several times as fast as NumPy's conversion
    if not np.isfinite(matrix).all():
        raise VectorsError(f"{path}: a number is not finite")
    return Vectors([words[row] for row in rows], matrix, tuple(parts))


def compact_words(path: Path) -> list[str]:
    """Return the words of a file."""
    return _open(path)[0]


def describe_compact(path: Path) -> dict[str, Any]:
    """Return how the vectors of a file were made, and their number and size."""
    try:
        with safe_open(path, framework="np") as file:
            found = json.loads(file.metadata()[_KEY])
            rows, size = file.get_slice("vectors").get_shape()
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise _unreadable(path, error) from None
    return {"words": rows, "size": size, "parts": found["parts"], "made": found["made"]}


def _open(path: Path) -> tuple[list[str], NDArray[np.float16], list[int]]:
    """Return the words, the table as a map of the file, and the widths of its parts."""
    if not path.exists():
        raise MissingFileError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:  # checks the file's size, too
            parts = json.loads(file.metadata()[_KEY])["parts"]
            content = file.get_tensor("words").tobytes()
            rows, size = file.get_slice("vectors").get_shape()
        with path.open("rb") as stream:
            length = int.from_bytes(stream.read(8), "little")
            start = json.loads(stream.read(length))["vectors"]["data_offsets"][0] + 8 + length
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise _unreadable(path, error) from None
    words = content.decode("utf-8", "replace").split("\n") if content else []
    if len(words) != rows or sum(parts) != size:
        raise VectorsError(f"{path}: damaged; {len(words):,} words for {rows:,} vectors")
    shape = (rows, size)
    empty = np.zeros(shape, dtype=np.float16)  # an empty map is an error
    return words, np.memmap(path, "<f2", "r", start, shape) if rows * size else empty, parts


def _unreadable(path: Path, error: Exception) -> VectorsError:
    reason = str(error).partition("\n")[0]
    return VectorsError(
        f"{path}: not a file of vectors ({reason}); fathomer vectors writes such files"
    )
