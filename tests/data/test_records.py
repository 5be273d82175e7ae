"""Records as they stand in the file, and plain lines."""

import gzip
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer.data.records import (
    Record,
    Source,
    arriving_records,
    count_lines,
    iterate_records,
)
from fathomer.errors import DataError


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Write a file into the current folder and read its records, of which only texts are wanted."""
    monkeypatch.chdir(tmp_path)

    def read_file(name, content, **options):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        settings = {"text_column": "text", "label_column": None, "encoding": "utf-8", **options}
        return list(iterate_records(Source(path.relative_to(tmp_path), **settings)))

    return read_file


def test_a_record_keeps_all_cells_as_they_are_even_under_equal_names(read):
    assert read("r.csv", 'id,Text,id\n 1 ,"a\r\nb",\n') == [
        Record(2, "a\r\nb", None, ["id", "Text", "id"], [" 1 ", "a\r\nb", ""])
    ]


def test_a_record_keeps_all_values_of_an_object(read):
    [record] = read("r.jsonl", '{"n": [1, null], "text": null}\n')
    assert record == Record(1, "", None, ["n", "text"], [[1, None], None])


def test_plain_lines_end_at_newlines_only_and_may_be_blank(read):
    content = "text,label\r\n\n a\rb\x85\0 \nlast"
    expected = ["text,label", "", " a\rb\x85\0 ", "last"]
    for name, stored in (("r.txt", content.encode()), ("r.gz", gzip.compress(content.encode()))):
        records = read(name, stored)
        assert [record.text for record in records] == expected
        assert [record.line for record in records] == [1, 2, 3, 4]


def test_an_empty_plain_file_has_no_lines_and_an_empty_table_is_an_error(read):
    assert read("r.txt", "") == []
    with pytest.raises(DataError, match=r"^r\.csv: the file is empty$"):
        read("r.csv", "")


def test_without_labels_only_the_option_for_texts_is_named(read):
    with pytest.raises(
        DataError, match=r"line 1: no column 'text'.*with --text-column, or add a header"
    ):
        read("r.csv", "a,b\n1,2\n")


def test_a_plain_line_that_cannot_be_decoded_is_named(read):
    with pytest.raises(DataError, match=r"^r\.txt, line 3: not UTF-8 \(byte 0xe9\); "):
        read("r.txt", b"a\n\ncaf\xe9\n")
    assert read("r.txt", b"caf\xe9\n", encoding="latin-1")[0].text == "café"


class Pipe(io.RawIOBase):
    """Give pieces as they were written."""

    def __init__(self, pieces):
        self.pieces = [*pieces, b""]

    def readable(self):
        return True

    def readinto(self, room):
        piece = self.pieces.pop(0)
        room[: len(piece)] = piece
        return len(piece)


@given(lines=st.lists(st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"]))))
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_lines_arrive_whole_however_they_are_cut(lines, encoding):
    content = "".join(f"{line}\r\n" for line in lines).encode(encoding)
    pieces = [content[i : i + 3] for i in range(0, len(content), 3)]
    arrived = arriving_records(io.BufferedReader(Pipe(pieces)), encoding)
    records = [record for some in arrived for record in some]
    assert [record.text for record in records] == ([*lines] if content else [])
    assert [record.line for record in records] == list(range(1, len(lines) + 1))


def test_lines_that_arrive_together_are_given_together():
    pieces = [b"a\nb\nc", b"d", b"\n", b"e\xff"]
    arrived = arriving_records(io.BufferedReader(Pipe(pieces)), "utf-8")
    assert [[record.text for record in some] for some in arrived] == [
        ["a", "b"],
        ["cd"],
        ["e\ufffd"],
    ]


def test_lines_are_counted_where_that_is_cheap(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"a\n" * 700_000)
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a\n"))
    assert count_lines(tmp_path / "a.csv") == 700_000
    assert count_lines(tmp_path / "a.csv.gz") is count_lines(tmp_path / "-") is None
