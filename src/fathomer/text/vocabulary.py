"""The words that a model knows: from its training texts and from pretrained vectors."""

from collections.abc import Iterable, Sequence, Set
from itertools import chain
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.config import TextConfig
from fathomer.text.sources import Sources, as_paths, join_parts, read_parts, widths
from fathomer.text.tokenizer import UNKNOWN, Tokenizer
from fathomer.text.vectors import Vectors


class Vocabulary(NamedTuple):
    """A tokenizer and, with pretrained vectors, one fixed vector per known word; zero if it has none."""

    tokenizer: Tokenizer
    vectors: NDArray[np.float32] | None
    parts: tuple[int, ...] = ()
    """Widths of the parts of joined vectors."""


def build_vocabulary(
    texts: Iterable[str], config: TextConfig, *, vectors: Sources = None
) -> Vocabulary:
    """Choose the known words of a model.

    These are the training words that are frequent enough to be learned. With vectors, they are also
    the rarer training words that have one, and the first (most frequent) words of the sources. All
    other words are represented by their characters only. Texts are read twice if there are vectors.
    """

    def count_words(min_count: int) -> Tokenizer:
        limit = config.max_vocabulary
        return Tokenizer.from_texts(texts, min_count=min_count, max_vocabulary=limit)

    frequent = count_words(config.min_count)
    paths = as_paths(vectors)
    if not paths:
        return Vocabulary(frequent, None)
    words = count_words(1).vocabulary[1:]
    needed = {form for word in words for form in (word, word.lower())}
    parts = read_parts(paths, needed=needed, also_first=config.vector_words)
    candidates = list(dict.fromkeys(chain(words, *(part.words for part in parts))))
    return _with_vectors(candidates, parts, also=frozenset(frequent.vocabulary))


def _with_vectors(words: Sequence[str], parts: Sequence[Vectors], *, also: Set[str]) -> Vocabulary:
    """Keep the words that have a vector in some part, and those in ``also``, whose vector is zero."""
    matrix = join_parts(words, parts)
    has_vector = np.any(matrix != 0, axis=1)
    kept = [
        row
        for row, word in enumerate(words)
        if (has_vector[row] or word in also) and word != UNKNOWN  # some files have an entry for it
    ]
    tokenizer = Tokenizer.from_words(words[row] for row in kept)
    unknown = np.zeros((1, matrix.shape[1]), dtype=np.float32)
    return Vocabulary(tokenizer, np.concatenate([unknown, matrix[kept]]), widths(parts))
