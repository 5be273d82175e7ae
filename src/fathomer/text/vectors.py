r"""Pretrained word vectors, read as a stream that keeps only the words that are needed.

GloVe's text (``.txt``), fastText's text with a header (``.vec``), word2vec's binary (``.bin``),
each also with ``.gz``, and a ``.zip`` that holds one text file. Whatever is wrong with a file is
one :class:`VectorsError` that names the file and the line, or the word where there are no lines.

The text formats are split at ASCII spaces and ``\n`` only, as bytes: GloVe's words hold no-break
spaces and next-line characters. GloVe 840B also has words with spaces inside (``. . .``), so a
vector is the *last* ``size`` fields of its line. A word that is not UTF-8 is passed over.
"""

import codecs
import gzip
import re
import zipfile
import zlib
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from io import BufferedReader, RawIOBase
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import IO, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from fathomer.errors import MissingFileError, VectorsError

KINDS = "GloVe .txt, fastText .vec or word2vec .bin, each also with .gz, or a .zip of one .txt"
BUFFER = 1 << 20
MAX_SIZE = 1 << 16  # a header that promises longer vectors is no header
HEADER = re.compile(rb"(\d+) (\d+)\s*")
VOTERS = 10


class Vectors(NamedTuple):
    """Hold words with their vectors, in the order of the file."""

    words: list[str]
    matrix: NDArray[np.float32]
    """One row per word."""

    @property
    def size(self) -> int:
        """Return the length of a vector."""
        return int(self.matrix.shape[1])


# An entry is where it stands (its line, or its number in a file without lines), its word, and its
# numbers still as bytes: for most words they are never parsed.
_Entry = tuple[int, bytes, bytes]


class _Table(NamedTuple):
    """Hold an open file: the length of its vectors, its entries, and how to parse their numbers."""

    size: int
    entries: Iterator[_Entry]
    parse: Callable[[bytes, int], NDArray[np.float32]]
    unit: str
    """What the place of an entry counts: lines or words."""


def read_vectors(path: Path, *, needed: Collection[str], also_first: int = 0) -> Vectors:
    """Read the vectors of the words in ``needed`` and of the file's first ``also_first`` words.

    Files are sorted by frequency, so the first words are the commonest. Of a word that stands twice
    in the file, the first vector counts.
    """
    with _opened(path) as stream:
        table = _binary_table(path, stream) if _kind(path) == ".bin" else _text_table(path, stream)
        return _keep(path, table, needed, also_first)


def _keep(path: Path, table: _Table, needed: Collection[str], also_first: int) -> Vectors:
    """Go through all entries, and parse the numbers of those to keep."""
    wanted = {word.encode("utf-8", "surrogatepass") for word in needed}
    kept: dict[str, None] = {}
    numbers = bytearray()  # grows in place: a list of rows would need the memory twice
    for rank, (place, word, tail) in enumerate(table.entries):
        if word not in wanted and rank >= also_first:
            continue
        text = _decoded(word)
        if text is None or text in kept:
            continue
        try:
            numbers += table.parse(tail, table.size).tobytes()
        except ValueError as error:
            raise VectorsError(f"{path}, {table.unit} {place}: {error}") from None
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
        raise ValueError("a number that is not finite")
    return numbers


def _kind(path: Path) -> str:
    """Return the suffix that says what a file holds, whether packed with gzip or not."""
    return Path(path.name.lower().removesuffix(".gz")).suffix


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    """Open a file as a stream of unpacked bytes, and turn what the system says into our errors."""
    if path.is_dir():
        raise VectorsError(f"{path}: a folder where a file was expected")
    try:
        with ExitStack() as stack:
            stored = stack.enter_context(path.open("rb"))
            if _kind(path) not in (".txt", ".vec", ".bin", ".zip"):
                raise VectorsError(f"{path}: not a kind of file that can be read; give {KINDS}")
            if not stored.peek(1):
                raise VectorsError(f"{path}: the file is empty")
            yield _unpacked(path, stored, stack)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such file") from None
    except (EOFError, zlib.error, gzip.BadGzipFile):
        raise VectorsError(f"{path}: a damaged or incomplete file") from None
    except (zipfile.BadZipFile, RuntimeError) as error:  # RuntimeError: a password is asked for
        raise VectorsError(f"{path}: not a zip file that can be read ({error})") from None
    except OSError as error:
        raise VectorsError(f"{path}: cannot be read ({error.strerror or error})") from None


def _unpacked(path: Path, stored: BufferedReader, stack: ExitStack) -> IO[bytes]:
    """Return the stream inside a gzip or zip file, or else the file itself."""
    if path.name.lower().endswith(".gz"):
        return BufferedReader(stack.enter_context(gzip.GzipFile(fileobj=stored)), BUFFER)
    if _kind(path) != ".zip":
        return stored
    archive = stack.enter_context(zipfile.ZipFile(stored))
    member = _text_member(path, archive.namelist())
    return BufferedReader(cast(RawIOBase, stack.enter_context(archive.open(member))), BUFFER)


