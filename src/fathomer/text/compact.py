"""The compact format of word vectors: one safetensors file with half-precision numbers.

It holds the tensors ``vectors`` (float16, one row per word) and ``words`` (UTF-8 bytes, one word per
line). Its metadata says how wide each part is if the vectors are a join, and how they were made.
The same vectors always give the same bytes.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
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
    described = {"parts": list(vectors.parts), "made": made}
    content = safetensors.numpy.save(
        {"vectors": numbers, "words": np.frombuffer(words, dtype=np.uint8)},
        metadata={_KEY: json.dumps(described, ensure_ascii=False)},
    )
    write_atomically(path, content)


def read_compact(path: Path) -> Vectors:
    """Read all vectors of a file; the matrix is float16."""
    words, parts = _open(path, "words")
    matrix, _ = _open(path, "vectors")
    decoded = words.tobytes().decode("utf-8", "replace").split("\n") if len(words) else []
    if matrix.ndim != 2 or len(matrix) != len(decoded) or sum(parts) != matrix.shape[1]:
        raise VectorsError(f"{path}: damaged; {len(decoded):,} words, vectors of {matrix.shape}")
    if not np.isfinite(matrix).all():
        raise VectorsError(f"{path}: a number is not finite")
    return Vectors(decoded, matrix, tuple(parts))


def first_compact_words(path: Path, count: int) -> list[str]:
    """Return the first words of a file."""
    words, _ = _open(path, "words")
    return words.tobytes().decode("utf-8", "replace").split("\n")[:count] if len(words) else []


def describe_compact(path: Path) -> dict[str, Any]:
    """Return how the vectors of a file were made, and their number and size."""
    try:
        with safe_open(path, framework="np") as file:
            found = json.loads(file.metadata()[_KEY])
            rows, size = file.get_slice("vectors").get_shape()
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise _unreadable(path, error) from None
    return {"words": rows, "size": size, "parts": found["parts"], "made": found["made"]}


def _open(path: Path, name: str) -> tuple[NDArray[Any], list[int]]:
    if not path.exists():
        raise MissingFileError(f"{path}: no such file")
    try:
        with safe_open(path, framework="np") as file:
            return file.get_tensor(name), json.loads(file.metadata()[_KEY])["parts"]
    except (SafetensorError, KeyError, TypeError, ValueError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> VectorsError:
    reason = str(error).partition("\n")[0]
    return VectorsError(
        f"{path}: not a file of vectors ({reason}); fathomer vectors writes such files"
    )
