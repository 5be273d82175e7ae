"""What a corpus really holds: counts, lengths, checksums, and texts that stand there twice."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from fathomer.data.corpora import FOLD_SEED, partial_notes, read_parts
from fathomer.data.corpus import Corpus, Split
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples, stratified_folds
from fathomer.data.places import archive_of, partial_of, path_of
from fathomer.files import sha256_of
from fathomer.text.tokenizer import Tokenizer
from fathomer.text.vectors import read_vectors

CHUNK = 1000
NO_LIMIT = 1 << 60


class Words(NamedTuple):
    """Hold what the words of all texts tell."""

    average: float
    longest: int
    counts: Counter[str]
    """How often each word occurs; empty if nobody asked."""


def check_corpus(corpus: Corpus, data_dir: Path, *, vectors: Path | None = None) -> dict[str, Any]:
    """Look at every text of a corpus."""
    folder = data_dir / corpus.folder
    parts = read_parts(corpus, data_dir)
    files = check_files(corpus, folder)
    report = check_parts(corpus.name, parts, folds=corpus.folds, vectors=vectors)
    known = [file["checksum_ok"] for file in files if file["checksum_ok"] is not None]
    report |= {"checksum_ok": all(known) if known else None, "files": files}
    average, longest = corpus.published.lengths
    report["published"] = {
        "train": corpus.published.train,
        "test": corpus.published.test,
        "average_words": average,
        "longest_words": longest,
    }
    report["warnings"] = [
        *partial_notes(corpus, folder, parts),
        *_warnings(corpus, parts, files, report),
    ]
    return report


def check_demo(*, vectors: Path | None = None) -> dict[str, Any]:
    """Look at every text of the demo corpus, which has no files."""
    train, test = demo_corpus()
    report = check_parts("demo", {"train": train, "test": test}, folds=0, vectors=vectors)
    return report | {"checksum_ok": None, "files": [], "published": None, "warnings": []}


def check_parts(
    name: str, parts: dict[Split, Examples], *, folds: int, vectors: Path | None
) -> dict[str, Any]:
    """Count texts, labels, words and duplicates."""
    train, test = parts["train"], parts["test"]
    hashes = [[hash(example.text) for example in part] for part in (train, test)]
    counts = train.label_counts, test.label_counts
    words = count_words(_texts(parts), with_counts=vectors is not None)
    empty = sum(not text.strip() for text in _texts(parts))
    undecodable = sum("\N{REPLACEMENT CHARACTER}" in text for text in _texts(parts))
    return {
        "name": name,
        "train": len(train),
        "test": len(test),
        "folds": folds,
        "labels": {
            label: {"train": counts[0].get(label, 0), "test": counts[1].get(label, 0)}
            for label in sorted({*counts[0], *counts[1]})
        },
        "duplicates": {"train": _repeated(hashes[0]), "test": _repeated(hashes[1])},
        **_across(hashes, _folds(train, folds)),
        "empty": empty,
        "undecodable": undecodable,
        "average_words": round(words.average, 1),
        "longest_words": words.longest,
        "vectors": check_vectors(words.counts, vectors) if vectors else None,
    }


def _texts(parts: dict[Split, Examples]) -> Iterator[str]:
    return (example.text for part in parts.values() for example in part)


def _repeated(hashes: Sequence[int]) -> int:
    """Count the texts that have stood there before."""
    return len(hashes) - len(set(hashes))


def _folds(train: Examples, folds: int) -> list[list[int]]:
    return stratified_folds(train, folds=folds, seed=FOLD_SEED) if folds else []


def _across(hashes: Sequence[Sequence[int]], folds: Sequence[Sequence[int]]) -> dict[str, int]:
    """Count the distinct texts in both training and test part, and the test texts they make up.

    In a cross validation these are the texts that stand in several folds.
    """
    train, test = hashes
    if not folds:
        both = set(train) & set(test)
        rows = sum(text in both for text in test)
    else:
        parts = [[train[index] for index in fold] for fold in folds]
        seen = Counter(text for part in parts for text in set(part))
        both = {text for text, count in seen.items() if count > 1}
        rows = sum(text in both for text in train)
    return {"duplicates_across_splits": len(both), "test_texts_seen_in_training": rows}


def count_words(texts: Iterator[str], *, with_counts: bool = False) -> Words:
    """Count the words of all texts."""
    number = total = longest = 0
    counts: Counter[str] = Counter()
    for words in split_words(texts):
        number += 1
        total += len(words)
        longest = max(longest, len(words))
        if with_counts:
            counts.update(words)
    return Words(total / max(1, number), longest, counts)


def split_words(texts: Iterator[str]) -> Iterator[list[str]]:
    """Split texts into words; only some of them are held at a time."""
    tokenizer = Tokenizer.from_words()
    while chunk := list(islice(texts, CHUNK)):
        for words in tokenizer.encode(chunk, max_words=NO_LIMIT):
            yield words.unknown  # a tokenizer without vocabulary knows no word


def check_vectors(counts: Counter[str], vectors: Path) -> dict[str, Any]:
    """Measure which part of the words has no vector, neither as written nor in lower case."""
    needed = {form for word in counts for form in (word, word.lower())}
    found = set(read_vectors(vectors, needed=needed).words)
    missing = [word for word in counts if word not in found and word.lower() not in found]
    return {
        "file": vectors.name,
        "unknown_types": len(missing) / max(1, len(counts)),
        "unknown_words": sum(counts[word] for word in missing) / max(1, counts.total()),
    }


def check_files(corpus: Corpus, folder: Path) -> list[dict[str, Any]]:
    """Compare the checksums of the files that are there."""
    archive = archive_of(corpus, folder)
    found: dict[Path, tuple[str, str | None]] = {}
    for file in corpus.files:
        path = path_of(file, folder)
        if path is not None and path.is_file():
            found[path] = file.encoding, file.sha256 if path.name == file.name else None
        elif archive is not None and corpus.archive is not None:
            found[archive] = file.encoding, corpus.archive.sha256
        elif partial := partial_of(file, folder):
            found[partial] = file.encoding, None
    return [_file(path, encoding, expected) for path, (encoding, expected) in found.items()]


def _file(path: Path, encoding: str, expected: str | None) -> dict[str, Any]:
    checksum = sha256_of(path)
    matches = checksum == expected if expected else None
    return {"name": path.name, "encoding": encoding, "sha256": checksum, "checksum_ok": matches}


def _warnings(
    corpus: Corpus,
    parts: dict[Split, Examples],
    files: Sequence[dict[str, Any]],
    report: dict[str, Any],
) -> Iterator[str]:
    """Name every figure that is not the published one, together with that."""
    paper = corpus.published.train, corpus.published.test or 0
    sizes = zip(("train", "test"), ("training", "test"), corpus.sizes, paper, strict=True)
    for split, word, real, said in sizes:
        found = report[split]
        if found != real != said:
            yield f"{found:,} {word} texts where the published files hold {real:,}"
        if found != said:
            yield f"{found:,} {word} texts where the paper says {said:,}"
    for file in files:
        if file["checksum_ok"] is False:
            yield f"{file['name']} is not the published file (its sha256 is {file['sha256']})"
    missing = sorted(set(corpus.labels.values()) - set(parts["train"].label_counts))
    if missing:
        yield f"no training text has the label {', '.join(missing)}"
    if report["duplicates_across_splits"]:
        yield (
            f"{report['duplicates_across_splits']:,} texts stand in both training and test part: "
            f"{report['test_texts_seen_in_training']:,} test texts were seen in training"
        )
    if report["undecodable"]:
        yield f"in {report['undecodable']:,} of the texts, bytes were lost that nobody could decode"
