"""Where the files of a corpus are, and how they are read: plain, gzipped, or in their archive."""

import gzip
import os
import tarfile
import zlib
from collections.abc import Collection, Iterator
from pathlib import Path, PurePosixPath
from typing import IO, NamedTuple, cast

from fathomer.data.corpus import Corpus, File, Split
from fathomer.errors import DataError, MissingFileError


class Read(NamedTuple):
    """Hold one row of a corpus."""

    split: Split
    text: str
    label: str
    """By its readable name."""


def data_folder(chosen: Path | None = None) -> Path:
    """Say where corpora and vectors are: as chosen, as FATHOMER_DATA says, or in the cache."""
    if chosen is not None:
        return chosen
    if variable := os.environ.get("FATHOMER_DATA"):
        return Path(variable).expanduser()
    import pooch

    return Path(pooch.os_cache("fathomer"))


def path_of(file: File, folder: Path) -> Path | None:
    """Find a file that is not in an archive."""
    for path in (folder / file.name, folder / f"{file.name}.gz"):
        if path.exists():
            return path
    return None


def archive_of(corpus: Corpus, folder: Path) -> Path | None:
    """Find the archive of a corpus."""
    names = corpus.archive.names if corpus.archive else ()
    return next((folder / name for name in names if (folder / name).is_file()), None)


def partial_of(file: File, folder: Path) -> Path | None:
    """Find the file that may stand in for a missing one."""
    path = folder / file.partial if file.partial else None
    return path if path and path.is_file() else None


def is_partial(corpus: Corpus, file: File, folder: Path) -> bool:
    """Say whether only a part of a file is there."""
    whole = path_of(file, folder) or archive_of(corpus, folder)
    return whole is None and partial_of(file, folder) is not None


def is_present(corpus: Corpus, data_dir: Path) -> bool:
    """Say whether all texts of a corpus are there, or a part that stands in for them."""
    folder = data_dir / corpus.folder
    if archive_of(corpus, folder):
        return True
    return all(path_of(file, folder) or partial_of(file, folder) for file in corpus.files)


def read_corpus(
    corpus: Corpus, data_dir: Path, splits: Collection[Split] = ("train", "test")
) -> Iterator[Read]:
    """Read the files of a corpus one after another; those in an archive come in its order."""
    folder = data_dir / corpus.folder
    archive = archive_of(corpus, folder)
    packed: list[File] = []
    for file in corpus.files:
        if file.split not in splits:
            continue
        path = path_of(file, folder)
        if path is None and archive is not None:
            packed.append(file)
            continue
        path = path or partial_of(file, folder)
        if path is None:
            raise MissingFileError(f"{folder / file.name}: not there; {how_to_get(corpus, folder)}")
        yield from _read_plain(corpus, file, path)
    if archive and packed:
        yield from _read_packed(corpus, packed, archive)


def how_to_get(corpus: Corpus, folder: Path) -> str:
    """Say how a corpus gets to where it is looked for."""
    names = " and ".join(file.name for file in corpus.files)
    if corpus.archive:
        packed = corpus.archive.names[0]
        names = packed if names.endswith("/") else f"{packed} (or {names})"
    return f"run fathomer data get {corpus.name}, or put {names} into {folder}"


def _read_plain(corpus: Corpus, file: File, path: Path) -> Iterator[Read]:
    """Read a file, or all files of an unpacked folder."""
    for each in sorted(path.glob("*.txt")) if path.is_dir() else [path]:
        try:
            with gzip.open(each) if each.suffix == ".gz" else each.open("rb") as stream:
                yield from _rows(corpus, file, str(each), cast(IO[bytes], stream))
        except (EOFError, zlib.error, gzip.BadGzipFile):
            raise DataError(f"{each}: a damaged or incomplete gzip file") from None
        except OSError as error:
            raise DataError(f"{each}: cannot be read ({error.strerror or error})") from None


def _read_packed(corpus: Corpus, files: list[File], archive: Path) -> Iterator[Read]:
    """Go through an archive once, without unpacking it."""
    missing = {file.name for file in files}
    try:
        with tarfile.open(archive, "r|*") as tar:
            while (member := tar.next()) is not None:
                tar.members.clear()  # type: ignore[attr-defined]  # else it keeps all of them
                file = _file_of(member.name, files) if member.isfile() else None
                stream = tar.extractfile(member) if file else None
                if file and stream:
                    missing.discard(file.name)
                    yield from _rows(corpus, file, f"{archive}: {member.name}", stream)
    except (tarfile.TarError, EOFError, zlib.error, gzip.BadGzipFile):
        raise DataError(
            f"{archive}: a damaged or incomplete archive; delete it and run "
            f"fathomer data get {corpus.name}"
        ) from None
    except OSError as error:
        raise DataError(f"{archive}: cannot be read ({error.strerror or error})") from None
    if missing:
        raise DataError(f"{archive}: has no {', '.join(sorted(missing))} inside")


def _file_of(member: str, files: list[File]) -> File | None:
    """Find the file that a member of an archive is, or in whose folder it lies."""
    name = PurePosixPath(member)
    for file in files:
        found = name.parent if file.name.endswith("/") else name
        if PurePosixPath("/", found).match(f"*/{file.name.rstrip('/')}"):
            return file
    return None


def _rows(corpus: Corpus, file: File, where: str, stream: IO[bytes]) -> Iterator[Read]:
    """Read the rows of one file, and give their labels readable names."""
    for row in corpus.layout(stream, where, file.encoding):
        label = corpus.labels.get(row.label or file.label)
        if label is None:
            raise DataError(
                f"{where}, line {row.line}: unknown label {row.label!r}; "
                f"{corpus.name} has {', '.join(corpus.labels)}"
            )
        yield Read(file.split, row.text, label)
