"""The corpora and word vectors that are known by name, as described in ``datasets.toml``."""

import os
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from fathomer.errors import MissingFileError, did_you_mean
from fathomer.text.subwords import WORDLLAMA, find_wordllama

Split = Literal["train", "test"]

VECTORS_FOLDER = "vectors"
VECTOR_SUFFIXES = (".safetensors", ".txt", ".txt.gz", ".zip", ".vec", ".vec.gz", ".bin", ".bin.gz")


class SplitSizes(NamedTuple):
    """The number of training and test texts."""

    train: int
    test: int = 0


class TextLengths(NamedTuple):
    """The average and the largest number of words in a text."""

    average: float
    longest: int


@dataclass(frozen=True, kw_only=True)
class PaperFigures:
    """A row of the paper's Table 1."""

    title: str
    train: int
    test: int | None = None
    """``None`` where the paper used cross-validation."""
    average_words: int
    longest_words: int

    def counts(self) -> dict[str, int | None]:
        """Return the numbers by name."""
        return {name: value for name, value in asdict(self).items() if name != "title"}


@dataclass(frozen=True, kw_only=True)
class CorpusFile:
    """A file of texts."""

    name: str
    """In the corpus's folder or archive; a final slash means a folder with one text per file."""
    split: Split = "train"
    label: str = ""
    """The label of all its texts, where the format has no labels."""
    sha256: str | None = None
    url: str | None = None


@dataclass(frozen=True, kw_only=True)
class Archive:
    """A compressed file that contains all files of a corpus."""

    names: tuple[str, ...]
    """Names under which it is distributed; a download gets the first."""
    url: str
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """A corpus as it is published."""

    name: str
    kind: Literal["question", "topic", "sentiment"]
    labels: Mapping[str, str]
    """Readable names of the labels that the files use."""
    layout: str
    """Format of the files, a key of :data:`fathomer.data.layouts.LAYOUTS`."""
    columns: int = 0
    """Columns of a csv file: the label, then those that make up the text."""
    escapes: tuple[tuple[str, str], ...] = ()
    """Escape sequences of a csv file with what they stand for."""
    encoding: str = "utf-8"
    files: tuple[CorpusFile, ...]
    archive: Archive | None = None
    unlabelled: str = ""
    """Name of its unlabelled texts; ``*`` stands for the name of the training file."""
    page: str
    terms: str
    """Terms of use as stated by the source."""
    sizes: SplitSizes
    """Texts in the published files."""
    words: TextLengths | None = None
    """Lengths of all texts, where we have the whole corpus to count them."""
    paper: PaperFigures
    folds: int = 0
    """Folds of the cross-validation of a corpus without a test set."""

    @property
    def folder(self) -> str:
        """The corpus's folder inside the data folder; the domains of a family share one."""
        return self.name.partition("/")[0]

    @property
    def unlabelled_file(self) -> CorpusFile | None:
        """The file of unlabelled texts; its label is only a placeholder."""
        if not self.unlabelled:
            return None
        train = self.files[0].name.removesuffix(".train")
        return CorpusFile(name=self.unlabelled.replace("*", train), label=next(iter(self.labels)))


@dataclass(frozen=True, kw_only=True)
class PretrainedVectors:
    """Published word vectors."""

    name: str
    url: str
    sha256: str
    page: str
    terms: str

    @property
    def file(self) -> str:
        """The name of the published file."""
        return self.url.rpartition("/")[2]


def _corpora(family: str, entry: Mapping[str, Any]) -> Iterator[Corpus]:
    """Build the corpora of an entry: a single one, or one for each domain."""
    shared = {name: entry[name] for name in entry if name not in ("domains", "paper_domain")}
    shared["paper"] = {**entry["paper"], **entry.get("paper_domain", {})}
    if "domains" not in entry:
        yield _corpus(family, shared)
    for domain, own in entry.get("domains", {}).items():
        yield _corpus(f"{family}/{domain}", {**shared, **own})


