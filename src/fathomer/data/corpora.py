"""Where training and test texts come from: a corpus by name, or a user's own file."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fathomer.data import amazon16, catalogue
from fathomer.data.corpus import Corpus, Split
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Example, Examples, StoredExamples, stratified_folds
from fathomer.data.places import data_folder, is_partial, read_corpus
from fathomer.data.readers import read_examples
from fathomer.errors import ConfigError, DataError, MissingFileError, did_you_mean
from fathomer.files import sha256_of

CORPORA: Mapping[str, Corpus] = {
    corpus.name: corpus
    for corpus in (
        catalogue.TREC,
        catalogue.AG_NEWS,
        catalogue.DBPEDIA,
        catalogue.SUBJ,
        catalogue.MR,
        catalogue.IMDB,
        catalogue.YELP_POLARITY,
        catalogue.YELP_FULL,
        *amazon16.DOMAINS,
    )
}
"""The 24 corpora of the paper; beside them there is `demo`, which is written, not read."""

FOLD_SEED = 0
"""Not the seed of the training: the folds of a cross validation are the same for every model."""

_BOTH: tuple[Split, ...] = ("train", "test")
_TRAIN: tuple[Split, ...] = ("train",)


@dataclass(frozen=True)
class Fold:
    """Name one part of a cross validation."""

    number: int
    of: int


@dataclass(frozen=True)
class Source:
    """Hold the examples behind one name or file."""

    name: str
    train: Examples
    test: Examples | None
    """The corpus's own test part, or the fold's; a user's file has none."""
    checksum: str | None = None
    """Of a user's file."""
    fold: Fold | None = None
    notes: tuple[str, ...] = ()
    """What must be said wherever a figure on these texts is."""

    @property
    def to_score_on(self) -> Examples:
        """Choose the test part of a corpus, or all of a file."""
        return self.train if self.test is None else self.test

    def left_out(self) -> Iterator[str]:
        """Say how many rows lack a text or a label, if some do."""
        if self.to_score_on.skipped:
            yield f"{self.name}: {self.to_score_on.account()}"


def describe(source: Source) -> dict[str, Any]:
    """Name what a result must say about its data."""
    described: dict[str, Any] = {"data_name": source.name}
    if source.checksum:
        described["data_checksum"] = source.checksum
    if source.fold:
        described |= {"fold": source.fold.number, "folds": source.fold.of}
    if source.to_score_on.skipped:
        described["skipped"] = dict(source.to_score_on.skipped)
    return described | ({"notes": list(source.notes)} if source.notes else {})


def fold_left_out(
    trained: Mapping[str, Any], data: str, fold: int | None, folds: int | None
) -> tuple[int | None, int | None]:
    """Choose, unless the user did, the very fold that a training left out, as it is described."""
    if trained.get("data_name") != data:
        return fold, folds
    return (
        trained.get("fold") if fold is None else fold,
        trained.get("folds") if folds is None else folds,
    )


def find_corpus(name: str) -> Corpus:
    """Look a corpus up by its name."""
    if name not in CORPORA:
        raise MissingFileError(f"{name}: no such corpus; {did_you_mean(name, CORPORA)}")
    return CORPORA[name]


def open_source(
    data: str,
    *,
    text_column: str = "text",
    label_column: str = "label",
    encoding: str = "utf-8",
    data_dir: Path | None = None,
    fold: int | None = None,
    folds: int | None = None,
    only: Split | None = None,
    multi_label: bool = False,
) -> Source:
    """Open a corpus by its name, or read a file.

    ``fold`` chooses the test part of a cross validation, from 1 to ``folds``. A corpus that has
    training and test files of its own may be read ``only`` in part.
    """
    if multi_label and data in (*CORPORA, "demo"):
        raise ConfigError(f"{data} has one label per text; leave --multi-label out")
    if data in CORPORA:
        source = _read(CORPORA[data], data_folder(data_dir), (only,) if only else _BOTH)
        return _fold(source, fold, CORPORA[data].folds if folds is None else folds)
    if data == "demo":
        return _fold(Source("demo", *demo_corpus()), fold, folds or 0)
    path = Path(data)
    if not path.exists() and not path.suffix:
        files = [str(file) for file in path.parent.glob(f"{path.name}.*")]
        known = did_you_mean(data, files or [*CORPORA, "demo"])
        raise MissingFileError(f"{data}: no such file or corpus; {known}")
    examples = read_examples(
        path,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        multi_label=multi_label,
    )
    return _fold(Source(data, examples, None, checksum=sha256_of(path)), fold, folds or 0)


