"""What is known of a corpus before it is read: an entry that names its files and their format."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, NamedTuple

from fathomer.data.layouts import Layout

Split = Literal["train", "test"]


class Lengths(NamedTuple):
    """Hold the mean and the largest number of words in a text."""

    average: float
    longest: int


class Published(NamedTuple):
    """Hold a row of the paper's Table 1; without a test part it was cross validation."""

    lengths: Lengths
    train: int
    test: int | None


@dataclass(frozen=True, kw_only=True)
class File:
    """Describe one file of texts."""

    name: str
    """In the corpus's folder, or inside its archive; with a slash at its end, a folder of texts."""
    split: Split = "train"
    label: str = ""
    """Of all texts in the file, where its format has no labels."""
    encoding: str = "utf-8"
    sha256: str | None = None
    url: str | None = None
    partial: str | None = None
    """A file that may stand in for this one, though it holds only a part of it."""


@dataclass(frozen=True)
class Archive:
    """Describe the packed file that holds all files of a corpus."""

    names: tuple[str, ...]
    """As it is distributed; the first is what a download is called."""
    url: str
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Describe one corpus."""

    name: str
    kind: Literal["question", "topic", "sentiment"]
    labels: Mapping[str, str]
    """Readable names of the labels, by what the files call them."""
    layout: Layout
    files: tuple[File, ...]
    archive: Archive | None = None
    page: str
    terms: str
    """As the source states them."""
    sizes: tuple[int, int]
    """Texts in the published training and test files."""
    published: Published
    words: Lengths | None = None
    """Of all texts, in our words, where we could count them."""
    folds: int = 0
    """Parts of a cross validation, where there is no test part."""

    @property
    def folder(self) -> str:
        """Name the folder inside the data folder."""
        return self.name.partition("/")[0]
