"""Opening a corpus by name, or a user's file, as training and test examples."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from fathomer.data.csv_jsonl import describe_delimiter, read_delimiter
from fathomer.data.datasets import CORPORA, Corpus, Split, data_folder
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Example, Examples, StoredExamples, stratified_folds
from fathomer.data.layouts import read_corpus
from fathomer.data.reading import DEFAULT_OPTIONS, ReadOptions, read_examples
from fathomer.errors import ConfigError, DataError, MissingFileError, did_you_mean
from fathomer.files import sha256_of

FOLD_SEED = 0
"""Fixed, and not the training seed, so that all models are compared on the same folds."""

_BOTH: tuple[Split, ...] = ("train", "test")
_TRAIN: tuple[Split, ...] = ("train",)


@dataclass(frozen=True)
class Fold:
    """One fold of a cross-validation."""

    number: int
    of: int


@dataclass(frozen=True)
class Dataset:
    """The examples of a corpus or of a file."""

    name: str
    train: Examples
    test: Examples | None
    """The corpus's own test set, or the fold's; a user's file has none."""
    checksum: str | None = None
    """SHA-256 of a user's file."""
    fold: Fold | None = None
    notes: tuple[str, ...] = ()
    """Remarks to print and store with every result on these examples."""

    @property
    def evaluation_set(self) -> Examples:
        """The test set of a corpus, or all examples of a file."""
        return self.train if self.test is None else self.test

    def describe(self) -> dict[str, Any]:
        """Return what a result stores about its data."""
        described: dict[str, Any] = {"data_name": self.name}
        if self.checksum:
            described["data_checksum"] = self.checksum
        if self.fold:
            described |= {"fold": self.fold.number, "folds": self.fold.of}
        if self.evaluation_set.skipped:
            described["skipped"] = dict(self.evaluation_set.skipped)
        return described | ({"notes": list(self.notes)} if self.notes else {})


def open_dataset(
    data: str,
    options: ReadOptions = DEFAULT_OPTIONS,
    *,
    data_dir: Path | None = None,
    fold: int | None = None,
    folds: int | None = None,
    only: Split | None = None,
) -> Dataset:
    """Open a corpus by name, or read a file.

    ``fold``, from 1 to ``folds``, chooses the test set of a cross-validation. ``only`` reads one
    part of a corpus that has separate training and test files.
    """
    if options.multi_label and data in (*CORPORA, "demo"):
        raise ConfigError(f"{data} has one label per text; remove --multi-label")
    if data in CORPORA:
        corpus = CORPORA[data]
        dataset = open_corpus(corpus, data_folder(data_dir), (only,) if only else _BOTH)
        return select_fold(dataset, fold, corpus.folds if folds is None else folds)
    if data == "demo":
        return select_fold(Dataset("demo", *demo_corpus()), fold, folds or 0)
    path = Path(data)
    if not path.exists() and not path.suffix:
        files = [str(file) for file in path.parent.glob(f"{path.name}.*")]
        known = did_you_mean(data, files or [*CORPORA, "demo"])
        raise MissingFileError(f"{data}: no such file or corpus; {known}")
    examples = read_examples(path, options)
    note = describe_delimiter(path, read_delimiter(path, options.encoding))
    notes = (note,) if note else ()
    dataset = Dataset(data, examples, None, sha256_of(path), notes=notes)
    return select_fold(dataset, fold, folds or 0)


def open_corpus(corpus: Corpus, data_dir: Path, splits: Collection[Split] = _BOTH) -> Dataset:
    """Open a corpus; one for cross-validation has no test set yet."""
    wanted = _BOTH if corpus.folds else splits
    parts = read_parts(corpus, data_dir, wanted)
    for split in {file.split for file in corpus.files if file.split in wanted}:
        if not parts[split]:
            folder = data_dir / corpus.folder
            raise DataError(f"{folder}: the {split} part of {corpus.name} is empty")
    return Dataset(corpus.name, parts["train"], None if corpus.folds else parts["test"])


def read_parts(
    corpus: Corpus, data_dir: Path, splits: Collection[Split] = _BOTH
) -> dict[Split, Examples]:
    """Read a corpus in one pass into its training and test part."""
    is_test: list[bool] = []

    def examples() -> Iterator[Example]:
        for split, example in read_corpus(corpus, data_dir, splits):
            is_test.append(split == "test")
            yield example

    both = Examples(StoredExamples.collect(examples()))
    return {
        "train": both.take([index for index, test in enumerate(is_test) if not test]),
        "test": both.take([index for index, test in enumerate(is_test) if test]),
    }


def training_texts(dataset: Dataset, *, data_dir: Path | None = None) -> Iterator[str] | None:
    """Return the training texts that belong to a test set, or ``None`` if there are none."""
    if dataset.test is None:
        return None
    train = dataset.train
    if not train:  # only the test set was read
        try:
            train = read_parts(CORPORA[dataset.name], data_folder(data_dir), _TRAIN)["train"]
        except MissingFileError:
            return None
    return (example.text for example in train)


def held_out_fold(
    trained: Mapping[str, Any], data: str, fold: int | None, folds: int | None
) -> tuple[int | None, int | None]:
    """Return the fold that a model was not trained on, unless the user chose another.

    ``trained`` is what :meth:`Dataset.describe` returned for the training.
    """
    if trained.get("data_name") != data:
        return fold, folds
    used, of = (trained.get(name) for name in ("fold", "folds"))
    return (
        used if fold is None and isinstance(used, int) else fold,  # a model may say anything
        of if folds is None and isinstance(of, int) else folds,
    )


def select_fold(dataset: Dataset, fold: int | None, folds: int) -> Dataset:
    """Split off one fold as the test set of a dataset that has none."""
    name = dataset.name
    if dataset.test is not None or not folds:
        if fold is None and not folds:
            return dataset
        raise ConfigError(
            f"{name} has its own test set; remove --fold and --folds"
            if dataset.test is not None
            else f"{name} has no folds; pass their number with --folds"
        )
    number, texts = 1 if fold is None else fold, len(dataset.train)
    if not 2 <= folds <= texts:
        raise ConfigError(f"folds must be from 2 to {texts:,} for {name}, not {folds}")
    if not 1 <= number <= folds:
        raise ConfigError(f"fold must be from 1 to {folds} for {name}, not {number}")
    parts = stratified_folds(dataset.train, folds=folds, seed=FOLD_SEED)
    rest = sorted(index for part in parts[: number - 1] + parts[number:] for index in part)
    note = f"{name}: fold {number} of {folds} is the test part"
    return replace(
        dataset,
        train=dataset.train.take(rest),
        test=dataset.train.take(parts[number - 1]),
        fold=Fold(number, folds),
        notes=(*dataset.notes, note if fold is not None else f"{note}; --fold chooses another"),
    )
