"""What is wrong with a user's data, found before training: pure functions from surveys to findings.

An error means that training would be refused or meaningless; a warning, that something deserves a
look; a note is good to know.
"""

import math
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from fathomer.config import Recipe
from fathomer.data.survey import Entry, Survey

FIRST = 5
"""Lines that a finding names."""
FEW_EXAMPLES = 10
FEW_TEXTS = 100
IMBALANCE = 10
"""Times that the most frequent label may be more frequent than the rarest."""
STEPS = 1500
"""A training of fewer steps learns little; smaller batches and more epochs give more of them."""
FEWEST_WORDS = 100
"""Of a batch."""
MOST_EPOCHS = 30

_MISSING = {"nan", "null", "n/a", "na", "#n/a", "?"}
_SEPARATORS = {
    ";": ("semicolons", "save the file with commas"),
    "\t": ("tabs", "rename the file to .tsv"),
    "|": ("bars", "save the file with commas"),
    ",": ("commas", "rename the file to .csv"),
}


@dataclass(frozen=True)
class Finding:
    """Hold one thing that was found."""

    level: Literal["error", "warning", "note"]
    problem: str
    """A name for programs."""
    message: str
    count: int = 1
    """How many rows, texts or labels it concerns."""
    lines: tuple[int, ...] = ()
    """The first of them, at most :data:`FIRST`."""
    unit: str = "line"
    """What ``lines`` count: lines of a file, or texts of a corpus."""


def diagnose(train: Survey, others: Sequence[Survey], *, recipe: Recipe) -> list[Finding]:
    """Look at the training data, and at other parts beside it; the worst findings come first."""
    found = _named(train, [*_find_in_reading(train), *_find_in_rows(train)])
    if train.entries:
        useless = list(_find_useless_labels(train))
        found += _named(train, useless or _find_in_labels(train))
        found += _named(train, _find_in_texts(train, recipe))
    elif not train.problem:
        found += _named(train, [Finding("error", "no_texts", "no row has a text and a label")])
    for other in others:
        found += _named(other, [*_find_in_reading(other), *_find_in_rows(other)])
        found += _named(other, _find_between(train, other))
    levels = ("error", "warning", "note")
    return sorted(found, key=lambda finding: levels.index(finding.level))


def _named(survey: Survey, findings: Iterable[Finding]) -> list[Finding]:
    """Begin each message with the name of the data, as those of the readers do."""
    named = []
    for finding in findings:
        message = finding.message
        if not message.startswith(survey.name):
            message = f"{survey.name}: {message}"
        named.append(replace(finding, message=message, unit=survey.unit))
    return named


def _find_in_reading(survey: Survey) -> Iterator[Finding]:
    """Tell what the reader stumbled over, and what helps."""
    asked, used = survey.asked, survey.used
    if used.encoding != asked.encoding:
        message = f"not {asked.encoding.upper()}; pass --encoding {used.encoding}, which fits"
        yield Finding("warning", "encoding", f"{message}, and look whether accents come out right")
    if survey.problem:
        separated = _find_separator(survey)
        yield separated or Finding("error", "unreadable", survey.problem)
        return
    asked_columns = (asked.text_column, asked.label_column)
    columns = (used.text_column, used.label_column)
    missing = [repr(name) for name in asked_columns if name not in columns]
    shown = ", ".join(repr(column[:40]) for column in survey.columns[:20])
    if missing and used.label_column in survey.label_counts:  # an example taken for a header
        message = f"no header ({shown}); write one above the first line, such as text,label"
        yield Finding("error", "no_header", message)
    elif missing:
        message = f"no column {' or '.join(missing)} in {shown}"
        guess = f"the texts seem to be in {columns[0]!r}, the labels in {columns[1]!r}"
        yield Finding("warning", "columns", f"{message}; {guess}")


def _find_separator(survey: Survey) -> Finding | None:
    """Explain a table that seems to have but one column."""
    header = survey.columns[0] if len(survey.columns) == 1 else ""
    for separator, (name, advice) in _SEPARATORS.items():
        if separator in header:
            message = f"the columns are separated by {name} ({header[:40]!r}); {advice}"
            return Finding("error", "separator", message)
    return None


def _find_in_rows(survey: Survey) -> Iterator[Finding]:
    for reason, lines in survey.skipped.items():
        kind = reason.replace(" ", "_")
        message = f"{_rows(len(lines))} with {reason}, left out"
        yield Finding("warning", kind, message, len(lines), tuple(lines[:FIRST]))


