"""Pretrained word vectors by name: the published files, and whatever lies in ``vectors/``."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from fathomer.data.places import data_folder
from fathomer.errors import MissingFileError, did_you_mean

FOLDER = "vectors"
SUFFIXES = (".txt", ".txt.gz", ".zip", ".vec", ".vec.gz", ".bin", ".bin.gz")


@dataclass(frozen=True, kw_only=True)
class Pretrained:
    """Describe published vectors."""

    name: str
    url: str
    sha256: str
    page: str = "https://nlp.stanford.edu/projects/glove/"
    terms: str = "Public Domain Dedication and License 1.0"

    @property
    def file(self) -> str:
        """Name the file as it is published."""
        return self.url.rpartition("/")[2]


VECTORS: Mapping[str, Pretrained] = {
    vectors.name: vectors
    for vectors in (
        Pretrained(
            name="glove.840B.300d",
            url="https://nlp.stanford.edu/data/glove.840B.300d.zip",
            sha256="c06db255e65095393609f19a4cfca20bf3a71e20cc53e892aafa490347e3849f",
        ),
        Pretrained(
            name="glove.42B.300d",
            url="https://nlp.stanford.edu/data/glove.42B.300d.zip",
            sha256="03d5d7fa28e58762ace4b85fb71fe86a345ef0b5ff39f5390c14869da0fc1970",
        ),
    )
}
"""The paper used the first: 2.2 million words, with upper and lower case."""


def find_vectors(name: str, data_dir: Path | None = None) -> Path:
    """Find vectors: a file, or one in the data folder by its name without suffix."""
    if Path(name).exists():
        return Path(name)
    folder = data_folder(data_dir) / FOLDER
    for suffix in ("", *SUFFIXES):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    if name in VECTORS:
        raise MissingFileError(
            f"{folder / VECTORS[name].file}: not there; "
            f"run fathomer data get {name}, or put {VECTORS[name].file} into {folder}"
        )
    if name.lower().endswith(SUFFIXES):
        raise MissingFileError(f"{name}: no such file")
    known = did_you_mean(name, {*VECTORS, *_names_in(folder)})
    raise MissingFileError(f"{name}: no such file or vectors; {known}")


def known_vectors(data_dir: Path) -> dict[str, bool]:
    """Name the published vectors and those in the data folder; say which are there."""
    present = _names_in(data_dir / FOLDER)
    return {name: name in present for name in [*VECTORS, *sorted(present - {*VECTORS})]}


def _names_in(folder: Path) -> set[str]:
    """Name the vectors that lie in a folder."""
    return {
        path.name.removesuffix(suffix)
        for path in (folder.iterdir() if folder.is_dir() else ())
        for suffix in sorted(SUFFIXES, key=len)
        if path.name.endswith(suffix)
    }
