"""Answers for a whole file: what is written, and that a run can be interrupted and resumed."""

import csv
import errno
import io
import json
import os
import re
from dataclasses import replace
from itertools import islice

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fathomer.answer_file import AnswerRequest, answer_file, chunked
from fathomer.data.csv_jsonl import DELIMITERS
from fathomer.data.reading import ReadOptions, read_rows
from fathomer.errors import ConfigError, DataError, DepthError, MissingFileError
from fathomer.open_files import format_suffix
from fathomer.predictor import Predictor
from tests.tiny import tiny_artifact, tiny_examples

UNLABELLED = ReadOptions(label_column=None)


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch, tmp_path):
    """Work in an empty folder, in chunks of seven texts."""
    monkeypatch.setattr("fathomer.answer_file.CHUNK_TEXTS", 7)
    monkeypatch.chdir(tmp_path)


def request_for(name, folder, **options):
    path = folder / name
    kind = format_suffix(path)
    out = folder / f"out{kind if kind in DELIMITERS else '.jsonl'}"
    return AnswerRequest(path, out, **{"model": "m", **options})


def input_rows(request):
    return read_rows(request.path, ReadOptions(label_column=None))


def answer(name, folder, *, resume=False, watch=iter, **options):
    """Answer a file with the tiny model and return what was written."""
    request = request_for(name, folder, **options)
    rows = input_rows(request)
    answer_file(Predictor(tiny_artifact()), rows, request, resume=resume, watch=watch)
    return request.out.read_bytes().decode()


def write_input(folder, rows=30):
    """Write a csv file whose texts contain newlines and differ in length."""
    lines = [
        f'{number},"{example.text}\nIt was ""{number}"".{" So so." * (number % 3)}",é\n'
        for number, example in enumerate(tiny_examples(rows))
    ]
    (folder / "in.csv").write_text("id,text,note\n" + "".join(lines), encoding="utf-8")


def rows_of(text, delimiter=","):
    return list(csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True))


def files_in(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_label_is_empty_if_it_is_not_probable_enough(tmp_path):
    write_input(tmp_path)
    table = [row[3:] for row in rows_of(answer("in.csv", tmp_path, abstain_below=1.0))]
    assert table[0] == ["label", "probability"]
    assert all(label == "" and 0 < float(share) < 1 for label, share in table[1:])
    (tmp_path / "in.jsonl").write_text('{"text": "good"}\n', encoding="utf-8")
    found = json.loads(answer("in.jsonl", tmp_path, abstain_below=1.0))
    assert found["label"] is None
    assert 0 < found["probability"] < 1


def test_a_csv_file_keeps_its_columns_and_gets_the_answers_of_the_predictor(tmp_path):
    write_input(tmp_path)
    header, *rows = rows_of(answer("in.csv", tmp_path, depths=True))
    before = rows_of((tmp_path / "in.csv").read_text(encoding="utf-8"))
    assert header == [*before[0], "label", "probability", "mean_depth"]
    assert [row[:3] for row in rows] == before[1:]
    predictions = Predictor(tiny_artifact()).predict([row[1] for row in rows])
    for row, prediction in zip(rows, predictions, strict=True):
        assert row[3] == prediction.label
        assert float(row[4]) == pytest.approx(max(prediction.probabilities.values()), abs=2e-6)
        depths = [word.depth for word in prediction.words]
        assert float(row[5]) == pytest.approx(sum(depths) / len(depths), abs=1e-4)
    assert files_in(tmp_path) == ["in.csv", "out.csv"]


def test_a_jsonl_file_keeps_its_values_and_gets_the_words(tmp_path):
    before = {"n": [1, None], "text": "good film", "half": "\ud83d", "ü": "ü"}
    (tmp_path / "in.jsonl").write_text(json.dumps(before) + "\n\n" + '{"text": null}\n')
    first, second = map(json.loads, answer("in.jsonl", tmp_path, depths=True).splitlines())
    assert list(first) == ["n", "text", "half", "ü", "label", "probability", "words"]
    assert first | before == first
    assert [word["text"] for word in first["words"]] == ["good", "film"]
    assert (second["text"], second["words"]) == (None, [])


def test_plain_lines_are_answered_with_lines_of_json(tmp_path):
    (tmp_path / "in.txt").write_text("good film\n\nbad", encoding="utf-8")
    answers = [json.loads(line) for line in answer("in.txt", tmp_path).splitlines()]
    predictions = Predictor(tiny_artifact()).predict(["good film", "", "bad"])
    assert answers == [prediction.to_dict() for prediction in predictions]
    (tmp_path / "in.txt").write_text("", encoding="utf-8")
    assert answer("in.txt", tmp_path) == ""


@pytest.mark.parametrize(
    ("header", "added"),
    [
        ("text", "label,probability"),
        ("text,label", "predicted_label,probability"),
        ("text, Label ", "predicted_label,probability"),
        ("text,label,probability", "predicted_label,predicted_probability"),
        ("text,predicted_label", "label,probability"),
    ],
)
def test_an_existing_column_is_not_overwritten(tmp_path, header, added):
    cells = ",".join("x" for _ in header.split(","))
    (tmp_path / "in.csv").write_text(f"{header}\n{cells}\n", encoding="utf-8")
    assert answer("in.csv", tmp_path).splitlines()[0] == f"{header},{added}"


def test_an_error_about_taken_column_names_leaves_no_files(tmp_path):
    (tmp_path / "in.csv").write_text("text,label,predicted_label\na,b,c\n", encoding="utf-8")
    with pytest.raises(DataError, match="'label' and 'predicted_label' both exist"):
        answer("in.csv", tmp_path)
    assert files_in(tmp_path) == ["in.csv"]


def test_a_key_that_only_a_later_object_has_is_not_overwritten(tmp_path):
    lines = ['{"text": "a"}'] * 9 + ['{"text": "a", "label": "mine"}']
    (tmp_path / "in.jsonl").write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(DataError, match=r"line 10: the key 'label' .*; 7 answers are kept, "):
        answer("in.jsonl", tmp_path)


CELLS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)


