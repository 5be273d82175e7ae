r"""Reading pretrained word vectors as a stream, keeping only the words that are needed.

The formats are GloVe's text (``.txt``), fastText's text with a header (``.vec``) and word2vec's
binary (``.bin``), each also with ``.gz``, and a ``.zip`` of one text file. An error in a file is a
:class:`VectorsError` that names the file and the line, or the word in a binary file.

Text is split at ASCII spaces and ``\n`` only, as bytes, because GloVe's words contain no-break spaces
and next-line characters. Some words of GloVe 840B contain spaces (``. . .``), so a vector is the
*last* ``size`` fields of its line. Words that are not valid UTF-8 are skipped.
"""

import codecs
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from io import BufferedReader, RawIOBase
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import VectorsError
from fathomer.open_files import BLOCK, format_suffix, open_bytes

FORMATS = (
    "GloVe .txt, fastText .vec or word2vec .bin, each also with .gz, a .zip of one .txt, "
    "or .safetensors from fathomer vectors"
)
MAX_SIZE = 1 << 16  # a line that announces longer vectors is not a header
HEADER = re.compile(rb"(\d{1,18}) (\d{1,18})\s*")
VOTING_LINES = 10


class Vectors(NamedTuple):
    """Words with their vectors, in the order of the file."""

    words: list[str]
    matrix: NDArray[np.float32]
    """One row per word."""
    parts: tuple[int, ...] = ()
    """Widths of the parts of joined vectors; one part if empty."""

    @property
    def size(self) -> int:
        """The length of a vector."""
        return int(self.matrix.shape[1])


# An entry is its position (a line, or a number in a binary file), its word, and its numbers still as
# bytes, because those of most words are never parsed.
_Entry = tuple[int, bytes, bytes]


class _Table(NamedTuple):
    """An open file: the length of its vectors, its entries, and the parser of their numbers."""

    size: int
    entries: Iterator[_Entry]
    parse: Callable[[bytes, int], NDArray[np.float32]]
    unit: str
    """What the position of an entry counts: lines or words."""


def read_vectors(path: Path, *, needed: Collection[str], also_first: int = 0) -> Vectors:
    """Read the vectors of the words in ``needed`` and of the file's first ``also_first`` words.

    Files are sorted by frequency, so the first words are the most common. If a word occurs twice in
    the file, its first vector is used.
    """
    with _open_table(path) as table:
        return _keep(path, table, needed, also_first)


def first_words(path: Path, count: int) -> list[str]:
    """Return the file's first words, without parsing their vectors."""
    with _open_table(path) as table:
        words = (_decoded(word) for _, word, _ in islice(table.entries, count))
        return list(dict.fromkeys(word for word in words if word is not None))


def vector_size(path: Path) -> int:
    """Return the length of the vectors, without reading all of them."""
    with _open_table(path) as table:
        return table.size


def looks_like_vectors(path: Path) -> bool:
    """Whether the first line of a file is a word with its numbers, or a header of vectors."""
    with open_bytes(path, error=VectorsError) as content:
        line = content.readline(BLOCK).removeprefix(codecs.BOM_UTF8).rstrip()
    return _header(line) is not None or 1 < _count_numbers(line) == line.count(b" ")


@contextmanager
def _open_table(path: Path) -> Iterator[_Table]:
    with _open_vectors(path) as stream:
        is_binary = format_suffix(path) == ".bin"
        yield _binary_table(path, stream) if is_binary else _text_table(path, stream)


def _keep(path: Path, table: _Table, needed: Collection[str], also_first: int) -> Vectors:
    """Parse the vectors of the words to keep."""
    wanted = {word.encode("utf-8", "surrogatepass") for word in needed}
    kept: dict[str, None] = {}
    numbers = bytearray()  # stacking a list of rows would take twice the memory
    for rank, (position, word, tail) in enumerate(table.entries):
        if word not in wanted and rank >= also_first:
            continue
        text = _decoded(word)
        if text is None or text in kept:
            continue
        try:
            numbers += table.parse(tail, table.size).tobytes()
        except ValueError as error:
            raise VectorsError(f"{path}, {table.unit} {position}: {error}") from None
        kept[text] = None
    matrix = np.frombuffer(numbers, dtype=np.float32).reshape(len(kept), table.size)
    return Vectors(list(kept), matrix)


def _decoded(word: bytes) -> str | None:
    try:
        return word.decode("utf-8")
    except UnicodeDecodeError:
        return None


def _finite(numbers: NDArray[np.float32]) -> NDArray[np.float32]:
    if not np.isfinite(numbers).all():
        raise ValueError("a number is not finite")
    return numbers


@contextmanager
def _open_vectors(path: Path) -> Iterator[IO[bytes]]:
    """Open a file of vectors, or the text file inside a zip archive, as decompressed bytes."""
    with open_bytes(path, error=VectorsError) as content:
        suffix = format_suffix(path)
        if suffix not in (".txt", ".vec", ".bin", ".zip"):
            raise VectorsError(f"{path}: unsupported file format; use {FORMATS}")
        if not content.peek(1):
            raise VectorsError(f"{path}: the file is empty")
        if suffix != ".zip":
            yield content
            return
        try:
            with (
                zipfile.ZipFile(content) as archive,
                archive.open(_text_member(path, archive.namelist())) as member,
            ):
                yield BufferedReader(cast(RawIOBase, member), BLOCK)
        except (zipfile.BadZipFile, lzma.LZMAError, RuntimeError) as error:
            # RuntimeError: a password or an unknown method of compression
            raise VectorsError(f"{path}: not a readable zip file ({error})") from None


