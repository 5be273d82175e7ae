"""Several sources of vectors joined: every word has its numbers of each part, and zeros elsewhere."""

import json
import time

import numpy as np
import pytest
from safetensors.numpy import save_file

from fathomer.config import TextConfig
from fathomer.errors import FathomerError, VectorsError
from fathomer.text.compact import compact_words, describe_compact, read_compact, write_compact
from fathomer.text.sources import first_of_all, join_sources, read_source, words_of
from fathomer.text.vectors import Vectors
from fathomer.text.vocabulary import build_vocabulary
from fathomer.train.fit import fit
from tests.text.test_subwords import write_static_model
from tests.tiny import BAD, GOOD, THINGS, TINY, tiny_examples


@pytest.fixture
def files(tmp_path):
    """Two files: (1, 2) for good and (3, 4) for film; (5,) for Good and (6,) for bad."""
    first, second = tmp_path / "a.txt", tmp_path / "b.safetensors"
    first.write_text("good 1 2\nfilm 3 4\n", encoding="utf-8")
    write_compact(second, Vectors(["Good", "bad"], np.array([[5], [6]], np.float32), (1,)), {})
    return [first, second]


def row_of(vocabulary, word):
    return vocabulary.vectors[vocabulary.tokenizer.id_of(word)].tolist()


def test_a_joined_word_has_the_numbers_of_each_part_and_zeros_where_it_is_missing(files):
    vocabulary = build_vocabulary(["Good bad film good"], TextConfig(), vectors=files)
    assert vocabulary.parts == (2, 1)
    assert row_of(vocabulary, "Good") == [1, 2, 5]  # the lower-case form, and the written one
    assert row_of(vocabulary, "good") == [1, 2, 0]
    assert row_of(vocabulary, "bad") == [0, 0, 6]
    assert row_of(vocabulary, "film") == [3, 4, 0]


def test_the_first_words_of_one_source_are_looked_up_in_all(files):
    vocabulary = build_vocabulary(["unseen"], TextConfig(vector_words=2), vectors=files)
    assert vocabulary.tokenizer.vocabulary[1:] == ["good", "Good"]
    assert row_of(vocabulary, "Good") == [1, 2, 5]
    assert first_of_all(files, count=3) == ["good", "Good", "film"]


def test_a_joined_file_is_read_as_its_sources_are(files, tmp_path):
    joined = join_sources(files)
    assert joined.words == ["good", "film", "Good", "bad"]
    write_compact(tmp_path / "j.safetensors", joined, {"command": "join"})
    texts = ["Good bad film"]
    one = build_vocabulary(texts, TextConfig(), vectors=tmp_path / "j.safetensors")
    both = build_vocabulary(texts, TextConfig(), vectors=files)
    assert one.parts == both.parts == (2, 1)
    for word in ("Good", "good", "bad", "film"):
        assert row_of(one, word) == row_of(both, word)
    found = describe_compact(tmp_path / "j.safetensors")
    assert found == {"words": 4, "size": 3, "parts": [2, 1], "made": {"command": "join"}}


def test_each_part_is_conditioned_by_itself(tmp_path):
    rng = np.random.default_rng(0)
    words = ["The", *THINGS, "was", *GOOD, *BAD, "."]
    paths = []
    for name, spread in (("large", 100.0), ("small", 0.01)):
        matrix = rng.normal(spread, spread, (len(words), 6)).astype(np.float32)
        paths.append(tmp_path / f"{name}.safetensors")
        write_compact(paths[-1], Vectors(words, matrix, (6,)), {})
    artifact = fit(tiny_examples(), TINY, vectors=paths).artifact
    table = artifact.network.word_vectors.weight.detach().numpy()
    spreads = np.sqrt(np.square(table[1:]).mean(0).reshape(2, 6).mean(1))
    assert spreads == pytest.approx([1, 1], abs=0.4)
    found = artifact.metrics["vectors"]
    assert found["file"] == "large.safetensors + small.safetensors"
    assert len(found["scale"]) == 2
    assert found["scale"][1] > 1000 * found["scale"][0]
    assert len(found["subtracted"]) == 12


def test_subwords_give_the_words_of_the_other_files_a_part(files, tmp_path):
    folder = write_static_model(tmp_path / "static")
    joined = join_sources([files[0], folder])
    assert joined.words == ["good", "film"]
    assert joined.matrix.shape == (2, 2 + 3)
    with pytest.raises(VectorsError, match="no list of words"):
        join_sources([folder])


