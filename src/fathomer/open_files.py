"""Opening files for reading: plain or gzip-compressed, as bytes or as lines of validated text.

Whatever is wrong with a file becomes a one-line error that names the file and, in text, the line.
"""

import codecs
import gzip
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from io import BufferedReader, TextIOWrapper
from pathlib import Path
from typing import Any

from fathomer.errors import DataError, FathomerError, MissingFileError

BLOCK = 1 << 20
"""Bytes to read at a time."""


def format_suffix(path: Path) -> str:
    """Return the suffix that names a file's format, in lower case and without ``.gz``.

    >>> format_suffix(Path("Reviews.CSV.gz"))
    '.csv'
    """
    return Path(path.name.lower().removesuffix(".gz")).suffix


def file_error(path: Path | str, problem: str, line: int | None = None) -> DataError:
    """Return an error about a file, or about one of its lines or rows."""
    unit = "row" if str(path).lower().endswith((".xlsx", ".parquet")) else "line"
    place = str(path) if line is None else f"{path}, {unit} {line}"
    return DataError(f"{place}: {problem}")


@contextmanager
def open_bytes(
    path: Path, *, error: type[DataError] = DataError
) -> Iterator["BufferedReader[Any]"]:
    """Open a file as decompressed bytes; system errors are raised as ``error``."""
    if path.is_dir():
        raise error(f"{path}: expected a file, found a folder")
    try:
        with path.open("rb") as stored:
            if not path.name.lower().endswith(".gz"):
                yield stored
                return
            with BufferedReader(gzip.GzipFile(fileobj=stored), BLOCK) as content:
                yield content
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise error(f"{path}: the compressed file is damaged or incomplete") from None
    except OSError as problem:
        raise error(f"{path}: cannot be read ({problem.strerror or problem})") from None


@contextmanager
def open_lines(path: Path, encoding: str, *, plain: bool = False) -> Iterator[Iterator[str]]:
    r"""Open a file as lines of text, and raise an error at the first undecodable byte.

    Plain lines end at ``\n`` only and may hold any character. Without ``plain`` they are meant for
    a parser: they keep their line ends, and a NUL character is an error.
    """
    with open_bytes(path) as content:
        codec, newline = codec_of(encoding), "\n" if plain else ""
        try:
            # With surrogate escapes the line of an undecodable byte is known.
            with TextIOWrapper(content, codec, errors="surrogateescape", newline=newline) as text:
                lines = _decodable(path, text, encoding)
                yield lines if plain else _without_nul(path, lines)
        except UnicodeError:  # UTF-16 and its relatives support no surrogate escapes
            problem = f"not {encoding.upper()}; pass the right encoding with --encoding"
            raise file_error(path, problem) from None


def codec_of(encoding: str) -> str:
    """Return the codec for an encoding named by the user; for UTF-8, one that drops a BOM."""
    try:
        codec = codecs.lookup(encoding).name
        "".encode(codec)  # fails for codecs that are not text encodings, such as hex
    except (LookupError, ValueError):
        hint = "try utf-8, utf-16, latin-1 or cp1252"
        raise DataError(f"unknown encoding {encoding!r}; {hint}") from None
    return "utf-8-sig" if codec == "utf-8" else codec


def _decodable(path: Path, lines: Iterable[str], encoding: str) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if escaped := find_surrogate(line):
            byte = ord(escaped) & 0xFF
            guess = "utf-16" if number == 1 and byte in codecs.BOM_UTF16 else "cp1252"
            problem = f"not {encoding.upper()} (byte {byte:#04x})"
            hint = f"pass the right encoding, for example --encoding {guess}"
            raise file_error(path, f"{problem}; {hint}", number)
        yield line


def _without_nul(path: Path, lines: Iterable[str]) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            hint = "if the file is UTF-16, pass --encoding utf-16"
            raise file_error(path, f"contains a NUL byte; {hint}", number)
        yield line


def find_surrogate(text: str) -> str | None:
    """Return the first lone surrogate of a text; encoding finds it far faster than a search."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        return text[error.start]
    return None


def guess_encoding(path: Path) -> str:
    """Return an encoding that fits every byte of a file, UTF-8 if possible.

    A file that cannot be read is reported as UTF-8; reading its rows raises the error.
    """
    fitting = {name: codecs.getincrementaldecoder(name)() for name in ("utf-8", "cp1252")}
    try:
        with open_bytes(path) as content:
            if content.peek(2).startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                return "utf-16"
            block = None
            while block != b"" and fitting:
                block = content.read(BLOCK)
                for name in tuple(fitting):
                    try:
                        fitting[name].decode(block, final=not block)
                    except UnicodeDecodeError:
                        del fitting[name]
    except FathomerError:
        return "utf-8"
    return next(iter(fitting), "latin-1")


def count_lines(path: Path) -> int | None:
    """Count the lines of a file; return ``None`` for a stream or a compressed file."""
    if not path.is_file() or path.suffix.lower() == ".gz":
        return None
    with path.open("rb") as file:
        return sum(block.count(b"\n") for block in iter(partial(file.read, BLOCK), b""))
