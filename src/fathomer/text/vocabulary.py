"""The words that a model knows: from its training texts and from pretrained vectors."""

from collections.abc import Iterable, Sequence, Set
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.config import TextConfig
from fathomer.text.tokenizer import UNKNOWN, Tokenizer
from fathomer.text.vectors import Vectors, read_vectors


class Vocabulary(NamedTuple):
    """A tokenizer and, with pretrained vectors, one fixed vector per known word; zero if it has none."""

    tokenizer: Tokenizer
    vectors: NDArray[np.float32] | None


def build_vocabulary(
    texts: Iterable[str], config: TextConfig, *, vectors: Path | None = None
) -> Vocabulary:
    """Choose the known words of a model.

    These are the training words that are frequent enough to be learned. With vectors, they are also
    the rarer training words that have one, and the first (most frequent) words of the file. All
    other words are represented by their characters only. Texts are read twice if there are vectors.
    """

    def count_words(min_count: int) -> Tokenizer:
        limit = config.max_vocabulary
        return Tokenizer.from_texts(texts, min_count=min_count, max_vocabulary=limit)

    frequent = count_words(config.min_count)
    if vectors is None:
        return Vocabulary(frequent, None)
    words = count_words(1).vocabulary[1:]
    needed = {form for word in words for form in (word, word.lower())}
    found = read_vectors(vectors, needed=needed, also_first=config.vector_words)
    return _with_vectors(words, found, also=frozenset(frequent.vocabulary))


def _with_vectors(words: Sequence[str], found: Vectors, *, also: Set[str]) -> Vocabulary:
    """Assign each word the vector of its written form, else of its lower-case form.

    The words in ``also`` are known without a vector, too; theirs is zero.
    """
    row_of = {word: row for row, word in enumerate(found.words)}
    rows: dict[str, int] = {}
    for word in (*words, *found.words):
        row = row_of.get(word, row_of.get(word.lower(), -1))
        if (row >= 0 or word in also) and word != UNKNOWN:  # some files have an entry for it
            rows.setdefault(word, row)
    places = np.array([-1, *rows.values()])  # row 0: the unknown word
    matrix = np.zeros((len(places), found.size), dtype=np.float32)
    matrix[places >= 0] = found.matrix[places[places >= 0]]
    return Vocabulary(Tokenizer.from_words(rows), matrix)


def spell(words: Sequence[str], *, max_chars: int) -> NDArray[np.uint8]:
    """Return words as rows of UTF-8 bytes, truncated to ``max_chars`` and padded with zeros.

    >>> spell(["no", "é"], max_chars=8)
    array([[110, 111],
           [195, 169]], dtype=uint8)
    """
    # Truncate before and after encoding: a word may be huge, and a character has up to four bytes.
    spellings = [word[:max_chars].encode("utf-8", "replace")[:max_chars] for word in words]
    width = max(map(len, spellings), default=1) or 1
    padded = b"".join(spelling.ljust(width, b"\0") for spelling in spellings)
    return np.frombuffer(padded, dtype=np.uint8).reshape(len(words), width)
