"""Files as Arrow tables: which files a pattern names, and whether they fit together."""

import gzip

import pytest

from fathomer.data.file_store import folder_of
from fathomer.data.tables import find_tables
from fathomer.errors import DataError, MissingFileError

pyarrow = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
parquet = pytest.importorskip("pyarrow.parquet")


@pytest.fixture
def work(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def write(name, **columns):
    parquet.write_table(pyarrow.table(columns), name)


def test_a_pattern_a_folder_and_a_url_name_the_same_files(work):
    for name in ("b.parquet", "a.parquet", "_notes.parquet"):
        write(name, text=["x"])
    named = ["a.parquet", "b.parquet"]
    for pattern in ("*.parquet", ".", "[ab].parquet", f"file://{work}/*.parquet"):
        assert list(find_tables(pattern, "text").files) == named
    assert list(find_tables(f"file://{work}/a.parquet", "text").files) == ["a.parquet"]


def test_files_of_subfolders_keep_their_names_apart(work):
    for folder in ("one", "two"):
        (work / folder).mkdir()
        write(f"{folder}/a.parquet", text=["x"])
    assert list(find_tables("*/a.parquet", "text").files) == ["one-a.parquet", "two-a.parquet"]


def test_files_that_cannot_be_answered_together_are_one_clear_error(work):
    write("a.parquet", text=["x"], id=[1])
    write("b.parquet", text=["x"], id=["1"])
    with pytest.raises(
        DataError, match=r"other columns than .*a.parquet \(id: int64; id: string\)"
    ):
        find_tables("*.parquet", "text")
    write("b.parquet", body=["x"], id=[1])
    with pytest.raises(DataError, match=r"b.parquet: no column 'text'; the columns are body, id"):
        find_tables("*.parquet", "text")
    with pytest.raises(MissingFileError, match=r"none\*: no such file"):
        find_tables("none*", "text")
    (work / "c.xlsx").write_bytes(b"")
    with pytest.raises(DataError, match=r"c.xlsx: not a .csv, .tsv, .jsonl or .parquet file"):
        find_tables("c.xlsx", "text")
    (work / "empty.csv").write_bytes(b"")
    with pytest.raises(DataError, match=r"empty.csv: the file is empty"):
        find_tables("empty.csv", "text")
    (work / "d.parquet").write_bytes(b"PAR1")
    with pytest.raises(DataError, match=r"d.parquet: cannot be read"):
        find_tables("d.parquet", "text")


def test_the_first_line_of_a_jsonl_file_may_lack_the_text(work):
    (work / "a.jsonl").write_text('{"n": 1}\n{broken\n{"text": "x", "n": 2}\n', encoding="utf-8")
    assert find_tables("a.jsonl", "text").names == ["n", "text"]


def test_chunks_have_a_fixed_size_and_compressed_files_are_read(work):
    with gzip.open("a.csv.gz", "wt", encoding="latin-1") as file:
        file.write("text,n\n" + "".join(f"é,{n}\n" for n in range(25)))
    tables = find_tables("a.csv.gz", "text", "latin-1")
    chunks = list(tables.read(tables.files["a.csv.gz.parquet"], rows=10))
    assert [len(table) for table, _ in chunks] == [10, 10, 5]
    assert chunks[2][0].to_pylist()[-1] == {"text": "é", "n": "24"}


def test_a_file_appears_only_when_it_is_complete(work):
    folder, table = folder_of("out"), pyarrow.table({"text": ["x"]})

    def broken():
        yield table
        raise OSError("full")

    with pytest.raises(OSError, match="full"):
        folder.write_tables("a.parquet", table.schema, broken())
    assert not folder.exists("a.parquet")
    folder.write_tables("a.parquet", table.schema, [table, table])
    assert folder.read_table("a.parquet").num_rows == 2
    folder.delete("a.parquet")
    folder.delete("a.parquet")
    assert not folder.exists("a.parquet")


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_separators_are_recognised_by_the_header_as_in_other_commands(work, delimiter):
    (work / "a.csv").write_text(f"\ntext{delimiter}n\na, b{delimiter}1\n \nc{delimiter}2\n")
    tables = find_tables("a.csv", "text")
    assert tables.names == ["text", "n"]
    [(table, errors)] = tables.read(tables.files["a.csv.parquet"], rows=10)
    assert table.to_pydict() == {"text": ["a, b", "c"], "n": ["1", "2"]}
    assert errors == [None, None]
