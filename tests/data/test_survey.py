"""Surveys of files: guessed columns, and rows that are not examples."""

import json
from pathlib import Path

import pytest

from fathomer.config import TextConfig
from fathomer.data.examples import Example, Examples
from fathomer.data.findings import find_problems
from fathomer.data.reading import ReadOptions
from fathomer.data.survey import survey_examples, survey_file
from fathomer.errors import DataError
from tests.data.small import HEALTHY, write_table


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def problems(survey):
    return find_problems(survey, [], config=TextConfig())


def test_only_the_missing_column_is_guessed():
    rows = [(text, label, "a") for text, label in HEALTHY]
    survey = survey_file(write_table("a.csv", rows, header="Text,class,constant"), ReadOptions())
    assert survey.used == ReadOptions("text", "class")
    [finding] = problems(survey)
    assert "no column 'label' in 'Text', 'class', 'constant'" in finding.message


def test_json_keys_are_guessed_like_columns():
    records = [{"n": n, "body": t, "stars": 1 + n % 2} for n, (t, _) in enumerate(HEALTHY)]
    Path("a.jsonl").write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
    survey = survey_file(Path("a.jsonl"), ReadOptions())
    assert survey.used == ReadOptions("body", "stars")
    assert survey.label_counts == {"1": 60, "2": 60}


def test_fasttext_lines_have_no_columns():
    lines = [f"__label__{label} {text}\n" for text, label in HEALTHY]
    Path("a.txt").write_text("".join(lines), encoding="utf-8")
    survey = survey_file(Path("a.txt"), ReadOptions())
    assert (survey.columns, problems(survey)) == ((), [])


def test_an_unknown_encoding_is_the_users_mistake():
    Path("a.csv").write_bytes(b"text,label\n")
    with pytest.raises(DataError, match="unknown encoding 'klingon'"):
        survey_file(Path("a.csv"), ReadOptions(encoding="klingon"))


def test_rows_that_training_skips_are_surveyed_but_are_not_examples():
    examples = Examples([Example("a good film", "good"), Example(" ", "bad"), Example("b", "")])
    survey = survey_examples("corpus", examples)
    assert [text.words for text in survey.texts] == [3, 0, 1]
    assert [text.line for text in survey.examples] == [1]
    assert survey.skipped == {"empty text": [2], "empty label": [3]}
    assert (survey.words, survey.label_counts) == (3, {"good": 1})
