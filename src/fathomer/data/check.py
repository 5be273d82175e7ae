"""What ``fathomer check`` and ``fathomer data check`` report about data.

The first looks for problems before training and suggests a command; the second counts what a corpus
contains and compares it with what was published.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from fathomer.data.datasets import Corpus, Split
from fathomer.data.demo import demo_corpus
from fathomer.data.examples import Examples, stratified_folds
from fathomer.data.layouts import find_archive, find_file
from fathomer.data.opening import FOLD_SEED, read_parts
from fathomer.data.survey import Survey, SurveyedText, survey_examples
from fathomer.files import sha256_of
from fathomer.text.sources import read_source
from fathomer.text.tokenizer import split_words


def summarise(survey: Survey) -> dict[str, Any]:
    """Return the counts that ``fathomer check`` shows for the training data."""
    examples = len(survey.examples)
    is_decoded = survey.unit == "line" and not survey.problem
    return {
        "data": survey.name,
        "examples": examples,
        "skipped": {reason: len(lines) for reason, lines in survey.skipped.items()},
        "columns": list(survey.columns),
        "encoding": survey.used.encoding if is_decoded else None,
        "labels": survey.label_counts,
        "average_words": round(survey.words / max(1, examples), 1),
        "longest_words": max((example.words for example in survey.examples), default=0),
    }


def suggest_command(train: Survey, files: Mapping[str, str], *, out: str = "model") -> list[str]:
    """Return a command that trains on this data; ``files`` are test and held-out files by option."""
    command = ["fathomer", "train", train.name, "--out", out]
    for option, name in files.items():
        command += [option, name]
    for item in fields(train.used):
        value = getattr(train.used, item.name)
        if value != item.default:
            option = f"--{item.name.replace('_', '-')}"
            command += [option] if value is True else [option, value]
    return command


def check_corpus(corpus: Corpus, data_dir: Path, *, vectors: Path | None = None) -> dict[str, Any]:
    """Count what a corpus contains, and compare it with the published figures."""
    parts = read_parts(corpus, data_dir)
    files = _check_files(corpus, data_dir / corpus.folder)
    report = _count(corpus.name, parts, folds=corpus.folds, vectors=vectors)
    known = [file["checksum_ok"] for file in files if file["checksum_ok"] is not None]
    report |= {"checksum_ok": all(known) if known else None, "files": files}
    report["published"] = corpus.paper.counts()
    report["warnings"] = list(_warnings(corpus, report))
    return report


def check_demo(*, vectors: Path | None = None) -> dict[str, Any]:
    """Count what the demo corpus contains; it has no files and was not published."""
    train, test = demo_corpus()
    report = _count("demo", {"train": train, "test": test}, folds=0, vectors=vectors)
    return report | {"checksum_ok": None, "files": [], "published": None, "warnings": []}


def _count(
    name: str, parts: Mapping[Split, Examples], *, folds: int, vectors: Path | None
) -> dict[str, Any]:
    """Count texts, labels, words and duplicates."""
    train, test = (survey_examples(name, parts[split]).texts for split in ("train", "test"))
    counts = {split: part.label_counts for split, part in parts.items()}
    words = [text.words for text in (*train, *test)]
    return {
        "name": name,
        "train": len(train),
        "test": len(test),
        "folds": folds,
        "labels": {
            label: {split: counts[split].get(label, 0) for split in ("train", "test")}
            for label in sorted({*counts["train"], *counts["test"]})
        },
        "duplicates": {"train": _duplicates(train), "test": _duplicates(test)},
        **_shared_texts(train, test, _folds(parts["train"], folds)),
        "empty": sum(text.skip_reason == "empty text" for text in (*train, *test)),
        "undecodable": sum(text.is_undecodable for text in (*train, *test)),
        "average_words": round(sum(words) / max(1, len(words)), 1),
        "longest_words": max(words, default=0),
        "vectors": _check_vectors(parts, vectors) if vectors else None,
    }


def _duplicates(texts: Sequence[SurveyedText]) -> int:
    return len(texts) - len({text.key for text in texts})


def _folds(train: Examples, folds: int) -> list[list[int]]:
    return stratified_folds(train, folds=folds, seed=FOLD_SEED) if folds else []


def _shared_texts(
    train: Sequence[SurveyedText], test: Sequence[SurveyedText], folds: Sequence[Sequence[int]]
) -> dict[str, int]:
    """Count the distinct texts in both training and test set, and the test texts they account for.

    In a cross-validation these are the texts that occur in several folds.
    """
    if folds:
        in_folds = Counter(key for fold in folds for key in {train[index].key for index in fold})
        shared = {key for key, count in in_folds.items() if count > 1}
        tested = train
    else:
        shared = {text.key for text in train} & {text.key for text in test}
        tested = test
    return {
        "duplicates_across_splits": len(shared),
        "test_texts_seen_in_training": sum(text.key in shared for text in tested),
    }


def _check_vectors(parts: Mapping[Split, Examples], vectors: Path) -> dict[str, Any]:
    """Return the share of words without a vector, neither as written nor in lower case."""
    texts = (example.text for part in parts.values() for example in part)
    counts = Counter(word for words in split_words(texts) for word in words)
    needed = {form for word in counts for form in (word, word.lower())}
    found = set(read_source(vectors, needed=needed).words)
    missing = [word for word in counts if word not in found and word.lower() not in found]
    return {
        "file": vectors.name,
        "unknown_types": len(missing) / max(1, len(counts)),
        "unknown_words": sum(counts[word] for word in missing) / max(1, counts.total()),
    }


def _check_files(corpus: Corpus, folder: Path) -> list[dict[str, Any]]:
    """Compare the checksums of the files that were read with the published ones."""
    archive = find_archive(corpus, folder)
    expected: dict[Path, str | None] = {}
    for file in corpus.files:
        path = find_file(file, folder)
        if path is not None and path.is_file():
            expected[path] = file.sha256 if path.name == file.name else None
        elif archive is not None and corpus.archive is not None:
            expected[archive] = corpus.archive.sha256
    return [_check_file(path, corpus.encoding, sha256) for path, sha256 in expected.items()]


def _check_file(path: Path, encoding: str, expected: str | None) -> dict[str, Any]:
    checksum = sha256_of(path)
    matches = checksum == expected if expected else None
    return {"name": path.name, "encoding": encoding, "sha256": checksum, "checksum_ok": matches}


def _warnings(corpus: Corpus, report: Mapping[str, Any]) -> Iterator[str]:
    """Yield every difference from the published figures, and what makes results unreliable."""
    paper = {"train": corpus.paper.train, "test": corpus.paper.test or 0}
    for split, published in corpus.sizes._asdict().items():
        found, kind = report[split], "training" if split == "train" else "test"
        if found != published != paper[split]:
            yield f"{found:,} {kind} texts, but the published files have {published:,}"
        if found != paper[split]:
            yield f"{found:,} {kind} texts, but the paper says {paper[split]:,}"
    for file in report["files"]:
        if file["checksum_ok"] is False:
            yield f"{file['name']} is not the published file (its sha256 is {file['sha256']})"
    trained = {label for label, counts in report["labels"].items() if counts["train"]}
    if missing := sorted(set(corpus.labels.values()) - trained):
        yield f"no training text has the label {', '.join(missing)}"
    if report["duplicates_across_splits"]:
        yield (
            f"{report['duplicates_across_splits']:,} texts are in both training and test set: "
            f"{report['test_texts_seen_in_training']:,} test texts were seen in training"
        )
    if report["undecodable"]:
        yield f"{report['undecodable']:,} texts contain bytes that could not be decoded"
