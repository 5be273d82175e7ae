"""Excel workbooks and Parquet files: read like any other table, or named for what they are."""

import datetime
import re
import zipfile
from pathlib import Path

import pytest

from fathomer.config import TextConfig
from fathomer.data.check import summarise
from fathomer.data.findings import find_problems
from fathomer.data.reading import ReadOptions, read_columns, read_examples, read_rows
from fathomer.data.survey import survey_file
from fathomer.errors import DataError, MissingExtraError

openpyxl = pytest.importorskip("openpyxl", reason="openpyxl is not installed")
pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
import pyarrow.parquet as pq  # noqa: E402

NAN = float("nan")


@pytest.fixture(autouse=True)
def _in_folder(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)


def write_sheet(name, rows):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(name)
    return Path(name)


def write_parquet(name, columns, **options):
    pq.write_table(pa.table(columns), name, **options)
    return Path(name)


def test_a_workbook_is_read_as_it_looks():
    rows = [[], ["id", "Text", "label"], [1, "It sang.", "good"], [], [2, 1984, 4.0], [3, None, 1]]
    path = write_sheet("r.xlsx", rows)
    assert [row[:3] for row in read_rows(path)] == [
        (3, "It sang.", "good"),
        (5, "1984", "4"),
        (6, "", "1"),
    ]
    assert read_examples(path).skipped == {"empty text": 1}
    assert read_columns(path, "utf-8") == ["id", "Text", "label"]


def test_a_parquet_file_is_read_in_small_batches(monkeypatch):
    monkeypatch.setattr("fathomer.data.xlsx_parquet.BATCH_ROWS", 2)
    columns = {"text": ["a", None, "c", "d", "e"], "label": [1.0, 1.0, NAN, None, 2.0]}
    found = read_examples(write_parquet("r.parquet", columns))
    assert list(found) == [("a", "1"), ("e", "2")]
    assert found.skipped == {"empty text": 1, "missing label": 1, "empty label": 1}


def test_several_labels_in_a_parquet_file_are_lists():
    path = write_parquet("r.parquet", {"text": ["a", "b"], "label": [["x", "y"], []]})
    found = read_examples(path, ReadOptions(multi_label=True))
    assert list(found) == [("a", "x|y"), ("b", "")]
    with pytest.raises(DataError, match="row 1: a list of labels; pass --multi-label"):
        read_examples(path)


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"text": [1], "label": ["a"]}, "r.parquet, row 1: the text must be a string, found 1"),
        ({"text": ["a"], "stars": ["a"]}, "r.parquet, row 1: no column 'label' in the header"),
        (
            {"text": ["a"], "label": [datetime.date(2024, 5, 2)]},
            'the label must be a string or a whole number, found "2024-05-02"',
        ),
        ({"text": pa.array([], pa.string()), "label": [][:0]}, "r.parquet: the file has no rows"),
    ],
)
def test_a_mistake_in_a_parquet_file_is_one_line(columns, problem):
    with pytest.raises(DataError) as caught:
        read_examples(write_parquet("r.parquet", columns))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("r.xlsx", "r.xlsx: not an Excel workbook, or damaged"),
        ("r.parquet", "r.parquet: not a Parquet file, or damaged"),
    ],
)
def test_a_damaged_file_is_named(name, problem):
    Path(name).write_bytes(b"PAR1 or PK, but no more")
    with pytest.raises(DataError, match=problem):
        read_examples(Path(name))


def test_a_file_under_a_wrong_name_is_named_for_what_it_is():
    write_parquet("r.csv", {"text": ["a"], "label": ["b"]})
    with pytest.raises(DataError, match=r"^r\.csv: a Parquet file; rename it to \.parquet$"):
        read_examples(Path("r.csv"))
    write_sheet("r.xlsx", [["text", "label"], ["a", "b"]]).rename("s.csv")
    with pytest.raises(DataError, match=r"^s\.csv: an Excel workbook; rename it to \.xlsx$"):
        read_examples(Path("s.csv"))
    Path("t.csv").write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(DataError, match=r"^t\.csv: an old Excel workbook; save it as \.xlsx$"):
        read_examples(Path("t.csv"))


@pytest.mark.parametrize(
    "begin", [b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", b"PAR1\x15\x81", b"\xfd7zXZ\x81"]
)
def test_a_check_names_such_a_file_and_suggests_no_encoding(begin):
    Path("r.csv").write_bytes(begin + bytes(600))
    survey = survey_file(Path("r.csv"), ReadOptions())
    [finding] = find_problems(survey, [], config=TextConfig())
    assert finding.message == survey.problem
    assert summarise(survey)["encoding"] is None


@pytest.mark.parametrize(("name", "package"), [("r.xlsx", "openpyxl"), ("r.parquet", "pyarrow")])
def test_without_its_package_the_error_names_the_extra(monkeypatch, name, package):
    write_sheet("r.xlsx", [["text", "label"], ["a", "b"]])
    write_parquet("r.parquet", {"text": ["a"], "label": ["b"]})
    monkeypatch.setattr("fathomer.errors.find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=f"needs {package}: pip install 'fathomer"):
        read_examples(Path(name))


def test_a_survey_counts_rows_and_has_no_encoding():
    rows = [["text", "label"], *[[f"a café {n}", "good" if n % 2 else "bad"] for n in range(120)]]
    found = survey_file(write_sheet("r.xlsx", rows), ReadOptions())
    assert (found.unit, found.problem, len(found.examples)) == ("row", None, 120)
    assert found.used == found.asked


@pytest.mark.parametrize(
    ("part", "old", "new"),
    [
        ("xl/workbook.xml", rb"<sheet .*?/>", b""),
        ("xl/workbook.xml", rb"</sheets>", b""),
        ("xl/worksheets/sheet1.xml", rb"</row>", b"</raw>"),
        ("xl/worksheets/sheet1.xml", rb'r="A2"', b'r="ZZZZZZ2"'),
        ("xl/worksheets/sheet1.xml", rb'<dimension.*?/>(.*)"2"', rb'\1"99999999999"'),
        ("[Content_Types].xml", rb"<.*>", b""),
    ],
)
def test_a_workbook_with_damaged_parts_is_one_line(monkeypatch, part, old, new):
    monkeypatch.setattr("fathomer.data.xlsx_parquet.MAX_SHEET_ROWS", 1000)
    path = write_sheet("r.xlsx", [["text", "label"], ["It sang.", "good"]])
    with zipfile.ZipFile(path) as book:
        parts = {name: book.read(name) for name in book.namelist()}
    before, parts[part] = parts[part], re.sub(old, new, parts[part])
    assert parts[part] != before
    with zipfile.ZipFile(path, "w") as book:
        for name, content in parts.items():
            book.writestr(name, content)
    with pytest.raises(DataError, match=r"^r\.xlsx: not an Excel workbook, or damaged") as caught:
        read_examples(path)
    assert "\n" not in str(caught.value)


def test_a_parquet_file_with_damaged_pages_is_one_line():
    columns = {"text": [f"film {n}" for n in range(99)], "label": ["a", "b", "c"] * 33}
    path = write_parquet("r.parquet", columns)
    content = path.read_bytes()
    path.write_bytes(content[:4] + b"\xff" * 8 + content[12:])  # the header of the first page
    with pytest.raises(DataError, match=r"^r\.parquet: not a Parquet file, or dam") as caught:
        read_examples(path)
    assert "\n" not in str(caught.value)
