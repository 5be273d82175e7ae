"""The problems that ``fathomer check`` finds in labelled texts: functions from surveys to findings.

An error means that training would fail or be meaningless, a warning that something should be looked
at, and a note is for information.
"""

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fathomer.config import TextConfig
from fathomer.data.labelled import MOST_UNKNOWN
from fathomer.data.reading import MISSING_LABELS
from fathomer.data.survey import Survey, SurveyedText

Level = Literal["error", "warning", "note"]

SHOWN = 5
"""Lines and labels that a finding names."""
FEW_EXAMPLES = 10
FEW_TEXTS = 100
IMBALANCE = 10
"""Largest ratio between the counts of two labels that is not worth a warning."""

_MISSING = {*MISSING_LABELS, "n/a", "na", "none", "?"}


@dataclass(frozen=True)
class Finding:
    """A problem, with where it was found."""

    level: Level
    problem: str
    """A fixed name for use in programs."""
    message: str
    count: int = 1
    """Number of rows, texts or labels concerned."""
    lines: tuple[int, ...] = ()
    """The first of them, at most :data:`SHOWN`."""
    unit: str = "line"
    """What ``lines`` counts: lines of a file, or texts of a corpus."""


def find_problems(train: Survey, others: Sequence[Survey], *, config: TextConfig) -> list[Finding]:
    """Check the training data, and test or held-out data beside it; the worst problems come first."""
    found = _located(train, [*_find_in_reading(train), *_find_skipped(train)])
    if train.examples:
        useless = list(_find_useless_labels(train))
        found += _located(train, useless or _find_in_labels(train))
        found += _located(train, _find_in_texts(train, config))
    elif not train.problem:
        message = "no row has both a text and a label"
        found += _located(train, [Finding("error", "no_texts", message)])
    for other in others:
        found += _located(other, [*_find_in_reading(other), *_find_skipped(other)])
        found += _located(other, _find_between(train, other))
    levels = ("error", "warning", "note")
    return sorted(found, key=lambda finding: levels.index(finding.level))


def _located(survey: Survey, findings: Iterable[Finding]) -> list[Finding]:
    """Start each message with the name of the data, unless it already does."""
    located = []
    for finding in findings:
        message = finding.message
        if not message.startswith(survey.name):
            message = f"{survey.name}: {message}"
        located.append(replace(finding, message=message, unit=survey.unit))
    return located


def _find_in_reading(survey: Survey) -> Iterator[Finding]:
    """Find errors of the file, and options that are needed to read it."""
    asked, used = survey.asked, survey.used
    if used.encoding != asked.encoding:
        message = f"not {asked.encoding.upper()}, but valid {used.encoding}"
        advice = f"pass --encoding {used.encoding} and check that accents are right"
        yield Finding("warning", "encoding", f"{message}; {advice}")
    if survey.problem:
        yield Finding("error", "unreadable", survey.problem)
        return
    if survey.separator:
        yield Finding("note", "separator", survey.separator)
    columns = (used.text_column, used.label_column)
    missing = [repr(c) for c in (asked.text_column, asked.label_column) if c not in columns]
    shown = ", ".join(repr(column[:40]) for column in survey.columns[:20])
    if missing and used.label_column in survey.label_counts:  # the "header" is an example
        message = f"no header, found {shown}; add one as the first line, such as text,label"
        yield Finding("error", "no_header", message)
    elif missing:
        message = f"no column {' or '.join(missing)} in {shown}"
        guess = f"the texts seem to be in {columns[0]!r}, the labels in {columns[1]!r}"
        yield Finding("warning", "columns", f"{message}; {guess}")


def _find_skipped(survey: Survey) -> Iterator[Finding]:
    for reason, lines in survey.skipped.items():
        problem, message = reason.replace(" ", "_"), f"{_rows(len(lines))} with {reason}, skipped"
        yield Finding("warning", problem, message, len(lines), tuple(lines[:SHOWN]))