@settings(max_examples=60)
@given(rows=st.lists(st.tuples(CELLS, CELLS), min_size=1), tab=st.booleans())
@example(rows=[("a\rb", "\r"), ("a\tb", ","), ('"', "\n")], tab=False)
def test_any_cells_survive_unchanged(tmp_path_factory, rows, tab):
    folder = tmp_path_factory.mktemp("cells")
    buffer, delimiter = io.StringIO(newline=""), "\t" if tab else ","
    csv.writer(buffer, delimiter=delimiter, quoting=csv.QUOTE_ALL).writerows(
        [("text", "other"), *rows]
    )
    name = "in.tsv" if tab else "in.csv"
    (folder / name).write_bytes(buffer.getvalue().encode())
    found = rows_of(answer(name, folder, raw_cells=True), delimiter)
    assert [tuple(row[:2]) for row in found[1:]] == rows


class Stop(Exception):
    """Anything that ends the process."""


def stopping_after(count):
    """Pass this many chunks through, then stop."""

    def watch(chunks):
        yield from islice(chunks, count)
        raise Stop

    return watch


@pytest.mark.parametrize("chunks", range(6))
def test_a_resumed_run_writes_the_bytes_of_an_uninterrupted_one(tmp_path, chunks):
    write_input(tmp_path)
    straight = answer("in.csv", tmp_path, depths=True)
    (tmp_path / "out.csv").unlink()
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, depths=True, watch=stopping_after(chunks))
    assert files_in(tmp_path) == ["in.csv", "out.csv.partial", "out.csv.partial.json"]
    passed = []

    def watch(chunks):
        for chunk in chunks:
            passed.append(len(chunk))
            yield chunk

    assert answer("in.csv", tmp_path, depths=True, resume=True, watch=watch) == straight
    assert passed == [7, 7, 7, 7, 2][chunks:], "answered chunks are not repeated"
    assert files_in(tmp_path) == ["in.csv", "out.csv"]


def test_an_incomplete_last_line_is_cut_off(tmp_path):
    write_input(tmp_path)
    straight = answer("in.csv", tmp_path)
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(2))
    with (tmp_path / "out.csv.partial").open("ab") as file:
        file.write(('15,"Half a line\n' + "é" * len(straight)).encode()[:-1])
    assert answer("in.csv", tmp_path, resume=True) == straight


def test_a_bad_row_keeps_the_answers_so_far_and_can_be_fixed(tmp_path):
    write_input(tmp_path)
    straight = answer("in.csv", tmp_path)
    content = (tmp_path / "in.csv").read_text(encoding="utf-8")
    (tmp_path / "in.csv").write_text(content.replace('17,"', "17,"), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        answer("in.csv", tmp_path)
    assert str(caught.value).startswith(f"{tmp_path / 'in.csv'}, line 36: ")
    assert str(caught.value).endswith("; 14 answers are kept, --resume continues")
    (tmp_path / "in.csv").write_text(content, encoding="utf-8")
    assert answer("in.csv", tmp_path, resume=True) == straight


def test_an_error_before_the_first_answer_leaves_no_files(tmp_path):
    (tmp_path / "in.csv").write_text('text\n"a\n', encoding="utf-8")
    with pytest.raises(DataError, match=r"in\.csv, line 2: "):
        answer("in.csv", tmp_path)
    (tmp_path / "in.csv").write_text("text\na\n", encoding="utf-8")
    with pytest.raises(DepthError):
        answer("in.csv", tmp_path, max_depth=9)
    assert files_in(tmp_path) == ["in.csv"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"model": "n"}, "was made with another model; use the same, or delete the file"),
        ({"depths": True}, "was made with --depths = False; use"),
        ({"max_depth": 2}, "was made with --max-depth = None; use"),
        ({"abstain_below": 0.5}, "was made with --abstain-below = 0.0; use"),
    ],
)
def test_a_run_cannot_be_resumed_with_another_model_or_option(tmp_path, changed, message):
    write_input(tmp_path)
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(2))
    before = (tmp_path / "out.csv.partial").read_bytes()
    with pytest.raises(ConfigError, match=message):
        answer("in.csv", tmp_path, resume=True, **changed)
    assert (tmp_path / "out.csv.partial").read_bytes() == before