def _corpus(name: str, entry: dict[str, Any]) -> Corpus:
    archive, words = entry.get("archive"), entry.get("words")
    built = {
        "escapes": tuple(map(tuple, entry.get("escapes", ()))),
        "files": tuple(CorpusFile(**file) for file in entry["files"]),
        "archive": Archive(**{**archive, "names": tuple(archive["names"])}) if archive else None,
        "sizes": SplitSizes(**entry["sizes"]),
        "words": TextLengths(**words) if words else None,
        "paper": PaperFigures(**entry["paper"]),
    }
    return Corpus(name=name, **{**entry, **built})


_TABLE = tomllib.loads(Path(__file__).with_name("datasets.toml").read_text(encoding="utf-8"))

TABLE_1: Mapping[str, PaperFigures] = {
    family: PaperFigures(**entry["paper"]) for family, entry in _TABLE["corpora"].items()
}
"""The paper's Table 1 in its order; it counts the domains of Amazon-16 as one corpus."""

CORPORA: Mapping[str, Corpus] = {
    corpus.name: corpus
    for corpus in sorted(
        (corpus for item in _TABLE["corpora"].items() for corpus in _corpora(*item)),
        key=lambda corpus: "/" in corpus.name,  # the sixteen domains of Amazon-16 come last
    )
}
"""The 24 corpora of the paper; the ``demo`` corpus is generated and has no files."""

VECTORS: Mapping[str, PretrainedVectors] = {
    name: PretrainedVectors(name=name, **entry) for name, entry in _TABLE["vectors"].items()
}


def data_folder(chosen: Path | None = None) -> Path:
    """Return the folder of corpora and vectors: ``chosen``, FATHOMER_DATA, or the user's cache."""
    if chosen is not None:
        return chosen
    if variable := os.environ.get("FATHOMER_DATA"):
        return Path(variable).expanduser()
    import pooch

    return Path(pooch.os_cache("fathomer"))


def find_corpus(name: str) -> Corpus:
    """Return the corpus of this name."""
    if name not in CORPORA:
        raise MissingFileError(f"{name}: no such corpus; {did_you_mean(name, CORPORA)}")
    return CORPORA[name]


def corpora_named(name: str) -> list[Corpus]:
    """Return a corpus, or all corpora of a family such as ``amazon16``; none if it is no name."""
    return [corpus for corpus in CORPORA.values() if name in (corpus.name, corpus.folder)]


def find_vectors(name: str, data_dir: Path | None = None) -> Path:
    """Return the source of word vectors: a path, a name in the data folder, or a package."""
    if name == WORDLLAMA:
        return find_wordllama()
    if Path(name).exists():
        return Path(name)
    folder = data_folder(data_dir) / VECTORS_FOLDER
    for suffix in ("", *VECTOR_SUFFIXES):
        if (folder / f"{name}{suffix}").exists():
            return folder / f"{name}{suffix}"
    if name in VECTORS:
        raise MissingFileError(
            f"{folder / VECTORS[name].file}: no such file; "
            f"run fathomer data get {name}, or put {VECTORS[name].file} into {folder}"
        )
    if name.lower().endswith(VECTOR_SUFFIXES):
        raise MissingFileError(f"{name}: no such file")
    known = did_you_mean(name, {WORDLLAMA, *VECTORS, *_vectors_in(folder)})
    raise MissingFileError(f"{name}: no such file or vectors; {known}")


def known_vectors(data_dir: Path) -> dict[str, bool]:
    """Return all published vectors and those in the data folder, with whether they are present."""
    present = _vectors_in(data_dir / VECTORS_FOLDER)
    return {name: name in present for name in [*VECTORS, *sorted(present - {*VECTORS})]}


def _vectors_in(folder: Path) -> set[str]:
    return {
        path.name.removesuffix(suffix)
        for path in (folder.iterdir() if folder.is_dir() else ())
        for suffix in sorted(VECTOR_SUFFIXES, key=len)
        if path.name.endswith(suffix)
    }
