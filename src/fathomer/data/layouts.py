"""The formats in which corpora are published, read from plain files, gzip files or an archive.

A byte that the encoding does not have becomes U+FFFD, and ``fathomer data check`` counts such texts.
Published results are for whole corpora, so a damaged text is no reason to refuse one.
"""

import gzip
import lzma
import tarfile
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import IO

from fathomer.data.csv_jsonl import split_cells
from fathomer.data.datasets import Corpus, CorpusFile, Split
from fathomer.data.examples import Example
from fathomer.data.reading import Row
from fathomer.errors import DataError, MissingFileError
from fathomer.open_files import file_error, open_bytes

Layout = Callable[[IO[bytes], str, Corpus], Iterator[Row]]
"""Reads an open file, which errors refer to by the given name; labels are as in the file."""


def _lines(stream: IO[bytes], corpus: Corpus) -> Iterator[tuple[int, str]]:
    r"""Split at ``\n`` only, since the texts contain other characters that end lines elsewhere."""
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield number, line.decode(corpus.encoding, "replace").rstrip("\r\n")


def plain_lines(stream: IO[bytes], _where: str, corpus: Corpus) -> Iterator[Row]:
    """Read one text per line; all have the label of the file."""
    for number, line in _lines(stream, corpus):
        yield Row(number, line.strip())


def question_lines(stream: IO[bytes], where: str, corpus: Corpus) -> Iterator[Row]:
    """Read lines of ``COARSE:fine question``; the coarse class is the label.

    >>> import io
    >>> from fathomer.data.datasets import CORPORA
    >>> [row] = question_lines(io.BytesIO(b"NUM:date When was it ?"), "trec", CORPORA["trec"])
    >>> row.text, row.label
    ('When was it ?', 'NUM')
    """
    for number, line in _lines(stream, corpus):
        classes, _, text = line.partition(" ")
        coarse, colon, _ = classes.partition(":")
        if not colon:
            raise file_error(where, "expected 'COARSE:fine question'", number)
        yield Row(number, text.strip(), coarse)


def tabbed_lines(stream: IO[bytes], where: str, corpus: Corpus) -> Iterator[Row]:
    """Read lines of a label, a tab and a text, which may be empty."""
    for number, line in _lines(stream, corpus):
        label, tab, text = line.partition("\t")
        if not tab:
            raise file_error(where, "expected a label, a tab and a text", number)
        yield Row(number, text.strip(), label.strip())


def whole_file(stream: IO[bytes], _where: str, corpus: Corpus) -> Iterator[Row]:
    """Read a file that holds a single text; its label is that of its folder."""
    yield Row(1, stream.read().decode(corpus.encoding, "replace").strip())


def headless_csv(stream: IO[bytes], where: str, corpus: Corpus) -> Iterator[Row]:
    """Read a csv without a header: the label, then the columns that make up the text."""
    lines = (line.decode(corpus.encoding, "replace").replace("\0", "") for line in stream)
    for number, cells in split_cells(where, lines):
        if len(cells) != corpus.columns:
            problem = f"expected {corpus.columns} columns, found {len(cells)}"
            raise file_error(where, problem, number)
        text = " ".join(cells[1:])
        for escape, meaning in corpus.escapes:
            text = text.replace(escape, meaning)
        yield Row(number, text.strip(), cells[0].strip())


LAYOUTS: Mapping[str, Layout] = {
    "lines": plain_lines,
    "questions": question_lines,
    "tabs": tabbed_lines,
    "whole files": whole_file,
    "csv": headless_csv,
}


def find_file(file: CorpusFile, folder: Path) -> Path | None:
    """Return the path of a file outside an archive, or ``None`` if it is missing."""
    for path in (folder / file.name, folder / f"{file.name}.gz"):
        if path.exists():
            return path
    return None


def find_archive(corpus: Corpus, folder: Path) -> Path | None:
    """Return the path of a corpus's archive, or ``None`` if it is missing."""
    names = corpus.archive.names if corpus.archive else ()
    return next((folder / name for name in names if (folder / name).is_file()), None)


def is_present(corpus: Corpus, data_dir: Path) -> bool:
    """Whether all files of a corpus, or its archive, are in the data folder."""
    folder = data_dir / corpus.folder
    if find_archive(corpus, folder):
        return True
    return all(find_file(file, folder) for file in corpus.files)


def read_corpus(
    corpus: Corpus, data_dir: Path, splits: Collection[Split] = ("train", "test")
) -> Iterator[tuple[Split, Example]]:
    """Read a corpus file by file; files inside an archive come in the archive's order."""
    folder = data_dir / corpus.folder
    archive = find_archive(corpus, folder)
    archived: list[CorpusFile] = []
    for file in corpus.files:
        if file.split not in splits:
            continue
        path = find_file(file, folder)
        if path:
            yield from _read_plain(corpus, file, path)
        elif archive:
            archived.append(file)
        else:
            hint = _how_to_get(corpus, folder)
            raise MissingFileError(f"{folder / file.name}: no such file; {hint}")
    if archive and archived:
        yield from _read_archived(corpus, archived, archive)


def _how_to_get(corpus: Corpus, folder: Path) -> str:
    names = " and ".join(file.name for file in corpus.files)
    if corpus.archive:
        archive = corpus.archive.names[0]
        names = archive if names.endswith("/") else f"{archive} (or {names})"
    return f"run fathomer data get {corpus.name}, or put {names} into {folder}"


def _read_plain(corpus: Corpus, file: CorpusFile, path: Path) -> Iterator[tuple[Split, Example]]:
    """Read a file, or all files of a folder."""
    for each in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
        with open_bytes(each) as stream:
            yield from _examples(corpus, file, str(each), stream)


def _read_archived(
    corpus: Corpus, files: list[CorpusFile], archive: Path
) -> Iterator[tuple[Split, Example]]:
    """Read files from an archive in one pass, without unpacking it."""
    missing = {file.name for file in files}
    try:
        with tarfile.open(archive, "r|*") as tar:
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # or it keeps all of them
                file = _file_of(member.name, files) if member.isfile() else None
                stream = tar.extractfile(member) if file else None
                if file and stream:
                    missing.discard(file.name)
                    yield from _examples(corpus, file, f"{archive}: {member.name}", stream)
    except (tarfile.TarError, EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile):
        raise DataError(
            f"{archive}: the archive is damaged or incomplete; delete it and run "
            f"fathomer data get {corpus.name}"
        ) from None
    except OSError as error:
        raise file_error(archive, f"cannot be read ({error.strerror or error})") from None
    if missing:
        raise file_error(archive, f"the archive lacks {', '.join(sorted(missing))}")


def _file_of(member: str, files: list[CorpusFile]) -> CorpusFile | None:
    """Return the file that an archive member is, or in whose folder it is."""
    name = PurePosixPath(member)
    for file in files:
        found = name.parent if file.name.endswith("/") else name
        if PurePosixPath("/", found).match(f"*/{file.name.rstrip('/')}"):
            return file
    return None


def _examples(
    corpus: Corpus, file: CorpusFile, where: str, stream: IO[bytes]
) -> Iterator[tuple[Split, Example]]:
    """Read the rows of a file and give their labels readable names."""
    for row in LAYOUTS[corpus.layout](stream, where, corpus):
        label = corpus.labels.get(row.label or file.label)
        if label is None:
            known = ", ".join(corpus.labels)
            problem = f"unknown label {row.label!r}; {corpus.name} has {known}"
            raise file_error(where, problem, row.line)
        yield file.split, Example(row.text, label)
