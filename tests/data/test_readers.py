"""Reading labelled texts: every kind of file, every mistake a file can hold."""

import csv
import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.data.examples import Example
from fathomer.data.readers import Row, iterate_rows, read_examples
from fathomer.errors import DataError, FathomerError, MissingFileError

GOOD = [Example("It sang.", "good"), Example('a "dull", long\nevening', "bad")]
CSV = b'text,label\nIt sang.,good\n"a ""dull"", long\nevening",bad\n'


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the current folder, so that messages begin with its bare name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: bytes | str) -> Path:
        path = Path(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def message(path: Path, **options: str) -> str:
    """Return the one line that a user reads about a file that cannot be used."""
    with pytest.raises(FathomerError) as caught:
        read_examples(path, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_csv_with_quotes_commas_and_newlines_is_read(write):
    assert list(read_examples(write("r.csv", CSV))) == GOOD


def test_a_tsv_is_read(write):
    content = 'label\ttext\n good \tIt sang.\nbad\t"a ""dull"", long\nevening"\n'
    assert list(read_examples(write("r.tsv", content))) == GOOD


def test_json_lines_are_read(write):
    lines = [json.dumps({"id": 7, "text": e.text, "label": e.label}) for e in GOOD]
    assert list(read_examples(write("r.jsonl", "\n".join(lines)))) == GOOD


@pytest.mark.parametrize("name", ["r.txt", "r.ft", "r", "r.train"])
def test_fasttext_lines_are_read_by_their_suffix_or_their_first_line(write, name):
    path = write(name, "\n__label__good It sang.\n__label__bad\t two  spaces \r\n")
    assert list(read_examples(path)) == [
        Example("It sang.", "good"),
        Example(" two  spaces ", "bad"),
    ]


@pytest.mark.parametrize("name", ["r.csv.gz", "R.CSV.GZ"])
def test_a_packed_file_is_read_like_the_plain_one(write, name):
    assert list(read_examples(write(name, gzip.compress(CSV)))) == GOOD


def test_rows_are_streamed_with_the_line_at_which_they_begin(write):
    path = write("r.csv", CSV + b"last,good\n")
    assert list(iterate_rows(path)) == [
        Row(2, "It sang.", "good"),
        Row(3, 'a "dull", long\nevening', "bad"),
        Row(5, "last", "good"),
    ]


def test_rows_before_a_mistake_are_streamed(write):
    rows = iterate_rows(write("r.csv", "text,label\na,1\nb\n"))
    assert next(rows) == Row(2, "a", "1")
    with pytest.raises(DataError):
        next(rows)


def test_two_files_are_streamed_side_by_side_with_very_long_fields(write):
    long = "x" * 300_000
    content = f"text,label\na,1\n{long},2\n"
    first, second = iterate_rows(write("a.csv", content)), iterate_rows(write("b.csv", content))
    next(first), next(second)
    assert [len(row.text) for row in first] == [300_000]
    assert [len(row.text) for row in second] == [300_000]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.txt"])
def test_a_byte_order_mark_is_no_part_of_the_first_column(write, name):
    content = {
        "r.csv": "text,label\na,1\n",
        "r.jsonl": '{"text": "a", "label": 1}\n',
        "r.txt": "__label__1 a\n",
    }[name]
    assert list(read_examples(write(name, b"\xef\xbb\xbf" + content.encode()))) == [("a", "1")]


def test_columns_can_be_named_and_their_case_may_differ(write):
    path = write("r.csv", "id,Review, STARS\n1,a,5\n")
    assert list(read_examples(path, text_column="review", label_column="Stars")) == [("a", "5")]
    path = write("r.jsonl", '{"Review": "a", "STARS": 5}')
    assert list(read_examples(path, text_column="review", label_column="Stars")) == [("a", "5")]


def test_the_exact_column_wins_over_one_of_another_case(write):
    assert list(read_examples(write("r.csv", "Text,text,label\na,b,1\n"))) == [("b", "1")]


def test_rows_without_text_or_label_are_skipped_and_counted_and_blank_lines_are_no_rows(write):
    path = write("r.csv", "\ntext,label\na,1\n\n  \n ,1\nb,\nc, \n,\nd,2\n\n")
    examples = read_examples(path)
    assert list(examples) == [("a", "1"), ("d", "2")]
    assert examples.skipped == {"empty text": 1, "empty label": 3}
    lines = ['{"text": null, "label": 1}', "", '{"text": "a", "label": null}']
    path = write("r.jsonl", "\n".join([*lines, '{"text": "a", "label": 1}']))
    assert read_examples(path).skipped == {"empty text": 1, "empty label": 1}
    path = write("r.txt", "__label__1\n__label__ a\n\n__label__1 a\n")
    assert read_examples(path).skipped == {"empty text": 1, "empty label": 1}


def test_a_file_of_nothing_but_skipped_rows_is_an_error(write):
    assert message(write("r.csv", "text,label\na,\n")) == (
        "r.csv: no row has both a text and a label; 0 examples read, 1 skipped (1 empty label)"
    )


@pytest.mark.parametrize(
    ("label", "expected"),
    [('" a "', "a"), ("3", "3"), ("-1", "-1"), ("4.0", "4"), ("true", "true"), ("false", "false")],
)
def test_a_json_label_becomes_a_string(write, label, expected):
    path = write("r.jsonl", f'{{"text": "a", "label": {label}}}')
    assert [e.label for e in read_examples(path)] == [expected]


def test_another_encoding_is_read_when_it_is_named(write):
    path = write("r.csv", "text,label\ncafé,1\n".encode("latin-1"))
    assert list(read_examples(path, encoding="latin-1")) == [("café", "1")]
    path = write("r.csv", "text,label\ncafé,1\n".encode("utf-16"))
    assert list(read_examples(path, encoding="utf-16")) == [("café", "1")]


def test_a_file_that_is_not_there_is_named(write):
    with pytest.raises(MissingFileError, match=r"^reviews\.csv: no such file$"):
        read_examples(Path("reviews.csv"))
    assert message(Path("reviews")) == "reviews: no such file"


def test_a_folder_is_no_file(tmp_path):
    assert message(tmp_path) == f"{tmp_path}: a folder where a file was expected"


@pytest.mark.parametrize("name", ["r.csv", "r.tsv", "r.jsonl", "r.txt", "r"])
@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n \r\n"])
def test_an_empty_file_is_said_to_be_empty(write, name, content):
    assert message(write(name, content)) == f"{name}: the file is empty"


def test_a_header_alone_is_not_enough(write):
    assert message(write("r.csv", "text,label\n\n")) == "r.csv: no rows after the header"


def test_a_file_of_unknown_kind_is_answered_with_the_kinds(write):
    assert message(write("r.docx", "text,label\na,1\n")) == (
        "r.docx: not a kind of file that can be read; give .csv, .tsv, .jsonl, "
        "or fastText's __label__ lines in .txt or .ft, each also with .gz"
    )


def test_a_missing_column_is_answered_with_the_columns_found(write):
    hint = "name yours with --text-column and --label-column"
    header = f"{hint}, or add a header if there is none"
    assert message(write("r.csv", "text,stars\na,1\n")) == (
        f"r.csv, line 1: no column 'label' in the header ('text', 'stars'); {header}"
    )
    assert message(write("r.jsonl", '\n{"text": "a", "stars": 1}\n')) == (
        f"r.jsonl, line 2: no column 'label' in the object ('text', 'stars'); {hint}"
    )
    assert message(write("r.csv", "text,text,label\na,b,1\n")) == (
        "r.csv, line 1: 2 columns 'text' in the header ('text', 'text', 'label'); rename all but one"
    )


@pytest.mark.parametrize(
    ("name", "header", "advice"),
    [
        ("r.csv", "id;text;label", "semicolons: save it with commas, or with tabs as .tsv"),
        ("r.csv", "id|text|label", "bars: save it with commas, or with tabs as .tsv"),
        ("r.csv", "id\ttext\tlabel", "tabs: rename the file to .tsv"),
        ("r.tsv", "id,text,label", "commas: rename the file to .csv"),
    ],
)
def test_columns_that_are_separated_otherwise_are_recognised(write, name, header, advice):
    assert message(write(name, f"{header}\n1{header[2]}a{header[2]}b\n")) == (
        f"{name}, line 1: no column 'text' in the header ({header!r}); "
        f"its columns are separated by {advice}"
    )


@pytest.mark.parametrize(("mark", "name"), [(";", "semicolons"), ("\t", "tabs"), ("|", "bars")])
@pytest.mark.parametrize("bom", ["", "\ufeff"])
def test_so_are_columns_in_quotes(write, mark, name, bom):
    found = message(write("r.csv", f'{bom}"text"{mark}"label"\n"a"{mark}"b"\n'))
    assert found.startswith(f"r.csv, line 1: its columns are separated by {name}: ")


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        (
            "r.csv",
            'text,label\n"a\nb",1\nc\nd,2\n',
            "line 4: 1 column where the header has 2",
        ),
        (
            "r.tsv",
            "text\tlabel\na\tb\t1\n",
            "line 2: 3 columns where the header has 2; a text with tabs must stand in quotes",
        ),
        (
            "r.csv",
            'text,label\na,1\n"b,2\nc,3\nd,4\n',
            "line 3: a quoted field begins in this row and is never closed",
        ),
        (
            "r.tsv",
            'text\tlabel\n"Great" film\t1\n',
            'line 2: a quote inside a quoted field must be doubled ("")',
        ),
        (
            "r.csv",
            "text,label\na,1\nb\0b,2\n",
            "line 3: a NUL byte; if the file is UTF-16, say --encoding utf-16",
        ),
        ("r.jsonl", '{"text": "a", "label": 1}\n{"text"', "line 2: not valid JSON (Expecting"),
        ("r.jsonl", "[" * 100_000, "line 1: not valid JSON (maximum recursion depth"),
        ("r.jsonl", "5", "line 1: a JSON object was expected, found 5"),
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
        ("r.jsonl", '{"text": "a", "label": NaN}', "line 1: the label must be a string or a whole"),
        ("r.jsonl", '{"text": "a", "label": ["b"]}', "line 1: a list of labels; --multi-label"),
        (
            "r.jsonl",
            r'{"text": "\ud83d", "label": 1}',
            "line 1: half a surrogate pair in 'text', which is no character",
        ),
        (
            "r.csv",
            'text,label\n"a" b,1\n',
            'line 2: a quote inside a quoted field must be doubled ("")',
        ),
        ("r.csv", "sep=,\ntext,label\n", "line 1: 'sep=,' is for Excel alone; delete this line"),
        (
            "r.csv",
            "text,label,Text,text\na,b,c,d\n",
            "line 1: 2 columns 'text' in the header ('text', 'label', 'Text', 'text'); rename all",
        ),
        ("r.txt", "__label__1 a\nb\n", "line 2: no __label__ at the start of the line"),
        (
            "r.txt",
            "text,label\na,1\n",
            "line 1: no __label__ at the start of the line; a table must be called .csv or .tsv",
        ),
        (
            "r.txt",
            "__label__1 a\n\n__label__1 __label__2 b\n",
            "line 3: several labels; --multi-label reads them",
        ),
    ],
)
def test_a_bad_line_is_named_with_its_number(write, name, content, expected):
    assert message(write(name, content)).startswith(f"{name}, {expected}")


