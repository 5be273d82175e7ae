"""Word vectors: the same numbers from every format, and a one-line error for every damage."""

import gzip
import io
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from fathomer.errors import FathomerError, MissingFileError, VectorsError
from fathomer.text.vectors import read_vectors
from tests.data.real import real_folder

SIZE = 5
NUMBERS = [str(number) for number in range(900, 990)]
WORDS = ["the", ",", "5", "naïve", "new\u00a0york", "next\u0085line", "🎬", *NUMBERS]
MATRIX = np.random.default_rng(0).normal(size=(len(WORDS), SIZE)).astype(np.float32)


def as_text(words=WORDS, matrix=MATRIX, *, end="\n") -> bytes:
    rows = zip(words, matrix, strict=True)
    return "".join(f"{w} {' '.join(str(float(x)) for x in row)}{end}" for w, row in rows).encode()


def as_binary(words=WORDS, matrix=MATRIX, *, end=b"\n") -> bytes:
    rows = zip(words, matrix, strict=True)
    packed = [word.encode() + b" " + struct.pack(f"<{SIZE}f", *row) + end for word, row in rows]
    return f"{len(words)} {matrix.shape[1]}\n".encode() + b"".join(packed)


def as_zip(**members: bytes) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__MACOSX_", "__MACOSX/"), content)
    return buffer.getvalue()