@pytest.mark.parametrize("change", [("note", "remark"), ('13,"', '31,"'), (",é\n14", ",e\n14")])
def test_a_run_cannot_be_resumed_with_another_input(tmp_path, change):
    write_input(tmp_path)
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(2))
    content = (tmp_path / "in.csv").read_text(encoding="utf-8")
    assert change[0] in content
    (tmp_path / "in.csv").write_text(content.replace(*change), encoding="utf-8")
    with pytest.raises(ConfigError, match="its 14 answers do not belong to the first 14 rows of"):
        answer("in.csv", tmp_path, resume=True)


def test_a_run_cannot_be_resumed_with_a_shorter_input(tmp_path):
    (tmp_path / "in.txt").write_text("good\n" * 20, encoding="utf-8")
    with pytest.raises(Stop):
        answer("in.txt", tmp_path, watch=stopping_after(2))
    for count in (0, 13):
        (tmp_path / "in.txt").write_text("good\n" * count, encoding="utf-8")
        with pytest.raises(ConfigError, match="its 14 answers do not belong"):
            answer("in.txt", tmp_path, resume=True)


def test_an_interrupted_run_is_neither_overwritten_nor_resumed_twice(tmp_path):
    write_input(tmp_path)
    with pytest.raises(MissingFileError, match=r"nothing to resume"):
        answer("in.csv", tmp_path, resume=True)
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(1))
    with pytest.raises(ConfigError, match=r"out\.csv\.partial: .*--resume"):
        answer("in.csv", tmp_path)
    answer("in.csv", tmp_path, resume=True)
    with pytest.raises(ConfigError, match=r"out\.csv: .*nothing to resume"):
        answer("in.csv", tmp_path, resume=True)


@pytest.mark.parametrize("notes", [None, "", "[]", '{"bytes": 99999999, "notes": {}}'])
def test_a_run_with_damaged_notes_cannot_be_resumed(tmp_path, notes):
    write_input(tmp_path)
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(1))
    path = tmp_path / "out.csv.partial.json"
    path.unlink() if notes is None else path.write_text(notes, encoding="utf-8")
    with pytest.raises(DataError, match="damaged"):
        answer("in.csv", tmp_path, resume=True)


def test_the_old_file_stays_until_the_new_one_is_complete(tmp_path):
    write_input(tmp_path)
    (tmp_path / "out.csv").write_text("old", encoding="utf-8")
    with pytest.raises(Stop):
        answer("in.csv", tmp_path, watch=stopping_after(3))
    assert (tmp_path / "out.csv").read_text(encoding="utf-8") == "old"
    assert answer("in.csv", tmp_path, resume=True).startswith("id,text,note,label")


def test_chunks_are_bounded_by_texts_and_by_characters(tmp_path, monkeypatch):
    monkeypatch.setattr("fathomer.answer_file.CHUNK_CHARACTERS", 10)
    (tmp_path / "in.txt").write_text("123456\n" * 3 + "\n" * 16 + "x" * 50, encoding="utf-8")
    chunks = chunked(input_rows(request_for("in.txt", tmp_path)))
    assert [len(chunk) for chunk in chunks] == [2, 7, 7, 4]


def test_a_full_disk_is_named_and_the_run_can_be_resumed(tmp_path, monkeypatch):
    write_input(tmp_path)
    whole = answer("in.csv", tmp_path)
    (tmp_path / "out.csv").unlink()
    fsync, synced = os.fsync, []

    def fill_up(number):
        synced.append(number)
        if len(synced) > 8:
            raise OSError(errno.ENOSPC, "No space left on device")
        fsync(number)

    with monkeypatch.context() as full:
        full.setattr("fathomer.files.os.fsync", fill_up)
        with pytest.raises(DataError) as caught:
            answer("in.csv", tmp_path)
    assert re.search(
        r"; make room; [1-9]\d* answers are kept, --resume continues$", str(caught.value)
    )
    assert str(caught.value).startswith(f"{tmp_path / 'out.csv.partial'}")
    assert "No space left on device" in str(caught.value)
    assert answer("in.csv", tmp_path, resume=True) == whole


def test_a_disk_that_is_full_at_the_end_of_a_parquet_file_is_named(tmp_path, monkeypatch):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    write_input(tmp_path)
    request = replace(request_for("in.csv", tmp_path), out=tmp_path / "out.parquet")
    predictor = Predictor(tiny_artifact())

    def fill_up(path, *_, **__):
        path.write_bytes(b"PAR1")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr("fathomer.answer_file.write_parquet", fill_up)
        with pytest.raises(DataError) as caught:
            answer_file(predictor, input_rows(request), request)
    told = (
        r"out\.parquet\.partial: No space left on device; make room; [1-9]\d* answers are kept, --"
    )
    assert re.search(told, str(caught.value))
    names = {path.name for path in tmp_path.glob("out*")}
    assert names == {"out.parquet.partial", "out.parquet.partial.json"}
    rows = answer_file(predictor, input_rows(request), request, resume=True)
    assert len(pq.read_table(tmp_path / "out.parquet")) == rows
