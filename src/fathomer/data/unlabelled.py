"""Texts without labels: from files, or from the unlabelled part of a corpus.

Texts that also occur in a test or held-out set are left out, so that nothing is learned from them.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from fathomer.data.datasets import Corpus, corpora_named, data_folder
from fathomer.data.layouts import find_file, read_corpus
from fathomer.data.opening import open_dataset
from fathomer.data.reading import ReadOptions, read_rows
from fathomer.errors import ConfigError, DataError, MissingFileError, did_you_mean
from fathomer.open_files import format_suffix, guess_encoding, open_lines
from fathomer.text.compact import SUFFIX
from fathomer.text.sources import words_of
from fathomer.text.tokenizer import split_words
from fathomer.text.vectors import looks_like_vectors

OWN = "corpus"
"""Stands for the unlabelled part of the corpus that is trained on."""


@dataclass
class KeptTexts:
    """A stream of texts without those that occur in a test or held-out set; both are counted."""

    sources: Iterable[Iterable[str]]
    excluded: set[int] = field(default_factory=set)
    kept: int = 0
    left_out: int = 0
    notes: list[str] = field(default_factory=list)
    """Remarks about the corpora, such as which fold is the test set."""

    def exclude(self, texts: Iterable[str]) -> None:
        """Leave these texts out from now on."""
        self.excluded.update(map(_key, texts))

    def __iter__(self) -> Iterator[str]:
        self.kept = self.left_out = 0
        for source in self.sources:
            for text in source:
                if _key(text) in self.excluded:
                    self.left_out += 1
                else:
                    self.kept += 1
                    yield text

    def summary(self) -> str:
        """Return one line about how many texts were used."""
        line = f"{self.kept:,} texts"
        if self.left_out:
            line += f"; {self.left_out:,} left out because they are in a test or held-out set"
        return line


def _key(text: str) -> int:
    """Return a number that is equal for texts that differ only in case and white space."""
    return hash(" ".join(text.lower().split()))


@dataclass(frozen=True)
class FileTexts:
    """The texts of a file, one per line or row, to be iterated over as often as needed."""

    path: Path
    options: ReadOptions

    def __iter__(self) -> Iterator[str]:
        found = False
        for row in read_rows(self.path, replace(self.options, label_column=None)):
            if row.text.strip():
                found = True
                yield row.text
        if not found:
            raise DataError(f"{self.path}: holds no texts")


@dataclass(frozen=True)
class UnlabelledPart:
    """The unlabelled texts of a corpus, to be iterated over as often as needed."""

    corpus: Corpus
    data_dir: Path

    def __iter__(self) -> Iterator[str]:
        file = self.corpus.unlabelled_file
        if file is None:
            raise DataError(f"{self.corpus.name} has no unlabelled part")
        path = find_file(file, self.data_dir / self.corpus.folder)
        view = replace(
            self.corpus,
            files=(file,),
            layout="whole files" if file.name.endswith("/") else "lines",
            encoding=guess_encoding(path) if path and path.is_file() else self.corpus.encoding,
        )
        for _, example in read_corpus(view, self.data_dir):
            yield example.text


def gather_texts(
    names: Sequence[str],
    options: ReadOptions,
    *,
    data_dir: Path | None = None,
    fold: int | None = None,
) -> KeptTexts:
    """Return the texts of files, and of corpora with their unlabelled part, without test texts."""
    folder, sources = data_folder(data_dir), list[Iterable[str]]()
    gathered = KeptTexts(sources)
    for name in names:
        corpora = corpora_named(name)
        for corpus in corpora:
            dataset = open_dataset(
                corpus.name, data_dir=data_dir, fold=fold if corpus.folds else None
            )
            sources.append(dataset.train.texts)
            gathered.notes += dataset.notes
            if dataset.test:
                gathered.exclude(dataset.test.texts)
            if corpus.unlabelled_file and _has_unlabelled(corpus, folder):
                sources.append(UnlabelledPart(corpus, folder))
        if name == "demo":
            sources.append(open_dataset(name).train.texts)
        elif not corpora:
            sources.append(_file(name, options))
    return gathered


def unlabelled_texts(
    names: Sequence[str], data: str, options: ReadOptions, *, data_dir: Path | None = None
) -> KeptTexts:
    """Return the texts named by ``--unlabelled``; ``corpus`` stands for the part of ``data``."""
    sources: list[Iterable[str]] = []
    for name in names:
        if name != OWN:
            sources.append(_file(name, options))
            continue
        found = corpora_named(data)
        if not found or found[0].name != data:
            raise ConfigError(f"--unlabelled {OWN}: {data} is not a corpus; name a file")
        if found[0].unlabelled_file is None:
            raise ConfigError(f"--unlabelled {OWN}: {data} has no unlabelled part; name a file")
        sources.append(UnlabelledPart(found[0], data_folder(data_dir)))
    return KeptTexts(sources)


def _file(name: str, options: ReadOptions) -> FileTexts:
    path = Path(name)
    if not path.exists():
        files = [str(file) for file in path.parent.glob(f"{path.name}*")]
        hint = f"; {did_you_mean(name, files)}" if files else ""
        raise MissingFileError(f"{name}: no such file or corpus{hint}")
    return FileTexts(path, options)


def _has_unlabelled(corpus: Corpus, data_dir: Path) -> bool:
    """Whether the unlabelled texts of a corpus are present; an archive may not include them."""
    file = corpus.unlabelled_file
    return file is not None and find_file(file, data_dir / corpus.folder) is not None


def frequent_words(texts: Iterable[str]) -> list[str]:
    """Return the words of texts in lower case, the most frequent first."""
    counts = Counter(word.lower() for words in split_words(texts) for word in words)
    return sorted(counts, key=lambda word: (-counts[word], word))


def read_word_list(path: Path) -> list[str]:
    """Return the words of a file: one per line, or those of a file of word vectors."""
    if format_suffix(path) in (SUFFIX, ".vec", ".bin", ".zip") or looks_like_vectors(path):
        return words_of(path, count=1 << 40)
    with open_lines(path, "utf-8", plain=True) as lines:
        words = list(dict.fromkeys(filter(None, (line.strip() for line in lines))))
    if not words:
        raise DataError(f"{path}: holds no words")
    return words
