"""Reading texts and labels from every kind of file."""

import gzip
import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.data.examples import Example
from fathomer.data.reading import ReadOptions, Row, read_examples, read_rows, read_stream
from fathomer.errors import DataError, FathomerError

GOOD = [Example("It sang.", "good"), Example('a "dull", long\nevening', "bad")]
CSV = b'text,label\nIt sang.,good\n"a ""dull"", long\nevening",bad\n'
REVIEWS = ReadOptions(text_column="review", label_column="Stars")
UNLABELLED = ReadOptions(label_column=None)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the current folder, so that messages start with its bare name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: bytes | str) -> Path:
        path = Path(name)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write_file


def message(path: Path) -> str:
    """Return the one-line error about a file that cannot be used."""
    with pytest.raises(FathomerError) as caught:
        read_examples(path)
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
def test_fasttext_lines_are_recognised_by_suffix_or_first_line(write, name):
    path = write(name, "\n__label__good It sang.\n__label__bad\t two  spaces \r\n")
    assert list(read_examples(path)) == [
        Example("It sang.", "good"),
        Example(" two  spaces ", "bad"),
    ]


def test_an_unsupported_file_is_reported_with_the_supported_formats(write):
    assert message(write("r.docx", "text,label\na,1\n")) == (
        "r.docx: unsupported file format; use .csv, .tsv, .jsonl, "
        "or fastText's __label__ lines in .txt or .ft, each also with .gz; .xlsx or .parquet"
    )
    assert message(Path("reviews")) == "reviews: no such file"


@pytest.mark.parametrize("name", ["r.csv.gz", "R.CSV.GZ"])
def test_a_compressed_file_is_read_like_the_plain_one(write, name):
    assert list(read_examples(write(name, gzip.compress(CSV)))) == GOOD


def test_rows_are_streamed_with_the_line_on_which_they_start(write):
    rows = list(read_rows(write("r.csv", CSV + b"last,good\n")))
    assert [row[:3] for row in rows] == [
        (2, "It sang.", "good"),
        (3, 'a "dull", long\nevening', "bad"),
        (5, "last", "good"),
    ]


def test_rows_before_a_mistake_are_streamed(write):
    rows = read_rows(write("r.csv", "text,label\na,1\nb\n"))
    assert next(rows)[:3] == (2, "a", "1")
    with pytest.raises(DataError):
        next(rows)


def test_two_files_with_very_long_fields_are_streamed_side_by_side(write):
    long = "x" * 300_000
    content = f"text,label\na,1\n{long},2\n"
    first, second = read_rows(write("a.csv", content)), read_rows(write("b.csv", content))
    next(first), next(second)
    assert [len(row.text) for row in first] == [300_000]
    assert [len(row.text) for row in second] == [300_000]


@pytest.mark.parametrize("name", ["r.csv", "r.jsonl", "r.txt"])
def test_a_byte_order_mark_is_not_part_of_the_first_column(write, name):
    content = {
        "r.csv": "text,label\na,1\n",
        "r.jsonl": '{"text": "a", "label": 1}\n',
        "r.txt": "__label__1 a\n",
    }[name]
    assert list(read_examples(write(name, b"\xef\xbb\xbf" + content.encode()))) == [("a", "1")]


def test_columns_can_be_named_and_their_case_may_differ(write):
    path = write("r.csv", "id,Review, STARS\n1,a,5\n")
    assert list(read_examples(path, REVIEWS)) == [("a", "5")]
    path = write("r.jsonl", '{"Review": "a", "STARS": 5}')
    assert list(read_examples(path, REVIEWS)) == [("a", "5")]


def test_an_exact_column_name_is_preferred_to_one_in_another_case(write):
    assert list(read_examples(write("r.csv", "Text,text,label\na,b,1\n"))) == [("b", "1")]


def test_rows_without_text_or_label_are_skipped_and_counted_and_blank_lines_are_not_rows(write):
    path = write("r.csv", "\ntext,label\na,1\n\n  \n ,1\nb,\nc, \n,\nd,2\n\n")
    examples = read_examples(path)
    assert list(examples) == [("a", "1"), ("d", "2")]
    assert examples.skipped == {"empty text": 1, "empty label": 3}
    lines = ['{"text": null, "label": 1}', "", '{"text": "a", "label": null}']
    path = write("r.jsonl", "\n".join([*lines, '{"text": "a", "label": 1}']))
    assert read_examples(path).skipped == {"empty text": 1, "empty label": 1}
    path = write("r.txt", "__label__1\n__label__ a\n\n__label__1 a\n")
    assert read_examples(path).skipped == {"empty text": 1, "empty label": 1}


