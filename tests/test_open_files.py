"""Opening files: compressed or not, in any encoding, with one line for every problem."""

import gzip
from pathlib import Path

import pytest

from fathomer.errors import DataError, FathomerError, MissingFileError, VectorsError
from fathomer.open_files import codec_of, count_lines, guess_encoding, open_bytes, open_lines

TEXT = "naïve\r\n\n last"
COMPRESSED = gzip.compress(b"text,label\na,1\n" * 99, mtime=0)


@pytest.fixture(autouse=True)
def _in_folder(tmp_path, monkeypatch):
    """Work in an empty folder, so that messages start with the bare name of a file."""
    monkeypatch.chdir(tmp_path)


def write(name: str, content: bytes) -> Path:
    Path(name).write_bytes(content)
    return Path(name)


def lines_of(path: Path, encoding: str = "utf-8", **options) -> list[str]:
    with open_lines(path, encoding, **options) as lines:
        return list(lines)


def message(path: Path, encoding: str = "utf-8", **options) -> str:
    with pytest.raises(FathomerError) as caught:
        lines_of(path, encoding, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", ["t.txt.gz", "T.TXT.GZ"])
def test_a_compressed_file_reads_like_the_plain_one(name):
    plain, packed = write("t.txt", TEXT.encode()), write(name, gzip.compress(TEXT.encode()))
    assert lines_of(plain) == lines_of(packed) == ["naïve\r\n", "\n", " last"]
    with open_bytes(packed) as content:
        assert content.read() == TEXT.encode()


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "utf-8-sig", "utf-16", "cp1252"])
def test_a_byte_order_mark_is_not_part_of_the_text(encoding):
    written = (
        "utf-8-sig" if encoding.lower().startswith("utf8") or encoding == "utf-8" else encoding
    )
    assert lines_of(write("t.txt", TEXT.encode(written)), encoding)[0] == "naïve\r\n"


def test_plain_lines_end_at_newlines_only_and_may_contain_nul():
    path = write("t.txt", b"a\rb\x0cc\0\nd")
    assert lines_of(path, plain=True) == ["a\rb\x0cc\0\n", "d"]
    assert message(path) == (
        "t.txt, line 2: contains a NUL byte; if the file is UTF-16, pass --encoding utf-16"
    )


def test_an_undecodable_byte_is_reported_with_its_line():
    rows = b"".join(b"two\nlines \xc3\xa9\n" for _ in range(5000))
    assert message(write("t.txt", rows + b"caf\xe9\n" + rows)) == (
        "t.txt, line 10001: not UTF-8 (byte 0xe9); "
        "pass the right encoding, for example --encoding cp1252"
    )
    assert message(write("t.txt", "a".encode("utf-16"))) == (
        "t.txt, line 1: not UTF-8 (byte 0xff); "
        "pass the right encoding, for example --encoding utf-16"
    )


def test_a_wrong_multi_byte_encoding_is_reported_without_a_traceback():
    path = write("t.txt", "text".encode("utf-16") + b"x")
    assert message(path, "utf-16") == ("t.txt: not UTF-16; pass the right encoding with --encoding")


@pytest.mark.parametrize("encoding", ["latin-99", "hex", "undefined"])
def test_an_unknown_encoding_is_rejected(encoding):
    with pytest.raises(DataError) as caught:
        codec_of(encoding)
    assert str(caught.value) == (
        f"unknown encoding '{encoding}'; try utf-8, utf-16, latin-1 or cp1252"
    )


def test_a_missing_file_is_named():
    with pytest.raises(MissingFileError, match=r"^reviews\.csv: no such file$"):
        lines_of(Path("reviews.csv"))


def test_a_folder_is_not_a_file(tmp_path):
    assert message(tmp_path) == f"{tmp_path}: expected a file, found a folder"


@pytest.mark.parametrize(
    "content",
    [b"text,label\n", COMPRESSED[:-20], COMPRESSED[:10] + b"\xff" * 90],
    ids=["not compressed", "cut off", "overwritten"],
)
def test_a_damaged_compressed_file_is_reported(content):
    path = write("t.csv.gz", content)
    assert message(path) == "t.csv.gz: the compressed file is damaged or incomplete"


def test_the_caller_chooses_the_kind_of_error():
    path = write("t.bin.gz", b"no")
    with pytest.raises(VectorsError), open_bytes(path, error=VectorsError) as content:
        content.read()


def test_encodings_are_guessed_from_all_bytes():
    for content, expected in (
        (b"", "utf-8"),
        (b"plain", "utf-8"),
        ("é".encode() * 700_000, "utf-8"),
        (b"x" * 3_000_000 + b"\xe9", "cp1252"),
        (b"x" * 3_000_000 + b"\xc3", "cp1252"),
        (b"\xe9\x81", "latin-1"),
        ("é".encode("utf-16"), "utf-16"),
    ):
        assert guess_encoding(write("t.txt", content)) == expected
        assert guess_encoding(write("t.txt.gz", gzip.compress(content))) == expected
    assert guess_encoding(Path("no.txt")) == guess_encoding(write("t.gz", b"no")) == "utf-8"


def test_lines_are_counted_where_that_is_cheap():
    assert count_lines(write("a.csv", b"a\n" * 700_000)) == 700_000
    assert count_lines(write("a.csv.gz", gzip.compress(b"a\n"))) is count_lines(Path("-")) is None