def test_a_byte_that_is_not_utf8_is_named_with_its_line(write):
    rows = b"".join(b'"two\nlines \xc3\xa9",1\n' for _ in range(5000))
    path = write("reviews.csv", b"text,label\n" + rows + b"caf\xe9,1\n" + rows)
    assert message(path) == (
        "reviews.csv, line 10002: not UTF-8 (byte 0xe9); "
        "if you know the encoding, say so, e.g. --encoding cp1252"
    )
    assert message(write("r.csv", "text,label\na,1\n".encode("utf-16-le"))).startswith(
        "r.csv, line 1: a NUL byte"
    )
    assert message(write("r.csv", "text,label\na,1\n".encode("utf-16"))) == (
        "r.csv, line 1: not UTF-8 (byte 0xff); "
        "if you know the encoding, say so, e.g. --encoding utf-16"
    )


@pytest.mark.parametrize("encoding", ["latin-99", "hex", "undefined"])
def test_an_encoding_that_is_none_is_refused(write, encoding):
    assert message(write("r.csv", CSV), encoding=encoding) == (
        f"r.csv: unknown encoding '{encoding}'; try utf-8, utf-16, latin-1 or cp1252"
    )


def test_the_wrong_encoding_is_reported_without_a_traceback(write):
    path = write("r.csv", "text,label\na,1\n".encode("utf-16") + b"x")
    assert message(path, encoding="utf-16") == "r.csv: not UTF-16; --encoding says which it is"


PACKED = gzip.compress(CSV * 99, mtime=0)


@pytest.mark.parametrize(
    "content",
    [CSV, PACKED[:-20], PACKED[:10] + b"\xff" * 90],
    ids=["not packed", "cut off", "overwritten"],
)
def test_a_damaged_packed_file_is_reported(write, content):
    path = write("r.csv.gz", content)
    assert message(path) == "r.csv.gz: a damaged or incomplete gzip file"


TEXTS = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), min_size=1)


@given(rows=st.lists(st.tuples(TEXTS, st.sampled_from("ab")), min_size=1), tab=st.booleans())
def test_whatever_the_csv_module_writes_is_read_back(tmp_path_factory, rows, tab):
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, delimiter="\t" if tab else ",")
    writer.writerows([("text", "label"), *rows])
    path = tmp_path_factory.mktemp("rows") / ("r.tsv" if tab else "r.csv")
    path.write_bytes(buffer.getvalue().encode())
    assert [(row.text, row.label) for row in iterate_rows(path)] == rows
