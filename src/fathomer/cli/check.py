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
from fathomer.cli.output import (
    print_command,
    print_json,
    print_line,
    print_table,
    print_wrapped,
)
from fathomer.cli.settings import vectors_suggestion
from fathomer.config import TextConfig

if TYPE_CHECKING:
    from fathomer.data.reading import ReadOptions
    from fathomer.data.survey import Survey

SHOWN_LABELS = 20


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

    Exit code 1 means that training would fail or be meaningless.

    Example: fathomer check reviews.csv --test test.csv
    """
    from fathomer.data.check import suggest_command, summarise
    from fathomer.data.findings import find_problems
    from fathomer.data.reading import ReadOptions

    options = ReadOptions(text_column, label_column, encoding, multi_label)
    train, own_test = _survey(data, options, data_dir)
    named = (("--test", test), ("--held-out", held_out))
    files = {option: name for option, name in named if name}
    surveys = [_survey(name, options, data_dir) for name in files.values()]
    others = [own or whole for whole, own in surveys]  # of a corpus, its test set
    if own_test and not test:
        others.append(own_test)
    findings = find_problems(train, others, config=TextConfig())
    failed = any(finding.level == "error" for finding in findings)
    command = suggest_command(train, files, out=_unused_folder())
    if data_dir:
        command += ["--data-dir", str(data_dir)]
    report = {
        "ok": not failed,
        **summarise(train),
        "parts": {part.name: len(part.examples) for part in others},
        "findings": [asdict(finding) for finding in findings],
        "command": None if failed else shlex.join(command),
        "suggestion": None if train.unit == "text" else vectors_suggestion(len(train.examples)),
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    raise typer.Exit(int(failed))


def _survey(
    data: str, options: "ReadOptions", data_dir: Path | None
) -> tuple["Survey", "Survey | None"]:
    """Survey a file, or the training and test set of a corpus."""
    from fathomer.data.datasets import CORPORA
    from fathomer.data.opening import open_dataset
    from fathomer.data.survey import survey_examples, survey_file

    if data not in CORPORA and data != "demo" and Path(data).exists():
        return survey_file(Path(data), options), None
    dataset = open_dataset(data, options, data_dir=data_dir)
    test = survey_examples(f"{data} (test part)", dataset.test) if dataset.test else None
    return survey_examples(data, dataset.train), test


def _unused_folder() -> str:
    """Return a name for the model's folder that is not in use."""
    names = ("model", *(f"model-{number}" for number in range(2, 100)))
    return next((name for name in names if not Path(name).exists()), "model")


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
        print_wrapped(f"{found['level']}: {found['message']}{_where(found)}")
    if not report["findings"]:
        print_line("no problems found")
    if report["command"]:
        suggestion = f"\n{report['suggestion']}\n" if report["suggestion"] else ""
        print_line(f"{suggestion}\ntrain with:")
        print_command(report["command"])


def _where(found: dict[str, Any]) -> str:
    """Return the first lines that a finding is about, in parentheses."""
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
        ["label", "examples", "share"],
        [
            [repr(label[:40])[1:-1], f"{count:,}", f"{count / report['examples']:.1%}"]
            for label, count in list(labels.items())[:SHOWN_LABELS]
        ],
    )
    if len(labels) > SHOWN_LABELS:
        print_line(f"and {len(labels) - SHOWN_LABELS:,} more labels")