def _find_useless_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that nothing can be learned from."""
    texts, labels = len(survey.examples), len(survey.label_counts)
    if not labels:
        yield Finding("error", "no_labels", "no text has a label")
    elif labels == 1 and not survey.used.multi_label:
        [label] = survey.label_counts
        message = f"only one label ({label!r}); a classifier needs at least two"
        yield Finding("error", "one_label", message)
    elif _looks_swapped(survey):
        hint = (
            f"pass --text-column {survey.used.label_column} "
            f"--label-column {survey.used.text_column}"
        )
        message = f"{labels:,} labels, longer than the texts: texts and labels seem swapped; {hint}"
        yield Finding("error", "swapped", message, labels)
    elif labels == texts and max(survey.label_counts.values()) == 1:
        message = f"each of the {texts:,} texts has a different label"
        yield Finding("error", "unique_labels", message, labels)


def _looks_swapped(survey: Survey) -> bool:
    labels = survey.label_counts
    label_words = sum(len(label.split()) * count for label, count in labels.items())
    texts = {example.key for example in survey.examples}
    return len(labels) > len(texts) and label_words > survey.words


def _find_in_labels(survey: Survey) -> Iterator[Finding]:
    """Find too many labels, rare labels, imbalance and labels that look wrong."""
    counts = survey.label_counts
    texts, labels = len(survey.examples), len(counts)
    if labels > texts / 2:
        message = f"{labels:,} labels for {texts:,} texts; is this the label column?"
        yield Finding("warning", "many_labels", message, labels)
    if texts < FEW_TEXTS:
        yield Finding("warning", "few_texts", f"only {texts:,} texts to learn from", texts)
    if few := [label for label in counts if counts[label] < FEW_EXAMPLES]:
        verb = "has" if len(few) == 1 else "have"
        message = f"{len(few):,} of {labels:,} labels {verb} fewer than {FEW_EXAMPLES} examples"
        first = {label: e.line for e in reversed(survey.examples) for label in e.labels}
        lines = tuple(first[label] for label in few[:SHOWN])
        yield Finding(
            "warning", "rare_labels", f"{message}: {_listed(few, counts)}", len(few), lines
        )
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    if counts[most] > IMBALANCE * counts[least]:
        message = f"{most!r} is {counts[most] / counts[least]:,.0f} times as frequent as {least!r}"
        if not survey.used.multi_label:
            message += f": always predicting it has an accuracy of {counts[most] / texts:.1%}"
        yield Finding("warning", "imbalance", f"{message}; watch the macro F1")
    yield from _find_similar_labels(survey)
    yield from _find_missing_labels(survey)
    yield from _find_joined_labels(survey)


def _find_similar_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that are probably spellings of the same one."""
    similar: defaultdict[str, list[str]] = defaultdict(list)
    for label in survey.label_counts:
        similar[_normalise(label)].append(label)
    for same in similar.values():
        if len(same) > 1:
            message = f"labels that look the same: {_listed(same, survey.label_counts)}"
            yield _finding("warning", "similar_labels", message, _with_label(survey, same[1:]))


def _find_missing_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that probably stand for a missing value."""
    missing = [label for label in survey.label_counts if label.casefold() in _MISSING]
    if rows := _with_label(survey, missing):
        label = next(label for label in rows[0].labels if label in missing)
        message = f"{_rows(len(rows))} with a label like {label!r}, which may mean no label"
        yield _finding("warning", "missing_labels", message, rows)


def _find_joined_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that are probably lists of others, such as ``fast, kind`` beside ``kind``."""
    for separator in "|,;":
        parts = {
            label: {part.strip() for part in label.split(separator)}
            for label in survey.label_counts
        }
        uses = Counter(part for found in parts.values() for part in found)
        joined = [label for label, found in parts.items() if len(found) > 1]
        lists = [label for label in joined if all(uses[part] > 1 for part in parts[label])]
        if lists and 2 * len(lists) >= len(joined):
            message = f"labels that look like several: {_listed(lists, survey.label_counts)}"
            write = "" if separator == "|" else f"write {'|'.join(sorted(parts[lists[0]]))} and "
            message += f"; {write}pass --multi-label"
            yield _finding("warning", "joined_labels", message, _with_label(survey, lists))


def _normalise(label: str) -> str:
    """Remove differences of case, spaces, hyphens and number format from a label.

    >>> _normalise("Very-Good"), _normalise("very  good"), _normalise("1.0"), _normalise("-1")
    ('very good', 'very good', '1', '-1')
    """
    plain = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    plain = re.sub(r"(?<=\w)[\s_-]+(?=\w)", " ", plain)
    return re.sub(r"(?<=\d)\.0+$", "", plain)