def _find_useless_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels from which nothing can be learned."""
    texts, labels = len(survey.entries), len(survey.label_counts)
    if not labels:
        yield Finding("error", "no_labels", "no text has a label")
    elif labels == 1 and not survey.used.multi_label:
        [label] = survey.label_counts
        message = f"only one label ({label!r}); a classifier needs at least two"
        yield Finding("error", "one_label", message)
    elif _looks_swapped(survey):
        used = survey.used
        hint = f"--text-column {used.label_column} --label-column {used.text_column}"
        message = f"{labels:,} labels, longer than the texts: texts and labels seem swapped; {hint}"
        yield Finding("error", "swapped", message, labels)
    elif labels == texts and max(survey.label_counts.values()) == 1:
        message = f"each of {texts:,} texts has its own label"
        yield Finding("error", "unique_labels", message, labels)


def _find_in_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that are many, rare or far more frequent than others."""
    counts = survey.label_counts
    texts, labels = len(survey.entries), len(counts)
    if labels > texts / 2:
        message = f"{labels:,} labels for {texts:,} texts; is this the column of the labels?"
        yield Finding("warning", "many_labels", message, labels)
    if texts < FEW_TEXTS:
        yield Finding("warning", "few_texts", f"only {texts:,} texts to learn from", texts)
    few = [label for label in counts if counts[label] < FEW_EXAMPLES]
    if few:
        message = f"{len(few):,} of {labels:,} labels with fewer than {FEW_EXAMPLES} examples"
        first = {label: entry.line for entry in reversed(survey.entries) for label in entry.labels}
        lines = tuple(first[label] for label in few[:FIRST])
        message += f": {_listed(few, counts)}"
        yield Finding("warning", "rare_labels", message, len(few), lines)
    most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
    if counts[most] > IMBALANCE * counts[least]:
        message = f"{most!r} is {counts[most] / counts[least]:,.0f} times as frequent as {least!r}"
        if not survey.used.multi_label:
            message += f": always answering it gives an accuracy of {counts[most] / texts:.1%}"
        yield Finding("warning", "imbalance", f"{message}; watch macro F1")
    yield from _find_odd_labels(survey)
    yield from _find_joined_labels(survey)