@pytest.mark.parametrize("label", ["NaN", "nan", "null", "<NA>", "#N/A"])
def test_a_label_that_stands_for_none_is_left_out_and_counted(write, label):
    found = read_examples(write("r.csv", f"text,label\na,1\nb,{label}\nc,{label}\n"))
    assert (list(found), found.skipped) == ([("a", "1")], {"missing label": 2})


def test_a_json_label_that_is_not_a_number_is_left_out_and_counted(write):
    lines = '{"text": "a", "label": 1.0}\n{"text": "b", "label": NaN}\n'
    found = read_examples(write("r.jsonl", lines))
    assert (list(found), found.skipped) == ([("a", "1")], {"missing label": 1})


def test_a_file_with_only_skipped_rows_is_an_error(write):
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


@pytest.mark.parametrize("encoding", ["latin-1", "utf-16"])
def test_another_encoding_is_read_when_it_is_named(write, encoding):
    path = write("r.csv", "text,label\ncafé,1\n".encode(encoding))
    assert list(read_examples(path, ReadOptions(encoding=encoding))) == [("café", "1")]


def test_a_row_keeps_all_cells_as_they_are_even_under_equal_names(write):
    path = write("r.csv", 'id,Text,id\n 1 ,"a\r\nb",\n')
    assert list(read_rows(path, UNLABELLED)) == [
        Row(2, "a\r\nb", "", ["id", "Text", "id"], [" 1 ", "a\r\nb", ""])
    ]


def test_a_row_keeps_all_values_of_an_object(write):
    [row] = read_rows(write("r.jsonl", '{"n": [1, null], "text": null}\n'), UNLABELLED)
    assert row == Row(1, "", "", ["n", "text"], [[1, None], None])


def test_without_labels_a_file_that_is_not_a_table_has_one_text_per_line(write):
    content = "text,label\r\n\n a\rb\x85\0 \nlast"
    expected = ["text,label", "", " a\rb\x85\0 ", "last"]
    for name, stored in (("r.txt", content.encode()), ("r.gz", gzip.compress(content.encode()))):
        rows = list(read_rows(write(name, stored), UNLABELLED))
        assert [row.text for row in rows] == expected
        assert [row.line for row in rows] == [1, 2, 3, 4]


def test_without_labels_an_empty_file_has_no_lines_but_an_empty_table_is_an_error(write):
    assert list(read_rows(write("r.txt", ""), UNLABELLED)) == []
    with pytest.raises(DataError, match=r"^r\.csv: the file is empty$"):
        list(read_rows(write("r.csv", ""), UNLABELLED))


def test_a_plain_line_that_cannot_be_decoded_is_named(write):
    path = write("r.txt", b"a\n\ncaf\xe9\n")
    with pytest.raises(DataError, match=r"^r\.txt, line 3: not UTF-8 \(byte 0xe9\); "):
        list(read_rows(path, UNLABELLED))
    options = ReadOptions(label_column=None, encoding="latin-1")
    assert [row.text for row in read_rows(path, options)] == ["a", "", "café"]


class Pipe(io.RawIOBase):
    """A stream that returns blocks as they were written."""

    def __init__(self, blocks):
        self.blocks = [*blocks, b""]

    def readable(self):
        return True

    def readinto(self, room):
        block = self.blocks.pop(0)
        room[: len(block)] = block
        return len(block)


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_lines_of_a_stream_arrive_whole_however_they_are_cut(lines, encoding):
    content = "".join(f"{line}\r\n" for line in lines).encode(encoding)
    blocks = [content[i : i + 3] for i in range(0, len(content), 3)]
    groups = read_stream(io.BufferedReader(Pipe(blocks)), encoding)
    rows = [row for group in groups for row in group]
    assert [row.text for row in rows] == ([*lines] if content else [])
    assert [row.line for row in rows] == list(range(1, len(lines) + 1))


def test_lines_that_arrive_together_are_returned_together():
    blocks = [b"a\nb\nc", b"d", b"\n", b"e\xff"]
    groups = read_stream(io.BufferedReader(Pipe(blocks)), "utf-8")
    assert [[row.text for row in group] for group in groups] == [["a", "b"], ["cd"], ["e\ufffd"]]