def _text_member(path: Path, names: list[str]) -> str:
    """Return the one text file of an archive, ignoring the folder that macOS adds."""
    files = [n for n in names if not n.endswith("/") and not n.startswith("__MACOSX/")]
    for suffix in (".txt", ".vec"):
        found = [name for name in files if name.lower().endswith(suffix)]
        if len(found) == 1:
            return found[0]
    listed = ", ".join(files[:20]) or "nothing"
    raise VectorsError(
        f"{path}: expected one .txt file inside, found {listed}; unpack the file you want"
    )


def _text_table(path: Path, stream: IO[bytes]) -> _Table:
    """Read the length of the vectors from the header or, without one, from the first lines."""
    head = list(islice(stream, VOTING_LINES))
    if not head:
        raise VectorsError(f"{path}: the file is empty")
    head[0] = head[0].removeprefix(codecs.BOM_UTF8)
    announced, size = _header(head[0]) or (0, _voted_size(head))
    if not size:
        raise VectorsError(f"{path}, line 1: expected a word and its numbers")
    lines = enumerate(chain(head, stream), start=1)
    entries = _text_entries(path, islice(lines, 1 if announced else 0, None), size, announced)
    return _Table(size, entries, _text_numbers, "line")


def _header(line: bytes) -> tuple[int, int] | None:
    """Parse ``count size``; two whole numbers are never a word with a vector of length 1."""
    found = HEADER.fullmatch(line)
    if not found or not 0 < int(found[2]) <= MAX_SIZE:
        return None
    return int(found[1]), int(found[2])


def _voted_size(head: list[bytes]) -> int:
    """Return the most common length among the first lines, since one of them may be damaged."""
    votes = Counter(count for line in head if (count := _count_numbers(line.rstrip())))
    return votes.most_common(1)[0][0] if votes else 0


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line; its first field is always the word."""
    fields = line.split(b" ")[1:]
    return sum(1 for _ in takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text_entries(
    path: Path, lines: Iterable[tuple[int, bytes]], size: int, announced: int
) -> Iterator[_Entry]:
    """Yield the word of each line, and check the length of its vector.

    Splitting a line is much slower than counting its spaces, so only lines with more spaces than
    numbers are split: their word contains spaces. A word that itself ends in a number looks like a
    vector that is too long and is an error; no published file is known to have one.
    """
    words = 0
    for number, line in lines:
        line = line.rstrip()  # fastText ends its lines with a space
        spaces = line.count(b" ")
        if spaces == size:
            word = line[: line.index(b" ")]
        elif not line:
            continue
        else:
            found = _count_numbers(line)
            if found != size:
                raise VectorsError(f"{path}, line {number}: expected {size} numbers, found {found}")
            word = line.rsplit(b" ", size)[0]
        words += 1
        yield number, word, line
    if words < announced:
        raise _incomplete(path, announced, words)


def _incomplete(path: Path, announced: int, found: int) -> VectorsError:
    return VectorsError(f"{path}: incomplete; the header says {announced} words, found {found}")


def _text_numbers(line: bytes, size: int) -> NDArray[np.float32]:
    fields = line.rsplit(b" ", size)[1:]
    try:
        values = list(map(float, fields))
    except ValueError:
        bad = next(field for field in fields if not _is_number(field))
        raise ValueError(f"{bad.decode(errors='replace')!r} is not a number") from None
    with np.errstate(over="ignore"):  # numbers too large for float32 become infinite
        return _finite(np.array(values, dtype=np.float32))


def _binary_table(path: Path, stream: IO[bytes]) -> _Table:
    header = _header(stream.readline(64))
    if header is None:
        raise VectorsError(
            f"{path}: no word2vec header (count and size) at the start; "
            "for a fastText model, use its .vec file instead"
        )
    count, size = header
    return _Table(size, _binary_entries(path, stream, count, size), _binary_numbers, "word")


def _binary_entries(path: Path, stream: IO[bytes], count: int, size: int) -> Iterator[_Entry]:
    """Split a stream into words, each followed by a space and ``size`` floats."""
    width = 4 * size
    block, start = b"", 0
    for number in range(1, count + 1):
        space = block.find(b" ", start)
        while space < 0 or len(block) <= space + width:
            more = stream.read(BLOCK)
            if not more or (space < 0 and len(block) - start > BLOCK):  # the end, or not words
                raise _incomplete(path, count, number - 1)
            block, start = block[start:] + more, 0
            space = block.find(b" ")
        end = space + 1 + width
        yield number, block[start:space].lstrip(b"\n"), block[space + 1 : end]
        start = end


def _binary_numbers(numbers: bytes, size: int) -> NDArray[np.float32]:
    return _finite(np.frombuffer(numbers, dtype="<f4", count=size).astype(np.float32))
