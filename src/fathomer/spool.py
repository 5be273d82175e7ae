"""Bytes that are written once and read often: in memory while they are few, on disk beyond that.

The file is an unnamed temporary file in ``TMPDIR``, so it disappears with the process.
"""

import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Iterator
from typing import IO, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LIMIT = 32 << 20
"""Bytes kept in memory before a file is used."""
PIECE = 4 << 20
"""Bytes of an array to read at a time."""
_SEEKING = threading.Lock()
"""Guards the file position on systems without ``pread``, such as Windows."""


class Spool:
    """A byte buffer that moves to disk when it grows; append everything first, then read."""

    def __init__(self, *, limit: int | None = None) -> None:
        self._limit = LIMIT if limit is None else limit
        self._unwritten = False
        self._size = 0
        self._memory = bytearray()
        self._file: IO[bytes] | None = None

    def __len__(self) -> int:
        return self._size

    @property
    def on_disk(self) -> bool:
        """Whether the bytes were too many for memory."""
        return self._file is not None

    def append(self, content: bytes) -> None:
        """Append bytes."""
        self._size += len(content)
        if self._file is None and self._size > self._limit:
            self._file = tempfile.TemporaryFile(prefix="fathomer-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
            self._file.write(self._memory)
            self._unwritten = True
            self._memory = bytearray()
        if self._file is None:
            self._memory += content
        else:
            self._file.write(content)
            self._unwritten = True

    def read(self, start: int, end: int) -> bytes:
        """Return the bytes from ``start`` up to ``end``."""
        if self._file is None:
            return bytes(self._memory[start:end])
        if self._unwritten:
            self._file.flush()
            self._unwritten = False
        if hasattr(os, "pread"):
            return os.pread(self._file.fileno(), end - start, start)  # safe for several threads
        with _SEEKING:
            self._file.seek(start)
            return self._file.read(end - start)

    def array(self, dtype: DTypeLike) -> NDArray[Any]:
        """Return all bytes as an array; a file is memory-mapped rather than read."""
        if not self._size:
            return np.zeros(0, dtype=dtype)
        if self._file is None:
            return np.frombuffer(bytes(self._memory), dtype=dtype)
        self._file.flush()
        mapped = mmap.mmap(self._file.fileno(), 0, access=mmap.ACCESS_READ)
        return np.frombuffer(mapped, dtype=dtype)


def pieces(array: NDArray[Any]) -> Iterator[NDArray[Any]]:
    """Split an array into pieces; of a memory-mapped one, only a piece is in memory at a time."""
    for piece in np.array_split(array, 1 + array.nbytes // PIECE):
        yield piece
        _release(array)


def _release(array: NDArray[Any]) -> None:
    """Release the pages of a memory-mapped array; reading it again loads them from disk."""
    owner = array.base.obj if isinstance(array.base, memoryview) else array.base
    if isinstance(owner, mmap.mmap) and hasattr(mmap, "MADV_DONTNEED"):
        owner.madvise(mmap.MADV_DONTNEED)