def _text_member(path: Path, names: list[str]) -> str:
    """Choose the one text file of an archive; macOS adds folders of its own, which do not count."""
    files = [n for n in names if not n.endswith("/") and not n.startswith("__MACOSX/")]
    for suffix in (".txt", ".vec"):
        found = [name for name in files if name.lower().endswith(suffix)]
        if len(found) == 1:
            return found[0]
    listed = ", ".join(files[:20]) or "nothing"
    raise VectorsError(f"{path}: one .txt file was expected inside, found {listed}; unpack yours")


def _text_table(path: Path, stream: IO[bytes]) -> _Table:
    """Take the vectors' length from the header or, without one, from the first lines."""
    head = list(islice(stream, VOTERS))
    if not head:
        raise VectorsError(f"{path}: the file is empty")
    head[0] = head[0].removeprefix(codecs.BOM_UTF8)
    promised, size = _header(head[0]) or (0, _voted_size(head))
    if not size:
        raise VectorsError(f"{path}, line 1: a word and its numbers were expected")
    lines = enumerate(chain(head, stream), start=1)
    entries = _text_entries(path, islice(lines, 1 if promised else 0, None), size, promised)
    return _Table(size, entries, _text_numbers, "line")


def _header(line: bytes) -> tuple[int, int] | None:
    """Read ``count size``; two whole numbers are never taken for a word with a single number."""
    found = HEADER.fullmatch(line)
    if not found or not 0 < int(found[2]) <= MAX_SIZE:
        return None
    return int(found[1]), int(found[2])


def _voted_size(head: list[bytes]) -> int:
    """Let the first lines vote on the length, since one of them may be damaged."""
    votes = Counter(count for line in head if (count := _count_numbers(line.rstrip())))
    return votes.most_common(1)[0][0] if votes else 0


def _count_numbers(line: bytes) -> int:
    """Count the numbers at the end of a line; its first field is a word, whatever it looks like."""
    fields = line.split(b" ")[1:]
    return sum(1 for _ in takewhile(_is_number, reversed(fields)))


def _is_number(field: bytes) -> bool:
    try:
        float(field)
    except ValueError:
        return False
    return True


def _text_entries(
    path: Path, lines: Iterable[tuple[int, bytes]], size: int, promised: int
) -> Iterator[_Entry]:
    """Find the word of each line, and check the length of its vector.

    Splitting a line costs far more than counting its spaces, so only a line with more spaces than
    numbers is split: its word has spaces inside. A word that ends in a number of its own cannot be
    told from a vector that is too long, and is an error; none is known in a published file.
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
                raise VectorsError(
                    f"{path}, line {number}: {found} numbers where {size} were expected"
                )
            word = line.rsplit(b" ", size)[0]
        words += 1
        yield number, word, line
    if words < promised:
        raise _incomplete(path, promised, words)


def _incomplete(path: Path, promised: int, found: int) -> VectorsError:
    return VectorsError(f"{path}: incomplete; its header promises {promised} words, it has {found}")


def _text_numbers(line: bytes, size: int) -> NDArray[np.float32]:
    fields = line.rsplit(b" ", size)[1:]
    try:
        values = list(map(float, fields))
    except ValueError:
        bad = next(field for field in fields if not _is_number(field))
        raise ValueError(f"{bad.decode(errors='replace')!r} is not a number") from None
    with np.errstate(over="ignore"):  # what is too large for float32 becomes infinite
        return _finite(np.array(values, dtype=np.float32))


def _binary_table(path: Path, stream: IO[bytes]) -> _Table:
    header = _header(stream.readline(64))
    if header is None:
        raise VectorsError(
            f"{path}: no word2vec header (count and size) at its start; "
            "if it is a fastText model, give its .vec file instead"
        )
    count, size = header
    return _Table(size, _binary_entries(path, stream, count, size), _binary_numbers, "word")


def _binary_entries(path: Path, stream: IO[bytes], count: int, size: int) -> Iterator[_Entry]:
    """Cut a stream into words, each up to a space, and the ``size`` floats after each."""
    width = 4 * size
    block, start = b"", 0
    for number in range(1, count + 1):
        space = block.find(b" ", start)
        while space < 0 or len(block) <= space + width:
            more = stream.read(BUFFER)
            if not more or (space < 0 and len(block) - start > BUFFER):  # the end, or no words
                raise _incomplete(path, count, number - 1)
            block, start = block[start:] + more, 0
            space = block.find(b" ")
        end = space + 1 + width
        yield number, block[start:space].lstrip(b"\n"), block[space + 1 : end]
        start = end


def _binary_numbers(numbers: bytes, size: int) -> NDArray[np.float32]:
    return _finite(np.frombuffer(numbers, dtype="<f4", count=size).astype(np.float32))
