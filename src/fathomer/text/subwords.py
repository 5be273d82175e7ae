"""Vectors of subwords: a word is the mean of its pieces, so every word has a vector.

The folder is that of a Model2Vec ``StaticModel`` (``model.safetensors`` and ``tokenizer.json``) or of
the installed package ``wordllama``. Both are read directly; neither package is imported.
"""

from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import tokenizers
from numpy.typing import NDArray
from safetensors import safe_open

from fathomer.errors import VectorsError, missing_extra, refuse_damage
from fathomer.text.vectors import Vectors

WORDLLAMA = "wordllama"
WORDLLAMA_TERMS = "derived from Llama 2 (Llama 2 Community License); the package is MIT"
_LAYOUTS = (
    ("model.safetensors", "tokenizer.json"),  # Model2Vec, sentence-transformers
    ("0_StaticEmbedding/model.safetensors", "0_StaticEmbedding/tokenizer.json"),
    ("weights/*.safetensors", "tokenizers/*.json"),  # wordllama
)
_TABLES = ("embeddings", "embedding.weight")
_WORD_STARTS = "\u2581\u0120"
"""Marks that some tokenizers put before the first piece of a word."""


class Subwords(NamedTuple):
    """A table of pieces of words, and the tokenizer that splits words into them."""

    tokenizer: tokenizers.Tokenizer
    table: NDArray[np.float32]
    """One row per id of the tokenizer."""


def wordllama_folder() -> Path | None:
    """Return the folder of the installed package wordllama, if it is installed."""
    found = find_spec(WORDLLAMA)
    return Path(found.origin).parent if found and found.origin else None


def find_wordllama() -> Path:
    """Return the folder of the package wordllama, or explain how to install it."""
    folder = wordllama_folder()
    if folder is None:
        raise missing_extra(WORDLLAMA, "vectors")
    return folder


def subword_files(folder: Path) -> tuple[Path, Path]:
    """Return the files of the table and of the tokenizer."""
    for layout in _LAYOUTS:
        weights, tokenizer = (sorted(folder.glob(name)) for name in layout)
        if weights and tokenizer:
            return weights[0], tokenizer[0]
    raise VectorsError(
        f"{folder}: expected a Model2Vec folder with model.safetensors and tokenizer.json"
    )


def read_subwords(folder: Path) -> Subwords:
    """Read the table and the tokenizer of a folder."""
    weights, tokenizer = subword_files(folder)
    with (
        refuse_damage(VectorsError, f"{weights}: not a readable table"),
        safe_open(weights, framework="np") as file,
    ):
        tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    table = next((tensors[name] for name in _TABLES if name in tensors), None)
    if table is None or table.ndim != 2 or table.dtype.kind not in "fiu":
        raise VectorsError(
            f"{weights}: holds no table of subwords; to use a sentence encoder, run "
            "fathomer vectors distill"
        )
    with refuse_damage(VectorsError, f"{tokenizer}: not a tokenizer"):
        splitter = tokenizers.Tokenizer.from_file(str(tokenizer))
    splitter.no_padding()
    splitter.no_truncation()
    if "mapping" in tensors:  # several pieces share a row
        table = table[_checked_rows(weights, tensors["mapping"], len(table))]
    pieces = 1 + max(splitter.get_vocab().values(), default=-1)
    if len(table) < pieces:
        raise VectorsError(f"{weights}: {len(table):,} vectors for {pieces:,} subwords")
    if "weights" in tensors:
        if tensors["weights"].shape != (len(table),) or tensors["weights"].dtype.kind not in "fiu":
            raise VectorsError(f"{weights}: the weights are not one number for each subword")
        with np.errstate(over="ignore", invalid="ignore"):  # checked below
            table = table * tensors["weights"][:, None]
    with np.errstate(over="ignore"):
        table = table.astype(np.float32)
    if not np.isfinite(table).all():
        raise VectorsError(f"{weights}: a number is not finite")
    return Subwords(splitter, table)


def _checked_rows(weights: Path, mapping: NDArray[Any], count: int) -> NDArray[Any]:
    """Return the row of each piece; raise an error if there is no such row."""
    if mapping.ndim != 1 or mapping.dtype.kind not in "iu":
        raise VectorsError(f"{weights}: the mapping is not one whole number for each subword")
    if len(mapping) and not 0 <= int(mapping.min()) <= int(mapping.max()) < count:
        raise VectorsError(f"{weights}: the mapping names rows that do not exist")
    return mapping


def subword_vectors(folder: Path, words: list[str]) -> Vectors:
    """Return a vector for each word: the mean of the vectors of its pieces."""
    subwords = read_subwords(folder)
    written = [word.encode("utf-8", "replace").decode() for word in words]
    with refuse_damage(VectorsError, f"{folder}: its tokenizer cannot split words"):
        encoded = subwords.tokenizer.encode_batch(written, add_special_tokens=False)
    unknown = subwords.tokenizer.token_to_id(_unknown_piece(subwords.tokenizer))
    pieces = [[piece for piece in each.ids if piece != unknown] for each in encoded]
    counts = np.array([len(each) for each in pieces], dtype=np.int64)
    rows = np.fromiter(chain.from_iterable(pieces), dtype=np.int64)
    matrix = np.zeros((len(words), subwords.table.shape[1]), dtype=np.float32)
    np.add.at(matrix, np.repeat(np.arange(len(words)), counts), subwords.table[rows])
    matrix /= np.maximum(counts, 1)[:, None]
    kept = np.flatnonzero(counts)  # a word of unknown pieces has no vector
    return Vectors([words[row] for row in kept], matrix[kept])


def whole_words(folder: Path, count: int) -> list[str]:
    """Return the first words that are a single piece, in the order of the tokenizer's ids."""
    vocabulary = read_subwords(folder).tokenizer.get_vocab(with_added_tokens=False)
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    marked = any(piece[:1] in _WORD_STARTS and len(piece) > 1 for piece in pieces)
    starts = (p[1:] for p in pieces if p[:1] and p[0] in _WORD_STARTS) if marked else pieces
    words = (word for word in starts if word.isalpha() or (not word.isalnum() and len(word) == 1))
    return list(dict.fromkeys(words))[:count]


def _unknown_piece(tokenizer: tokenizers.Tokenizer) -> str:
    return getattr(tokenizer.model, "unk_token", None) or "[UNK]"