HEADER = f"{len(WORDS)} {SIZE}\n".encode()
FORMATS = {
    "v.txt": as_text(),
    "v.txt.gz": gzip.compress(as_text()),
    "v.zip": as_zip(**{"v.txt": as_text(), "readme.md": b"", "__MACOSX_v.txt": b""}),
    "v.vec": HEADER + as_text(end=" \n"),
    "v.vec.zip": as_zip(**{"v.vec": HEADER + as_text()}),
    "v.bin": as_binary(),
    "v.bin.gz": gzip.compress(as_binary(end=b"")),
    "V.TXT": b"\xef\xbb\xbf" + as_text(end="\r\n") + b"\n",
}


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Write a file into the current folder, so that messages start with its bare name."""
    monkeypatch.chdir(tmp_path)

    def write_file(name: str, content: bytes) -> Path:
        Path(name).write_bytes(content)
        return Path(name)

    return write_file


def message(path: Path, *needed: str) -> str:
    """Return the one-line error about a file that cannot be used."""
    with pytest.raises(FathomerError) as caught:
        read_vectors(path, needed=needed or WORDS)
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize("name", FORMATS)
def test_every_format_gives_the_same_words_and_numbers(write, name):
    vectors = read_vectors(write(name, FORMATS[name]), needed=set(WORDS))
    assert vectors.words == WORDS
    assert vectors.size == SIZE
    assert vectors.matrix.dtype == np.float32
    np.testing.assert_array_equal(vectors.matrix, MATRIX)


@pytest.mark.parametrize("name", FORMATS)
def test_needed_words_and_the_first_ones_are_kept_in_the_order_of_the_file(write, name):
    path = write(name, FORMATS[name])
    vectors = read_vectors(path, needed={"905", "🎬", "absent", "\ud800"}, also_first=2)
    assert vectors.words == ["the", ",", "🎬", "905"]
    np.testing.assert_array_equal(vectors.matrix, MATRIX[[WORDS.index(w) for w in vectors.words]])


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_without_needed_words_the_matrix_is_empty_but_has_its_width(write, name):
    vectors = read_vectors(write(name, FORMATS[name]), needed=[])
    assert vectors.words == []
    assert vectors.matrix.shape == (0, SIZE)


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_three_hundred_words_are_found_among_many(write, name):
    words = [f"w{i}" for i in range(60_000)]  # more than two blocks of the binary reader
    matrix = np.arange(len(words) * SIZE, dtype=np.float32).reshape(-1, SIZE)
    content = as_text(words, matrix) if name == "v.txt" else as_binary(words, matrix)
    vectors = read_vectors(write(name, content), needed=set(words[7::200]))
    assert vectors.words == words[7::200]
    np.testing.assert_array_equal(vectors.matrix, matrix[7::200])


@pytest.mark.parametrize("name", ["v.txt", "v.bin"])
def test_the_first_vector_of_a_repeated_word_is_used(write, name):
    words, matrix = ["a", "b", "a"], MATRIX[:3]
    content = as_text(words, matrix) if name == "v.txt" else as_binary(words, matrix)
    vectors = read_vectors(write(name, content), needed={"a"}, also_first=3)
    assert vectors.words == ["a", "b"]
    np.testing.assert_array_equal(vectors.matrix, matrix[:2])


@pytest.mark.parametrize("first", ["the", ". . .", "66 Route", "at name@domain.com"])
def test_a_word_may_contain_spaces(write, first):
    words = [first, "a", "b", ". . .", "at name@domain.com"]
    vectors = read_vectors(write("v.txt", as_text(words, MATRIX[:5])), needed=words)
    assert vectors.words == list(dict.fromkeys(words))
    np.testing.assert_array_equal(vectors.matrix[1:3], MATRIX[1:3])
    np.testing.assert_array_equal(vectors.matrix[0], MATRIX[0])


def test_a_word_that_is_not_utf8_is_skipped(write):
    bad = b"caf\xe9 1 2 3 4 5\n"
    vectors = read_vectors(write("v.txt", bad + as_text()), needed={"the"}, also_first=2)
    assert vectors.words == ["the"]
    content = as_binary(["cafe", "the"], MATRIX[:2]).replace(b"cafe", b"caf\xe9")
    vectors = read_vectors(write("v.bin", content), needed={"the"}, also_first=2)
    assert vectors.words == ["the"]


def replace_line(number: int, line: bytes) -> bytes:
    lines = as_text().split(b"\n")
    lines[number - 1] = line
    return b"\n".join(lines)


@pytest.mark.parametrize("number", [1, 2, 17, len(WORDS)])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"the 1 2 3 4", "expected 5 numbers, found 4"),
        (b"the 1 2 3 4 5 6", "expected 5 numbers, found 6"),
        (b"Route 66 1 2 3 4 5", "expected 5 numbers, found 6"),
        (b"the  1 2 3  4 5", "expected 5 numbers, found 2"),
        (b". . . 1 2 3 4", "expected 5 numbers, found 4"),
        (b"the", "expected 5 numbers, found 0"),
    ],
)
def test_a_vector_of_another_length_is_an_error_needed_or_not(write, number, line, problem):
    path = write("glove.txt", replace_line(number, line))
    assert message(path, "no such word") == f"glove.txt, line {number}: {problem}"


@pytest.mark.parametrize("number", [1, 17])
@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (b"odd 1 2 x 4 5", "'x' is not a number"),
        (b"odd 1 2 \xff 4 5", "'\N{REPLACEMENT CHARACTER}' is not a number"),
        (b"odd 1 2 nan 4 5", "a number is not finite"),
        (b"odd 1 2 3 4 -inf", "a number is not finite"),
        (b"odd 1 2 3 4 1e39", "a number is not finite"),
    ],
)
def test_a_field_that_is_not_a_finite_number_is_reported_with_its_line(
    write, number, line, problem
):
    path = write("glove.txt", replace_line(number, line))
    assert message(path, "odd") == f"glove.txt, line {number}: {problem}"


def test_line_numbers_include_the_header(write):
    path = write("v.vec", b"2 5\nthe 1 2 3 4 5\nodd 1 2 3 4\n")
    assert message(path) == "v.vec, line 3: expected 5 numbers, found 4"


def test_a_binary_number_that_is_not_finite_is_reported_with_its_word(write):
    matrix = MATRIX[:3].copy()
    matrix[1, 2] = np.inf
    path = write("v.bin", as_binary(["a", "b", "c"], matrix))
    assert message(path, "b") == "v.bin, word 2: a number is not finite"


def test_a_missing_file_and_a_folder_are_errors(write, tmp_path):
    with pytest.raises(MissingFileError, match=r"^glove\.txt: no such file$"):
        read_vectors(Path("glove.txt"), needed=[])
    assert message(tmp_path) == f"{tmp_path}: expected a file, found a folder"


def test_an_unsupported_file_is_reported_with_the_supported_formats(write):
    assert message(write("v.npy", b"x")) == (
        "v.npy: unsupported file format; use GloVe .txt, fastText .vec or "
        "word2vec .bin, each also with .gz, a .zip of one .txt, "
        "or .safetensors from fathomer vectors"
    )


@pytest.mark.parametrize("name", ["v.txt", "v.txt.gz", "v.vec", "v.zip", "v.bin", "v.bin.gz"])
def test_an_empty_file_is_reported_as_empty(write, name):
    assert message(write(name, b"")) == f"{name}: the file is empty"


def test_an_empty_file_inside_an_archive_is_reported_as_empty(write):
    assert message(write("v.txt.gz", gzip.compress(b""))) == "v.txt.gz: the file is empty"
    assert message(write("v.zip", as_zip(**{"v.txt": b""}))) == "v.zip: the file is empty"


@pytest.mark.parametrize("content", [b"\n\n", b"hello\nworld\n", b"\x00\xff" * 50])
def test_a_file_without_any_vector_is_an_error(write, content):
    assert message(write("v.txt", content)) == ("v.txt, line 1: expected a word and its numbers")


def test_prose_is_not_read_as_vectors(write):
    assert message(write("v.txt", b"I gave it a 5\nIt was good\n")) == (
        "v.txt, line 2: expected 1 numbers, found 0"
    )


@pytest.mark.parametrize(
    "content", [as_text(), gzip.compress(as_text(), mtime=0)[:-300]], ids=["not packed", "cut off"]
)
def test_a_damaged_gzip_file_is_reported(write, content):
    problem = "the compressed file is damaged or incomplete"
    assert message(write("v.txt.gz", content)) == f"v.txt.gz: {problem}"
    assert message(write("v.bin.gz", content)) == f"v.bin.gz: {problem}"


def test_a_damaged_zip_file_is_reported(write):
    path = write("v.zip", as_text())
    assert message(path) == "v.zip: not a readable zip file (File is not a zip file)"
    assert message(write("v.zip", FORMATS["v.zip"][:-50])).startswith(
        "v.zip: not a readable zip file"
    )
    content = bytearray(FORMATS["v.zip"])
    content[200:220] = bytes(20)  # inside the packed text
    assert message(write("v.zip", bytes(content))).startswith("v.zip: ")


def test_a_zip_file_must_contain_one_text_file(write):
    path = write("glove.zip", as_zip(**{"a.50d.txt": as_text(), "a.100d.txt": as_text()}))
    assert message(path) == (
        "glove.zip: expected one .txt file inside, found a.50d.txt, a.100d.txt; "
        "unpack the file you want"
    )
    assert message(write("glove.zip", as_zip())) == (
        "glove.zip: expected one .txt file inside, found nothing; unpack the file you want"
    )


@pytest.mark.parametrize(
    "content", [as_text(), b"\xba\x16\x4f\x2f\x0c\0\0\0", b"3 0\n", b"3 99999999\n", b"x" * 500]
)
def test_a_binary_file_without_a_header_is_reported(write, content):
    assert message(write("v.bin", content)) == (
        "v.bin: no word2vec header (count and size) at the start; "
        "for a fastText model, use its .vec file instead"
    )


def test_a_file_with_fewer_words_than_its_header_says_is_reported(write):
    problem = f"incomplete; the header says {len(WORDS)} words, found {len(WORDS) - 1}"
    assert message(write("v.bin", as_binary()[:-3])) == f"v.bin: {problem}"
    assert message(write("v.bin", as_binary(end=b"")[:-1])) == f"v.bin: {problem}"
    assert message(write("v.bin", as_binary()[: -4 * SIZE - 3])) == f"v.bin: {problem}"
    lines = (HEADER + as_text()).splitlines(keepends=True)
    assert message(write("v.vec", b"".join(lines[:-1]))) == f"v.vec: {problem}"


def test_a_binary_file_without_spaces_is_not_read_to_its_end(write):
    path = write("v.bin", b"2 5\n" + b"x" * (5 << 20))
    assert message(path) == "v.bin: incomplete; the header says 2 words, found 0"


def test_the_errors_are_vectors_errors(write):
    with pytest.raises(VectorsError):
        read_vectors(write("v.txt", b""), needed=[])


def real_vectors() -> Path:
    path = real_folder() / "vectors" / "mixed.300d.txt.gz"
    if not path.exists():
        pytest.skip(f"the real vectors are missing: {path}")
    return path


def test_the_real_vectors_are_read_as_a_slow_plain_loop_reads_them():
    path = real_vectors()
    expected = {}
    with gzip.open(path, "rt", encoding="utf-8", newline="\n") as lines:
        for number, line in enumerate(lines):
            if number % 500 == 0:
                word, *numbers = line.rstrip("\n").split(" ")
                expected[word] = np.array(numbers, dtype=np.float32)
    vectors = read_vectors(path, needed=expected.keys())
    assert vectors.words == list(expected)
    assert vectors.matrix.shape == (265, 300)
    np.testing.assert_array_equal(vectors.matrix, np.stack(list(expected.values())))


def test_a_header_of_thousands_of_digits_is_one_line(tmp_path):
    for name in ("vectors.txt", "vectors.bin"):
        (tmp_path / name).write_bytes(b"9" * 5000 + b" 5\n" + as_text())
        with pytest.raises(VectorsError):
            read_vectors(tmp_path / name, needed={"the"}, also_first=100)


def test_a_damaged_member_of_a_zip_file_is_one_line(tmp_path):
    messages = []
    for method in (zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2, zipfile.ZIP_DEFLATED):
        path = tmp_path / "vectors.zip"
        with zipfile.ZipFile(path, "w", method) as archive:
            archive.writestr("vectors.txt", as_text())
        content = bytearray(path.read_bytes())
        for place in range(45, len(content) // 2, len(content) // 40):
            damaged = content.copy()
            damaged[place] ^= 0xFF
            path.write_bytes(damaged)
            try:
                read_vectors(path, needed={"the"}, also_first=10**6)
            except VectorsError as error:  # and nothing else
                messages.append(str(error))
    assert len(messages) > 10
    assert not any("\n" in message for message in messages)
