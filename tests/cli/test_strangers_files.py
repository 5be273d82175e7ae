"""Files as people have them: other separators, workbooks, Parquet, odd labels, an existing model."""

import csv
import io
import json
from pathlib import Path

import pytest

from tests.tiny import tiny_examples

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
import pyarrow as pa  # noqa: E402


def train(run, name, recipe, *options, out="new"):
    command = ("train", name, "--out", out, "--recipe", recipe, "--no-baseline", "--json")
    return run(*command, "--set", "train.epochs=1", *options)


@pytest.fixture
def columns():
    examples = tiny_examples()
    return {"text": list(examples.texts), "label": [example.label for example in examples]}


def test_a_file_with_semicolons_is_checked_trained_on_scored_and_answered(
    run, model, recipe, columns, tmp_path
):
    rows = [f"{text}, they say;{label}\n" for text, label in zip(*columns.values(), strict=True)]
    (tmp_path / "excel.csv").write_text("text;label\n" + "".join(rows), encoding="utf-8")
    said = "excel.csv: columns separated by semicolons\n"
    code, out, _ = run("check", "excel.csv")
    assert (code, f"note: {said}" in out) == (0, True)
    code, _, err = train(run, "excel.csv", recipe)
    assert (code, said in err) == (0, True)
    code, out, err = run("evaluate", model, "excel.csv", "--json")
    assert (code, err, json.loads(out)["examples"]) == (0, said, 60)
    code, _, err = run("predict", model, "excel.csv", "--out", "answers.csv")
    assert (code, err.startswith(said)) == (0, True)
    written = (tmp_path / "answers.csv").read_text(encoding="utf-8")
    header, first, *_ = csv.reader(io.StringIO(written), delimiter=";", strict=True)
    assert header == ["text", "label", "predicted_label", "probability"]
    assert first[:2] == [f"{columns['text'][0]}, they say", columns["label"][0]]


def test_a_workbook_is_checked_trained_on_scored_and_answered(run, model, recipe, columns):
    book = openpyxl.Workbook()
    for row in [["text", "label"], *zip(*columns.values(), strict=True)]:
        book.active.append(row)
    book.save("r.xlsx")
    code, out, _ = run("check", "r.xlsx")
    assert (code, "60 examples; columns text, label\n" in out) == (0, True)
    assert train(run, "r.xlsx", recipe)[0] == 0
    assert json.loads(run("evaluate", model, "r.xlsx", "--json")[1])["examples"] == 60
    assert run("predict", model, "r.xlsx", "--out", "answers.csv")[0] == 0
    assert Path("answers.csv").read_text(encoding="utf-8").count("\n") == 61


def test_a_parquet_file_is_checked_trained_on_scored_and_answered(run, model, recipe, columns):
    days = pa.array(range(60), pa.date32())
    pq.write_table(pa.table({"day": days, **columns}), "r.parquet")
    code, out, _ = run("check", "r.parquet")
    assert (code, "60 examples; columns day, text, label\n" in out) == (0, True)
    assert train(run, "r.parquet", recipe)[0] == 0
    assert json.loads(run("evaluate", model, "r.parquet", "--json")[1])["examples"] == 60
    code, _, err = run("predict", model, "r.parquet", "--out", "a.parquet", "--depths")
    assert (code, err) == (0, "a.parquet: 60 texts answered\n")
    table = pq.read_table("a.parquet")
    added = ["predicted_label", "probability", "mean_depth"]
    assert table.column_names == ["day", "text", "label", *added]
    assert table.column("day").equals(pa.chunked_array([days]))  # columns keep their types
    run("predict", model, "r.parquet", "--out", "a.csv", "--depths")
    with Path("a.csv").open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    assert [row[3] for row in rows[1:]] == table.column("predicted_label").to_pylist()
    assert rows[1][0] == "1970-01-01"


def test_answers_to_a_csv_can_be_written_as_parquet_and_resumed(run, model, data, monkeypatch):
    monkeypatch.setattr("fathomer.answer_file.CHUNK_TEXTS", 25)
    run("predict", model, data, "--out", "whole.parquet")
    command = ("predict", model, data, "--out", "a.parquet")
    with monkeypatch.context() as killed:
        killed.setattr("fathomer.answer_file._write_parquet", lambda *_: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            run(*command)
    assert not Path("a.parquet").exists()
    assert run(*command, "--resume")[0] == 0
    assert pq.read_table("a.parquet").equals(pq.read_table("whole.parquet"))
    assert len(pq.read_table("a.parquet")) == 60
    assert [path.name for path in Path().glob("a.parquet*")] == ["a.parquet"]


def test_labels_that_stand_for_none_are_left_out_with_a_count(run, recipe, data):
    with Path(data).open("a", encoding="utf-8") as file:
        file.write("what is this,NaN\nand this,null\nor this,\n")
    code, out, err = train(run, data, recipe)
    said = "60 examples read, 3 skipped (2 missing label, 1 empty label)"
    assert (code, f"{data}: {said}" in err) == (0, True)
    assert json.loads(out)["labels"] == ["negative", "positive"]


def test_texts_with_unknown_labels_are_left_out_of_the_scores(run, model, recipe, data):
    with Path(data).open("a", encoding="utf-8") as file:
        file.write("what is this,neutral\nand this,mixed\n")
    code, out, err = run("evaluate", model, data, "--json")
    assert (code, json.loads(out)["examples"]) == (0, 60)
    assert err == f"{data}: 60 examples read, 2 skipped (2 unknown label)\n"
    assert json.loads(out)["skipped"] == {"unknown label": 2}
    Path("train.csv").write_text("text,label\n" + "good,positive\nbad,negative\n" * 9)
    code, out, err = train(run, "train.csv", recipe, "--test", data)
    assert (code, f"{data}: 60 examples read, 2 skipped" in err) == (0, True)
    assert json.loads(out)["test"]["examples"] == 60
