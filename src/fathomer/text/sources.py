"""Reading word vectors from any source, and joining several sources.

A source is a path: a file of vectors in one of the formats of :mod:`fathomer.text.vectors`, a compact
file, or a folder of subword vectors.
"""

from collections.abc import Collection, Iterable, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import VectorsError
from fathomer.files import sha256_of
from fathomer.open_files import format_suffix
from fathomer.text.compact import SUFFIX, compact_words, read_compact
from fathomer.text.subwords import subword_files, subword_vectors, whole_words
from fathomer.text.vectors import Vectors, first_words, read_vectors

Sources = Path | Sequence[Path] | None
"""One source, several to join, or none."""


def as_paths(sources: Sources) -> tuple[Path, ...]:
    """Return the sources as a tuple."""
    if sources is None:
        return ()
    return (sources,) if isinstance(sources, Path) else tuple(sources)


def read_source(path: Path, *, needed: Collection[str], also_first: int = 0) -> Vectors:
    """Read the vectors of the words in ``needed`` and of the source's first words."""
    if not path.is_dir() and format_suffix(path) != SUFFIX:
        return read_vectors(path, needed=needed, also_first=also_first)  # in one pass
    first = words_of(path, count=also_first) if also_first else []
    if path.is_dir():
        return subword_vectors(path, list(dict.fromkeys([*first, *sorted(needed)])))
    return read_compact(path, needed={*needed, *first})


def checksum_of(path: Path) -> str:
    """Return the SHA-256 of a source: of the file, or of the table of subwords in the folder."""
    return sha256_of(subword_files(path)[0] if path.is_dir() else path)


def words_of(path: Path, *, count: int) -> list[str]:
    """Return the first words of a source; files are sorted by frequency."""
    if path.is_dir():
        return whole_words(path, count)
    if format_suffix(path) == SUFFIX:
        return compact_words(path)[:count]
    return first_words(path, count)


def first_of_all(paths: Iterable[Path], *, count: int) -> list[str]:
    """Return ``count`` words from the starts of all sources, which take turns."""
    turns = zip_longest(*(words_of(path, count=count) for path in paths))
    words = dict.fromkeys(word for turn in turns for word in turn if word is not None)
    return list(words)[:count]


def read_parts(
    paths: Sequence[Path], *, needed: Collection[str], also_first: int = 0
) -> list[Vectors]:
    """Read the vectors of the words in ``needed`` and of the first words of all sources.

    The first words are collected before, so that a word of one source is looked up in the others.
    """
    if len(paths) == 1:
        return [read_source(paths[0], needed=needed, also_first=also_first)]
    first = first_of_all(paths, count=also_first) if also_first else []
    wanted = {*needed, *first, *(word.lower() for word in first)}
    return [read_source(path, needed=wanted) for path in paths]


def widths(parts: Iterable[Vectors]) -> tuple[int, ...]:
    """Return the width of each part, including the parts of a source that is a join itself."""
    return tuple(chain.from_iterable(part.parts or (part.size,) for part in parts))


def join_parts(words: Sequence[str], parts: Sequence[Vectors]) -> NDArray[np.float32]:
    """Return one row per word: its vectors of all parts side by side; zeros where one lacks it.

    In each part, a word has the vector of its written form, else of its lower-case form.
    """
    matrix = np.zeros((len(words), sum(part.size for part in parts)), dtype=np.float32)
    start = 0
    for part in parts:
        row_of = {word: row for row, word in enumerate(part.words)}
        found = (row_of.get(word, row_of.get(word.lower(), -1)) for word in words)
        rows = np.fromiter(found, dtype=np.int64, count=len(words))
        matrix[rows >= 0, start : start + part.size] = part.matrix[rows[rows >= 0]]
        start += part.size
    return matrix


def join_sources(paths: Sequence[Path]) -> Vectors:
    """Join all words of several sources; those of subwords add no words of their own."""
    files = [path for path in paths if not path.is_dir()]
    if not files:
        raise VectorsError(
            "subword vectors have no list of words; join them with a file, or pass them to train"
        )
    everything = 1 << 40
    words = list(dict.fromkeys(w for path in files for w in words_of(path, count=everything)))
    forms = {form for word in words for form in (word, word.lower())}
    parts = read_parts(paths, needed=forms)
    return Vectors(words, join_parts(words, parts), widths(parts))