def _find_in_texts(survey: Survey, config: TextConfig) -> Iterator[Finding]:
    examples, max_words = survey.examples, config.max_words
    if unlabelled := [example for example in examples if not example.labels]:
        message = f"{_texts(len(unlabelled))} without a label"
        yield _finding("note", "unlabelled", message, unlabelled)
    yield from _find_repeated(examples)
    if numbers := [example for example in examples if example.is_number]:
        level: Level = "warning" if len(numbers) > len(examples) / 2 else "note"
        message = f"{_texts(len(numbers))} with only a number; is this the text column?"
        yield _finding(level, "number_texts", message, numbers)
    if mangled := [example for example in examples if example.is_mangled]:
        message = f"{_texts(len(mangled))} with lost or garbled characters (Ã©, â€, �)"
        yield _finding("warning", "mangled_texts", message, mangled)
    if unspaced := [example for example in examples if example.is_unspaced]:
        message = f"{_texts(len(unspaced))} without spaces between the words"
        advice = "everything between two spaces is read as one word; split the words first"
        yield _finding("warning", "unspaced_texts", f"{message}: {advice}", unspaced)
    if long := [example for example in examples if example.words > max_words]:
        message = f"{_texts(len(long))} with more than {max_words:,} words, truncated"
        longest = max(example.words for example in long)
        message += f"; the longest has {longest:,} (text.max_words)"
        yield _finding("note", "long_texts", message, long)


def _find_repeated(examples: Sequence[SurveyedText]) -> Iterator[Finding]:
    """Find texts with different labels, and repeated rows."""
    labels_of: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    repeated = []
    for example in examples:
        if example.labels in labels_of[example.key]:
            repeated.append(example)
        labels_of[example.key].add(example.labels)
    if conflicts := [example for example in examples if len(labels_of[example.key]) > 1]:
        message = f"{_rows(len(conflicts))} whose text also occurs with another label"
        yield _finding("warning", "conflicts", message, conflicts)
    if repeated:
        message = f"{_rows(len(repeated))} with the text and label of an earlier row"
        yield _finding("note", "duplicates", message, repeated)


def _find_between(train: Survey, other: Survey) -> Iterator[Finding]:
    """Find shared texts, unknown labels, and files that need different options."""
    trained = {example.key for example in train.examples}
    if leaked := [example for example in other.examples if example.key in trained]:
        share = len(leaked) / len(other.examples)
        message = f"{_texts(len(leaked))} ({share:.1%}) also in {train.name}"
        yield _finding("warning", "leakage", message, leaked)
    new = [label for label in other.label_counts if label not in train.label_counts]
    if (unknown := _with_label(other, new)) and train.examples:
        message = f"labels that do not occur in {train.name}: {_listed(new, other.label_counts)}"
        if len(unknown) > MOST_UNKNOWN * len(other.examples):
            yield _finding("error", "unknown_labels", message, unknown)
        else:
            message = f"{message}; {_rows(len(unknown))} left out"
            yield _finding("warning", "unknown_labels", message, unknown)
    if train.unit == other.unit == "line" and _read_differently(train, other):
        message = f"encoding or columns differ from those of {train.name}; use the same in both"
        yield Finding("error", "unlike_files", message)


def _read_differently(train: Survey, other: Survey) -> bool:
    if train.problem or other.problem:
        return False
    if train.columns and other.columns:
        return train.used != other.used
    return train.used.encoding != other.used.encoding


def _with_label(survey: Survey, labels: Iterable[str]) -> list[SurveyedText]:
    wanted = set(labels)
    return [example for example in survey.examples if not wanted.isdisjoint(example.labels)]


def _finding(level: Level, problem: str, message: str, examples: Sequence[SurveyedText]) -> Finding:
    lines = tuple(example.line for example in examples[:SHOWN])
    return Finding(level, problem, message, len(examples), lines)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _texts(count: int) -> str:
    return f"{count:,} text{'' if count == 1 else 's'}"


def _listed(labels: Sequence[str], counts: Mapping[str, int]) -> str:
    names = [f"{label[:40]!r} ({counts[label]:,})" for label in labels[:SHOWN]]
    return ", ".join(names) + (", …" if len(labels) > SHOWN else "")
