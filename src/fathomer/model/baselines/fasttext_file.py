"""Model files of the ``fasttext`` package, read into plain tensors, and its hash of a word.

The package's own reader is C++ that trusts every number in the file, so it is never given one. This
reader takes only files of the kind that :class:`~fathomer.model.baselines.fasttext.FastText` writes.
"""

import struct
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

LABEL = "__label__"
END = "</s>"
"""The word that the package puts at the end of every line."""
SIZE, PAIRS, BUCKETS = 10, 2, 200_000
"""Size of an embedding, longest n-gram, and hash buckets of the n-grams."""
MAGIC, VERSION, SOFTMAX, SUPERVISED = 793_712_314, 12, 3, 3


class _Reader:
    """The values of a file, one after another."""

    def __init__(self, content: bytes) -> None:
        self.content, self.place = content, 0

    def values(self, form: str) -> tuple[Any, ...]:
        """Read numbers."""
        found = struct.unpack_from("<" + form, self.content, self.place)
        self.place += struct.calcsize("<" + form)
        return found

    def word(self) -> str:
        """Read a string that ends with a zero byte."""
        end = self.content.index(b"\0", self.place)
        found = self.content[self.place : end].decode("utf-8")
        self.place = end + 1
        return found

    def matrix(self) -> Tensor:
        """Read a matrix of float32 that is not compressed."""
        compressed, rows, columns = self.values("?qq")
        if compressed or columns != SIZE or not 0 <= rows <= len(self.content):
            raise ValueError("unexpected matrix")
        found = np.frombuffer(self.content, "<f4", rows * columns, self.place)
        self.place += found.nbytes
        return torch.from_numpy(found.reshape(rows, columns).copy())


def read_model_file(content: bytes) -> dict[str, Tensor]:
    """Return words, matrices and labels of a model file; raise ValueError if it is damaged."""
    reader = _Reader(content)
    try:
        magic, version = reader.values("ii")
        size, _, _, _, _, pairs, loss, kind, buckets, _, longest, _, _ = reader.values("12id")
        ours = (MAGIC, VERSION, SIZE, PAIRS, SOFTMAX, SUPERVISED, BUCKETS, 0)
        if (magic, version, size, pairs, loss, kind, buckets, longest) != ours:
            raise ValueError("other settings than ours")
        _, num_words, num_labels, _, pruned = reader.values("iiiqq")
        if not (0 <= num_words <= len(content) and 0 <= num_labels <= len(content)) or pruned != -1:
            raise ValueError("unexpected dictionary")
        entries = []
        for _ in range(num_words + num_labels):
            entries.append(reader.word())
            reader.values("qb")
        words, labels = entries[:num_words], entries[num_words:]
        embeddings, output = reader.matrix(), reader.matrix()
        seen = [int(label.removeprefix(LABEL)) for label in labels]
    except (struct.error, ValueError) as error:
        raise ValueError(f"not a readable fastText model: {error}; train it again") from None
    return {
        "words": joined_words(words),
        "embeddings": embeddings,
        "output": output,
        "seen": torch.tensor(seen, dtype=torch.long),
    }


def joined_words(words: list[str]) -> Tensor:
    """Return words as a tensor of their bytes, one word per line."""
    content = "\n".join(words).encode()
    return torch.frombuffer(bytearray(content or b"\n"), dtype=torch.uint8)[: len(content)].clone()


def split_words(words: Tensor) -> list[str]:
    """Return the words that :func:`joined_words` joined."""
    content = words.numpy(force=True).tobytes().decode("utf-8", "replace")
    return content.split("\n") if content else []


def word_hashes(words: list[str]) -> NDArray[np.uint64]:
    """Return the hash of each word: 32-bit FNV-1a over signed bytes, as the package computes it.

    The package keeps hashes as signed numbers and computes with them as unsigned ones of 64 bits.

    >>> word_hashes(["", "a"])
    array([18446744071580720581, 18446744073240586540], dtype=uint64)
    """
    spelled = [word.encode() for word in words]
    width = max(map(len, spelled), default=0)
    padded = b"".join(word.ljust(width, b"\0") for word in spelled)
    signed = np.frombuffer(padded, dtype=np.int8).reshape(len(words), width)
    lengths = np.array([len(word) for word in spelled])
    hashes = np.full(len(words), 2_166_136_261, dtype=np.uint32)
    for place in range(width):
        longer = (hashes ^ signed[:, place].astype(np.uint32)) * np.uint32(16_777_619)
        hashes = np.where(place < lengths, longer, hashes)
    return hashes.view(np.int32).astype(np.int64).view(np.uint64)