def _find_joined_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that are likely lists of others, such as ``fast, kind`` beside ``kind``."""
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
            rows = [entry for entry in survey.entries if not set(lists).isdisjoint(entry.labels)]
            advice = f"{write}pass --multi-label"
            yield _finding("warning", "joined_labels", f"{message}; {advice}", rows)


def _looks_swapped(survey: Survey) -> bool:
    labels = survey.label_counts
    label_words = sum(len(label.split()) * count for label, count in labels.items())
    texts = {entry.key for entry in survey.entries}
    return len(labels) > len(texts) and label_words > survey.words


def _find_odd_labels(survey: Survey) -> Iterator[Finding]:
    """Find labels that are likely one, and labels that are likely none."""
    alike: defaultdict[str, list[str]] = defaultdict(list)
    for label in survey.label_counts:
        alike[_plain(label)].append(label)
    for same in alike.values():
        if len(same) > 1:
            rarer = [e for e in survey.entries if not set(same[1:]).isdisjoint(e.labels)]
            message = f"labels that look like one: {_listed(same, survey.label_counts)}"
            yield _finding("warning", "similar_labels", message, rarer)
    odd = {label for label in survey.label_counts if label.casefold() in _MISSING}
    none = [entry for entry in survey.entries if not odd.isdisjoint(entry.labels)]
    if none:
        like = next(label for label in none[0].labels if label in odd)
        message = f"{_rows(len(none))} with a label like {like!r}, which may mean none"
        yield _finding("warning", "missing_labels", message, none)


def _plain(label: str) -> str:
    """Write a label without what people vary: case, spaces, hyphens, and how a number looks.

    >>> _plain("Very-Good"), _plain("very  good"), _plain("1.0"), _plain("-1")
    ('very good', 'very good', '1', '-1')
    """
    plain = " ".join(unicodedata.normalize("NFKC", label).casefold().split())
    plain = re.sub(r"(?<=\w)[\s_-]+(?=\w)", " ", plain)
    return re.sub(r"(?<=\d)\.0+$", "", plain)


def _find_in_texts(survey: Survey, recipe: Recipe) -> Iterator[Finding]:
    entries, max_words = survey.entries, recipe.text.max_words
    labels_of: defaultdict[int, set[tuple[str, ...]]] = defaultdict(set)
    for entry in entries:
        labels_of[entry.key].add(entry.labels)
    torn = [entry for entry in entries if len(labels_of[entry.key]) > 1]
    if bare := [entry for entry in entries if not entry.labels]:
        yield _finding("note", "unlabelled", f"{_texts(len(bare))} without a label", bare)
    if torn:
        message = f"{_rows(len(torn))} whose text also stands there with another label"
        yield _finding("warning", "conflicts", message, torn)
    if repeated := _repeated(entries):
        message = f"{_rows(len(repeated))} with text and label of an earlier one"
        yield _finding("note", "duplicates", message, repeated)
    if numbers := [entry for entry in entries if entry.is_number]:
        level: Literal["warning", "note"] = "warning" if len(numbers) > len(entries) / 2 else "note"
        message = f"{_texts(len(numbers))} of mere numbers; is this the column of the texts?"
        yield _finding(level, "number_texts", message, numbers)
    if mangled := [entry for entry in entries if entry.is_mangled]:
        message = f"{_texts(len(mangled))} with lost or mangled characters (Ã©, â€, �)"
        yield _finding("warning", "mangled_texts", message, mangled)
    if unspaced := [entry for entry in entries if entry.is_unspaced]:
        message = f"{_texts(len(unspaced))} without spaces between the words"
        advice = "what stands between two spaces is read as one word; split them first"
        yield _finding("warning", "unspaced_texts", f"{message}: {advice}", unspaced)
    if long := [entry for entry in entries if entry.words > max_words]:
        message = f"{_texts(len(long))} of more than {max_words:,} words, cut there"
        advice = f"the longest has {max(entry.words for entry in long):,} (text.max_words)"
        yield _finding("note", "long_texts", f"{message}; {advice}", long)


def _repeated(entries: Sequence[Entry]) -> list[Entry]:
    seen: set[tuple[int, tuple[str, ...]]] = set()
    repeated = []
    for entry in entries:
        if (entry.key, entry.labels) in seen:
            repeated.append(entry)
        seen.add((entry.key, entry.labels))
    return repeated


def _find_between(train: Survey, other: Survey) -> Iterator[Finding]:
    """Find what two parts must not share, and what they must."""
    trained = {entry.key for entry in train.entries}
    leaked = [entry for entry in other.entries if entry.key in trained]
    if leaked:
        share = len(leaked) / len(other.entries)
        message = f"{_texts(len(leaked))} ({share:.1%}) found in {train.name} too"
        yield _finding("warning", "leakage", message, leaked)
    new = [label for label in other.label_counts if label not in train.label_counts]
    strange = [entry for entry in other.entries if not set(new).isdisjoint(entry.labels)]
    if strange and train.entries:
        names = _listed(new, other.label_counts)
        message = f"labels that do not occur in {train.name}: {names}"
        yield _finding("error", "unknown_labels", message, strange)
    if train.unit == other.unit == "line" and _read_differently(train, other):
        message = f"encoding or columns differ from those of {train.name}; make them alike"
        yield Finding("error", "unlike_files", message)


def _read_differently(train: Survey, other: Survey) -> bool:
    if train.problem or other.problem:
        return False
    if train.columns and other.columns:
        return train.used != other.used
    return train.used.encoding != other.used.encoding


def suggest(
    train: Survey,
    files: Mapping[str, str],
    *,
    recipe: Recipe,
    recipe_name: str | None,
    out: str = "model",
) -> list[str]:
    """Word a command that trains on this data; ``files`` are further parts by their option."""
    command = ["fathomer", "train", train.name, "--out", out]
    if recipe_name:
        command += ["--recipe", recipe_name]
    for option, name in files.items():
        command += [option, name]
    for name, value in train.used._asdict().items():
        if value != type(train.used)._field_defaults[name]:
            option = f"--{name.replace('_', '-')}"
            command += [option] if value is True else [option, value]
    settings = _settings(train, recipe, has_held_out="--held-out" in files) if recipe_name else {}
    for name, number in settings.items():
        command += ["--set", f"{name}={number}"]
    return command


def _settings(train: Survey, recipe: Recipe, *, has_held_out: bool) -> dict[str, float]:
    """Choose settings that a small file needs: more steps, and enough texts held out."""
    settings: dict[str, float] = {}
    words = max(1, sum(min(entry.words, recipe.text.max_words) for entry in train.entries))
    if words * recipe.train.epochs < STEPS * recipe.train.batch_words:
        batch_words = max(FEWEST_WORDS, 100 * round(words * recipe.train.epochs / STEPS / 100))
        epochs = min(MOST_EPOCHS, math.ceil(STEPS * batch_words / words))
        settings["train.batch_words"] = batch_words
        settings["train.epochs"] = max(recipe.train.epochs, epochs)
    if len(train.entries) < 2 * FEW_TEXTS and not has_held_out:
        settings["train.held_out"] = 0.2
    return settings


def _finding(
    level: Literal["error", "warning", "note"],
    problem: str,
    message: str,
    entries: Sequence[Entry],
) -> Finding:
    lines = tuple(entry.line for entry in entries[:FIRST])
    return Finding(level, problem, message, len(entries), lines)


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _texts(count: int) -> str:
    return f"{count:,} text{'' if count == 1 else 's'}"


def _listed(labels: Sequence[str] | Mapping[str, int], counts: Mapping[str, int]) -> str:
    names = [f"{label[:40]!r} ({counts[label]:,})" for label in list(labels)[:FIRST]]
    return ", ".join(names) + (", …" if len(labels) > FIRST else "")
