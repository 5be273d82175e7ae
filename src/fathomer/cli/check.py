"""The command ``fathomer check``."""

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from fathomer.cli.options import (
    Data,
    DataDir,
    Encoding,
    HeldOut,
    Json,
    LabelColumn,
    MultiLabel,
    Test,
    TextColumn,
)
from fathomer.cli.output import print_json, print_line, print_table

if TYPE_CHECKING:
    from fathomer.data.survey import Reading, Survey

LABELS = 20
"""Labels that are listed."""


def check(
    data: Data,
    test: Test = None,
    held_out: HeldOut = None,
    multi_label: MultiLabel = False,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Look for problems in labelled texts before training on them.

    Exit code 1 says that training would be refused or meaningless.

    Example: fathomer check reviews.csv --test test.csv
    """
    from fathomer.data.doctor import diagnose, suggest
    from fathomer.data.survey import Reading
    from fathomer.recipes import shipped_recipes, starting_recipe

    reading = Reading(text_column, label_column, encoding, multi_label)
    train, own_test = _survey(data, reading, data_dir)
    named = (("--test", test), ("--held-out", held_out))
    files = {option: name for option, name in named if name}
    others = [_scored(*_survey(name, reading, data_dir)) for name in files.values()]
    if own_test and not test:
        others.append(own_test)
    own_recipe = data in shipped_recipes()
    recipe = starting_recipe(data if own_recipe else "small")
    findings = diagnose(train, others, recipe=recipe)
    failed = any(finding.level == "error" for finding in findings)
    names = ("model", *(f"model-{number}" for number in range(2, 100)))
    out = next((name for name in names if not Path(name).exists()), "model")  # no model is lost
    recipe_name = None if own_recipe else "small"
    command = suggest(train, files, recipe=recipe, recipe_name=recipe_name, out=out)
    if data_dir:
        command += ["--data-dir", str(data_dir)]
    report = {
        "ok": not failed,
        **_summary(train),
        "parts": {part.name: len(part.entries) for part in others},
        "findings": [asdict(finding) for finding in findings],
        "command": None if failed else shlex.join(command),
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    raise typer.Exit(int(failed))


def _survey(
    data: str, reading: "Reading", data_dir: Path | None
) -> tuple["Survey", "Survey | None"]:
    """Look at a file, or at the training and test part of a corpus."""
    from fathomer.data.corpora import CORPORA, open_source
    from fathomer.data.survey import survey_examples, survey_file

    if data not in CORPORA and data != "demo" and Path(data).exists():
        return survey_file(Path(data), reading), None
    source = open_source(data, data_dir=data_dir, multi_label=reading.multi_label)
    test = survey_examples(f"{data} (test part)", source.test) if source.test else None
    return survey_examples(data, source.train), test


def _scored(train: "Survey", test: "Survey | None") -> "Survey":
    """Choose the test part of a corpus, or all of a file."""
    return test or train


def _summary(train: "Survey") -> dict[str, Any]:
    """Name what was found in the training data."""
    texts = len(train.entries)
    return {
        "data": train.name,
        "examples": texts,
        "skipped": {reason: len(lines) for reason, lines in train.skipped.items()},
        "columns": list(train.columns),
        "encoding": train.used.encoding if train.unit == "line" else None,
        "labels": train.label_counts,
        "average_words": round(train.words / max(1, texts), 1),
        "longest_words": max((entry.words for entry in train.entries), default=0),
    }


def _print(report: dict[str, Any]) -> None:
    columns = f"; columns {', '.join(report['columns'])}" if report["columns"] else ""
    encoding = f"; {report['encoding']}" if report["encoding"] else ""
    print_line(f"{report['data']}: {report['examples']:,} examples{columns}{encoding}")
    for name, examples in report["parts"].items():
        print_line(f"{name}: {examples:,} examples")
    if report["examples"]:
        _print_labels(report)
    print_line("")
    for found in report["findings"]:
        print_line(f"{found['level']}: {found['message']}{_where(found)}")
    if not report["findings"]:
        print_line("no problems found")
    if report["command"]:
        print_line(f"\ntrain with:\n{report['command']}")


def _where(found: dict[str, Any]) -> str:
    """Name the first lines that a finding is about."""
    if not found["lines"]:
        return ""
    unit = found["unit"] if found["count"] == 1 else f"{found['unit']}s"
    more = ", …" if found["count"] > len(found["lines"]) else ""
    return f" ({unit} {', '.join(map(str, found['lines']))}{more})"


def _print_labels(report: dict[str, Any]) -> None:
    words = f"{report['average_words']} on average, {report['longest_words']:,} at most"
    print_line(f"words: {words}\n")
    labels = report["labels"]
    print_table(
        ["label", "examples", "part"],
        [
            [repr(label[:40])[1:-1], f"{count:,}", f"{count / report['examples']:.1%}"]
            for label, count in list(labels.items())[:LABELS]
        ],
    )
    if len(labels) > LABELS:
        print_line(f"and {len(labels) - LABELS:,} more labels")