def test_the_compact_format_gives_the_same_bytes_and_half_precision(tmp_path):
    vectors = Vectors(["a", "é", "new york"], np.full((3, 2), 1 / 3, np.float32), (2,))
    for name in ("1.safetensors", "2.safetensors"):
        write_compact(tmp_path / name, vectors, {"seed": 0, "words": "é"})
    path = tmp_path / "1.safetensors"
    assert path.read_bytes() == (tmp_path / "2.safetensors").read_bytes()
    assert read_compact(path, needed=vectors.words).words == vectors.words
    found = read_source(path, needed={"é", "absent"})
    assert (found.words, found.matrix.dtype) == (["é"], np.float32)
    assert found.matrix == pytest.approx(1 / 3, abs=1e-3)
    assert words_of(path, count=2) == ["a", "é"]


def test_a_compact_file_opens_at_once(tmp_path):
    count = 40_000  # a tenth of the words of GloVe 6B
    matrix = np.ones((count, 300), dtype=np.float32)
    path = tmp_path / "large.safetensors"
    write_compact(path, Vectors([f"w{n}" for n in range(count)], matrix, (300,)), {})
    started = time.process_time()
    vectors = read_compact(path, needed={f"w{n}" for n in range(0, count, 10)})
    assert vectors.matrix.shape == (count // 10, 300)
    assert time.process_time() - started < 0.1


@pytest.mark.parametrize("content", [b"", b"x" * 100, b"\x02\0\0\0\0\0\0\0{}"])
def test_a_file_that_is_not_in_the_compact_format_is_one_line(tmp_path, content):
    path = tmp_path / "v.safetensors"
    path.write_bytes(content)
    with pytest.raises(FathomerError, match=r"v\.safetensors: not a file of vectors") as caught:
        read_source(path, needed={"a"})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("described", "table", "problem"),
    [
        ({"parts": [3], "made": {}}, np.ones((2, 2), np.float16), "parts of 3 numbers for 2 vec"),
        ({"parts": [2], "made": {}}, np.ones((3, 2), np.float16), "2 words .* for 3 vectors"),
        ({"parts": [2], "made": {}}, np.ones((2, 2), np.float32), "F32"),
        ({"parts": "ab", "made": {}}, np.ones((2, 2), np.float16), "not a file of vectors"),
        ({"parts": [2]}, np.ones((2, 2), np.float16), "not a file of vectors"),
        ([2], np.ones((2, 2), np.float16), "not a file of vectors"),
        ({"parts": [-1, 3], "made": {}}, np.ones((2, 2), np.float16), "cannot be that long"),
        ({"parts": [1e400], "made": {}}, np.ones((2, 2), np.float16), "is not finite"),
        ("[" * 100_000, np.ones((2, 2), np.float16), "nested too deeply"),
    ],
)
def test_a_damaged_compact_file_is_one_line(tmp_path, described, table, problem):
    words = np.frombuffer(b"a\nb", np.uint8)
    text = described if isinstance(described, str) else json.dumps(described)
    metadata = {"fathomer_vectors": text}
    save_file({"vectors": table, "words": words}, tmp_path / "v.safetensors", metadata)
    for use in (compact_words, describe_compact):
        with pytest.raises(VectorsError, match=problem):
            use(tmp_path / "v.safetensors")


def test_what_the_compact_format_cannot_hold_is_one_line(tmp_path):
    path = tmp_path / "v.safetensors"
    with pytest.raises(VectorsError, match="too large"):
        write_compact(path, Vectors(["a"], np.full((1, 1), 1e6, np.float32)), {})
    with pytest.raises(VectorsError, match="line break"):
        write_compact(path, Vectors(["a\nb"], np.ones((1, 1), np.float32)), {})
    assert not path.exists()


def test_vectors_of_absurd_length_take_no_memory(tmp_path):
    """A table without rows may claim any width."""
    path = tmp_path / "v.safetensors"
    described = json.dumps({"parts": [10**12], "made": {}})
    tensors = {
        "__metadata__": {"fathomer_vectors": described},
        "vectors": {"dtype": "F16", "shape": [0, 10**12], "data_offsets": [0, 0]},
        "words": {"dtype": "U8", "shape": [0], "data_offsets": [0, 0]},
    }
    start = json.dumps(tensors).encode()
    path.write_bytes(len(start).to_bytes(8, "little") + start)
    with pytest.raises(VectorsError, match="cannot be that long"):
        read_source(path, needed={"a"})
