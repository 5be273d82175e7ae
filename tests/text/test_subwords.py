"""Vectors of subwords: a word is the mean of its pieces."""

import json

import numpy as np
import pytest
import tokenizers
from safetensors.numpy import load_file, save_file
from tokenizers import models, pre_tokenizers

from fathomer.errors import MissingExtraError, VectorsError
from fathomer.text.sources import checksum_of, read_source, words_of
from fathomer.text.subwords import find_wordllama, subword_vectors

PIECES = ["[UNK]", "good", "film", "un", "##good", "."]
TABLE = np.arange(18, dtype=np.float32).reshape(6, 3)


def write_static_model(folder, name="embeddings", pieces=PIECES, **others):
    """Write a small Model2Vec folder."""
    folder.mkdir(parents=True)
    save_file({name: TABLE, **others}, folder / "model.safetensors")
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    tokenizer = tokenizers.Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=10)
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "config.json").write_text(json.dumps({"normalize": True}), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["embeddings", "embedding.weight"])
def test_a_word_is_the_mean_of_its_pieces(tmp_path, name):
    folder = write_static_model(tmp_path / "m", name)
    found = read_source(folder, needed={"ungood", "film", "zzz"})
    assert found.words == ["film", "ungood"]  # no piece of the last one is known
    assert found.matrix.tolist() == [TABLE[2].tolist(), TABLE[3:5].mean(0).tolist()]
    assert words_of(folder, count=9) == ["good", "film", "un", "."]
    assert len(checksum_of(folder)) == 64


def test_a_quantised_vocabulary_is_mapped_and_weighted(tmp_path):
    mapping = np.array([0, 1, 1, 2, 3, 4])
    weights = np.array([1, 2, 3, 1, 1, 1], dtype=np.float32)
    folder = write_static_model(tmp_path / "m", mapping=mapping, weights=weights)
    found = subword_vectors(folder, ["good", "film"])
    assert found.matrix.tolist() == [(2 * TABLE[1]).tolist(), (3 * TABLE[1]).tolist()]


def test_folders_without_subwords_are_one_line(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(VectorsError, match="empty: expected a Model2Vec folder"):
        read_source(tmp_path / "empty", needed={"a"})
    folder = write_static_model(tmp_path / "encoder", "encoder.layer.0.weight")
    with pytest.raises(VectorsError, match="run fathomer vectors distill"):
        read_source(folder, needed={"a"})
    folder = write_static_model(tmp_path / "short", pieces=[*PIECES, "more"])
    with pytest.raises(VectorsError, match="6 vectors for 7 subwords"):
        read_source(folder, needed={"a"})
    folder = write_static_model(tmp_path / "broken")
    (folder / "tokenizer.json").write_text("{}", encoding="utf-8")
    with pytest.raises(VectorsError, match="not a tokenizer"):
        read_source(folder, needed={"a"})


def test_the_vectors_inside_wordllama_are_read_as_a_slow_plain_loop_reads_them():
    pytest.importorskip("wordllama", reason="the extra vectors is not installed")
    folder, words = find_wordllama(), ["film", "unfathomable", "Kitchen", "!"]
    found = subword_vectors(folder, words)
    assert found.words == words
    [table] = load_file(next(folder.glob("weights/*"))).values()
    tokenizer = tokenizers.Tokenizer.from_file(str(next(folder.glob("tokenizers/*"))))
    for word, row in zip(words, found.matrix, strict=True):
        pieces = tokenizer.encode(word, add_special_tokens=False).ids
        np.testing.assert_allclose(row, table[pieces].astype(np.float32).mean(0), atol=1e-5)
    assert len(tokenizer.encode("unfathomable", add_special_tokens=False).ids) > 1
    assert "the" in words_of(folder, count=1000)


def test_a_missing_package_is_named(monkeypatch):
    monkeypatch.setattr("fathomer.text.subwords.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError) as caught:
        find_wordllama()
    assert str(caught.value).startswith(
        "this command needs wordllama: pip install 'fathomer[vectors]'"
    )


@pytest.mark.parametrize(
    ("others", "problem"),
    [
        ({"mapping": np.full(6, 10**9)}, "names rows that do not exist"),
        ({"mapping": np.full(6, -1)}, "names rows that do not exist"),
        ({"mapping": np.ones(6)}, "not one whole number"),
        ({"mapping": np.ones((6, 2), dtype=np.int64)}, "not one whole number"),
        ({"weights": np.ones(3)}, "not one number for each"),
        ({"weights": np.ones((6, 2))}, "not one number for each"),
        ({"weights": np.full(6, np.inf)}, "is not finite"),
        ({"weights": np.full(6, 1e300)}, "is not finite"),
    ],
)
def test_tables_that_do_not_fit_are_one_line(tmp_path, others, problem):
    folder = write_static_model(tmp_path / "m", **others)
    with pytest.raises(VectorsError, match=problem):
        read_source(folder, needed={"good"})


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("model", "unk_token"), "[NONE]"),
        (("normalizer",), {"type": "Precompiled", "precompiled_charsmap": ""}),
        (("pre_tokenizer",), {"type": "FixedLength", "length": 0}),
        (("model", "vocab", "film"), 2**32 - 1),
        (("model", "vocab", ""), 6),
    ],
)
def test_absurd_rules_of_a_tokenizer_are_one_line(tmp_path, path, value):
    """Some of them are a panic in Rust code, which is no ``Exception``."""
    folder = write_static_model(tmp_path / "m")
    content = found = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    for key in path[:-1]:
        found = found[key]
    found[path[-1]] = value
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(VectorsError) as caught:
        read_source(folder, needed={"good", "zzz", "a b"}, also_first=9)
    assert "\n" not in str(caught.value)
