"""The list of word vectors: published ones, packages, and files in the data folder."""

from pathlib import Path
from typing import Any

from fathomer.data.datasets import VECTORS, VECTORS_FOLDER, find_vectors, known_vectors
from fathomer.errors import FathomerError
from fathomer.open_files import format_suffix
from fathomer.text.compact import SUFFIX, describe_compact
from fathomer.text.subwords import WORDLLAMA, WORDLLAMA_TERMS, read_subwords, wordllama_folder
from fathomer.text.vectors import vector_size

INSTALL = "pip install 'fathomer[vectors]'"


def list_vectors(data_dir: Path) -> list[dict[str, Any]]:
    """Return the name, size, terms and presence of all vectors that are known by name."""
    package = wordllama_folder()
    rows = [
        {
            "name": WORDLLAMA,
            "present": package is not None,
            "path": str(package) if package else None,
            **_shape(package),
            "terms": WORDLLAMA_TERMS,
            "how_to_get": None if package else INSTALL,
        }
    ]
    for name, present in known_vectors(data_dir).items():
        path = find_vectors(str(data_dir / VECTORS_FOLDER / name), data_dir) if present else None
        published = VECTORS.get(name)
        rows.append(
            {
                "name": name,
                "present": present,
                "path": str(path) if path else None,
                **_shape(path),
                "terms": published.terms if published else None,
                "how_to_get": None if present else f"fathomer data get {name}",
            }
        )
    return rows


def _shape(path: Path | None) -> dict[str, int | None]:
    """Return the number of words, where it is known without reading the file, and their size."""
    words: int | None = None
    size: int | None = None
    try:
        if path is not None and path.is_dir():
            words, size = read_subwords(path).table.shape
        elif path is not None and format_suffix(path) == SUFFIX:
            found = describe_compact(path)
            words, size = found["words"], found["size"]
        elif path is not None:
            size = vector_size(path)
    except FathomerError:  # a damaged file is listed without its size
        pass
    return {"words": words, "size": size}
