"""Parsing csv, tsv and jsonl files: every mistake is one line with the file's name and the line number."""

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.data.reading import ReadOptions, read_rows
from fathomer.errors import FathomerError


@pytest.fixture
def message(tmp_path, monkeypatch):
    """Return the error about a file, which starts with its bare name."""
    monkeypatch.chdir(tmp_path)

    def message_about(name: str, content: bytes | str, **options: str | None) -> str:
        Path(name).write_bytes(content.encode() if isinstance(content, str) else content)
        with pytest.raises(FathomerError) as caught:
            list(read_rows(Path(name), ReadOptions(**options)))
        assert "\n" not in str(caught.value)
        return str(caught.value)

    return message_about


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.jsonl", "r.txt", "r"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n \r\n"])
def test_an_empty_file_is_reported_as_empty(message, name, content):
    assert message(name, content) == f"{name}: the file is empty"


def test_a_header_alone_is_not_enough(message):
    assert message("r.csv", "text,label\n\n") == "r.csv: no rows after the header"


def test_a_missing_column_is_reported_with_the_columns_found(message):
    hint = "name yours with --label-column (fathomer check suggests how)"
    header = f"{hint}, or add a header if there is none"
    assert message("r.csv", "words,label\n").endswith(
        "no column 'text' in the header ('words', 'label'); name yours with --text-column, "
        "or add a header if there is none"
    )
    assert "--text-column and --label-column" in message("r.csv", "words,stars\n")
    assert message("r.csv", "text,stars\n") == (
        f"r.csv, line 1: no column 'label' in the header ('text', 'stars'); {header}"
    )
    assert message("r.jsonl", '\n{"text": "a", "stars": 1}\n') == (
        f"r.jsonl, line 2: no column 'label' in the object ('text', 'stars'); {hint}"
    )
    assert message("r.csv", "text,text,label\na,b,1\n") == (
        "r.csv, line 1: 2 columns 'text' in the header ('text', 'text', 'label'); rename all but one"
    )


def test_without_labels_the_error_suggests_only_the_text_column(message):
    found = message("r.csv", "a,b\n1,2\n", label_column=None)
    assert found.endswith("name yours with --text-column, or add a header if there is none")


@pytest.mark.parametrize(
    ("name", "mark"), [("r.csv", ";"), ("r.csv", "\t"), ("r.csv", "|"), ("r.tsv", ",")]
)
@pytest.mark.parametrize("start", ["", "\ufeff", "\n \n"])
@pytest.mark.parametrize("header", ["text~label", '"text"~"label"', "text~label~id"])
def test_another_separator_is_recognised(tmp_path, name, mark, start, header):
    end = "~1\r\n" if header.endswith("id") else "\r\n"
    content = f'{start}{header}\r\n"one, two"~b{end}"x~y"~c{end}'.replace("~", mark)
    (tmp_path / name).write_bytes(content.encode())
    found = [(row.text, row.label) for row in read_rows(tmp_path / name)]
    assert found == [("one, two", "b"), (f"x{mark}y", "c")]


def test_the_usual_separator_is_kept_if_it_splits_the_header(tmp_path):
    (tmp_path / "r.csv").write_text("text;of;all,label\na;b,c\n", encoding="utf-8")
    options = ReadOptions(text_column="text;of;all")
    assert [row[:3] for row in read_rows(tmp_path / "r.csv", options)] == [(2, "a;b", "c")]


def test_excels_line_about_the_separator_is_used(tmp_path):
    (tmp_path / "r.csv").write_text("sep=;\ntext;label\na, b;c\n", encoding="utf-8")
    assert [row[:3] for row in read_rows(tmp_path / "r.csv")] == [(3, "a, b", "c")]


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("r.csv", 'text,label\n"a\nb",1\nc\nd,2\n', "line 4: 1 column, but the header has 2"),
        (
            "r.tsv",
            "text\tlabel\na\tb\t1\n",
            "line 2: 3 columns, but the header has 2; put texts that contain tabs in quotes",
        ),
        (
            "r.csv",
            'text,label\na,1\n"b,2\nc,3\nd,4\n',
            "line 3: a quoted field starts in this row and is never closed",
        ),
        (
            "r.tsv",
            'text\tlabel\n"Great" film\t1\n',
            'line 2: a quote inside a quoted field must be doubled ("")',
        ),
        (
            "r.csv",
            'text,label\n"a" b,1\n',
            'line 2: a quote inside a quoted field must be doubled ("")',
        ),
        ("r.csv", "text,label\na,1\nb\0b,2\n", "line 3: contains a NUL byte"),
        ("r.csv", "text,label\na,1\n".encode("utf-16-le"), "line 1: contains a NUL byte"),
        ("r.csv", "sep=;\ntext,label\na,b\n", "line 2: no column 'text' in the header"),
        (
            "r.csv",
            "text,label,Text,text\na,b,c,d\n",
            "line 1: 2 columns 'text' in the header ('text', 'label', 'Text', 'text'); rename all",
        ),
        ("r.jsonl", '{"text": "a", "label": 1}\n{"text"', "line 2: not valid JSON (Expecting"),
        ("r.jsonl", "[" * 100_000, "line 1: not valid JSON (maximum recursion depth"),
        ("r.jsonl", "5", "line 1: expected a JSON object, found 5"),
        (
            "r.jsonl",
            '[{"text": "a", "label": 1}]',
            "line 1: a JSON list; write one object per line",
        ),
        ("r.jsonl", '[\n{"text": "a", "label": 1}\n]', "line 1: a JSON list; write one object per"),
        ("r.jsonl", '{"text": 5, "label": 1}', "line 1: the text must be a string, found 5"),
        (
            "r.jsonl",
            '{"text": "a", "label": 0.5}',
            "line 1: the label must be a string or a whole number, found 0.5",
        ),
        (
            "r.jsonl",
            '{"text": "a", "label": ["b"]}',
            "line 1: a list of labels; pass --multi-label",
        ),
        (
            "r.jsonl",
            r'{"text": "\ud83d", "label": 1}',
            "line 1: half a surrogate pair in 'text', not a character",
        ),
        ("r.txt", "__label__1 a\nb\n", "line 2: no __label__ at the start of the line"),
        (
            "r.txt",
            "text,label\na,1\n",
            "line 1: no __label__ at the start of the line; rename a table to .csv or .tsv",
        ),
        (
            "r.txt",
            "__label__1 a\n\n__label__1 __label__2 b\n",
            "line 3: several labels; put them at the start and pass --multi-label",
        ),
    ],
)
def test_a_bad_line_is_reported_with_its_number(message, name, content, expected):
    assert message(name, content).startswith(f"{name}, {expected}")


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(rows=st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=1), tab=st.booleans())
def test_whatever_the_csv_module_writes_is_read_back(tmp_path_factory, rows, tab):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter="\t" if tab else ",")
    writer.writerows([("text", "label"), *rows])
    path = tmp_path_factory.mktemp("rows") / ("r.tsv" if tab else "r.csv")
    path.write_bytes(buffer.getvalue().encode())
    assert [(row.text, row.label) for row in read_rows(path)] == rows