def training_texts(source: Source, *, data_dir: Path | None = None) -> Iterator[str] | None:
    """Go through the training texts that belong to a test part; nothing if either is missing."""
    if source.test is None:
        return None
    train = source.train
    if not train:  # only the test part was read
        try:
            train = read_parts(CORPORA[source.name], data_folder(data_dir), _TRAIN)["train"]
        except MissingFileError:
            return None
    return (example.text for example in train)


def _read(corpus: Corpus, data_dir: Path, splits: Collection[Split]) -> Source:
    wanted = _BOTH if corpus.folds else splits
    parts = read_parts(corpus, data_dir, wanted)
    for split in {file.split for file in corpus.files if file.split in wanted}:
        if not parts[split]:
            raise DataError(
                f"{data_dir / corpus.folder}: the {split} part of {corpus.name} is empty"
            )
    test = None if corpus.folds else parts["test"]
    source = Source(corpus.name, parts["train"], test)
    return replace(source, notes=partial_notes(corpus, data_dir / corpus.folder, parts))


def read_parts(
    corpus: Corpus, data_dir: Path, splits: Collection[Split] = _BOTH
) -> dict[Split, Examples]:
    """Read a corpus once, and tell its training and test part apart."""
    of: list[bool] = []

    def examples() -> Iterator[Example]:
        for row in read_corpus(corpus, data_dir, splits):
            of.append(row.split == "test")
            yield Example(row.text, row.label)

    both = Examples(StoredExamples.collect(examples()))
    return {
        "train": both.take([index for index, is_test in enumerate(of) if not is_test]),
        "test": both.take([index for index, is_test in enumerate(of) if is_test]),
    }


def partial_notes(corpus: Corpus, folder: Path, parts: Mapping[Split, Examples]) -> tuple[str, ...]:
    """Say which files are there only in part."""
    sizes = dict(zip(_BOTH, corpus.sizes, strict=True))
    named = {"train": "training", "test": "test"}
    return tuple(
        f"partial {named[file.split]} file: {len(parts[file.split]):,} of {sizes[file.split]:,}"
        for file in corpus.files
        if parts[file.split] and is_partial(corpus, file, folder)
    )


def _fold(source: Source, fold: int | None, folds: int) -> Source:
    """Split off one fold as the test part, if the source has no test part of its own."""
    if source.test is not None or not folds:
        if fold is None and not folds:
            return source
        raise ConfigError(
            f"{source.name} has a test part of its own; leave --fold and --folds out"
            if source.test is not None
            else f"{source.name} has no folds; say how many with --folds"
        )
    number = 1 if fold is None else fold
    if not 2 <= folds <= len(source.train):
        raise ConfigError(
            f"folds must be 2 to {len(source.train):,} for {source.name}, not {folds}"
        )
    if not 1 <= number <= folds:
        raise ConfigError(f"fold must be 1 to {folds} for {source.name}, not {number}")
    parts = stratified_folds(source.train, folds=folds, seed=FOLD_SEED)
    rest = sorted(index for part in parts[: number - 1] + parts[number:] for index in part)
    train, test = source.train.take(rest), source.train.take(parts[number - 1])
    chosen = f"{source.name}: fold {number} of {folds} is the test part"
    notes = (*source.notes, chosen if fold is not None else f"{chosen}; --fold chooses another")
    return replace(source, train=train, test=test, fold=Fold(number, folds), notes=notes)
