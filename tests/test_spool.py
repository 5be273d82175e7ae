"""Spools return the same bytes from memory and from disk, and keep memory use constant."""

import gc
import json
import mmap
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fathomer import spool
from fathomer.data.examples import Example, Examples, StoredExamples, split_stratified
from fathomer.data.reading import read_examples
from fathomer.spool import Spool, pieces
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Tokenizer
from tests.forked import run_forked

TEXTS = ["a good film", "", "naïve 🎬", "half a surrogate \ud800", "a\nb"]


def stored(texts=TEXTS) -> Examples:
    return Examples(StoredExamples.collect(Example(t, str(n % 2)) for n, t in enumerate(texts)))


@given(st.lists(st.binary()), st.integers(0, 20))
def test_bytes_are_read_back_from_memory_and_from_disk(parts, limit):
    kept = Spool(limit=limit)
    for part in parts:
        kept.append(part)
    whole = b"".join(parts)
    assert len(kept) == len(whole)
    assert kept.on_disk == (len(whole) > limit)
    assert kept.read(0, len(whole)) == whole
    assert kept.read(1, 3) == whole[1:3]
    assert kept.array(np.uint8).tobytes() == whole


def test_the_texts_of_a_large_file_are_on_disk(monkeypatch, tmp_path):
    monkeypatch.setattr(spool, "LIMIT", 100)
    rows = [f"{{'text': 'text {n}', 'label': {n % 3}}}".replace("'", '"') for n in range(60)]
    (tmp_path / "own.jsonl").write_text("\n".join(rows), encoding="utf-8")
    found = read_examples(tmp_path / "own.jsonl")
    assert found.items.spool.on_disk
    assert list(found) == [Example(f"text {n}", str(n % 3)) for n in range(60)]


def test_bytes_are_read_back_without_pread(monkeypatch):  # as on Windows
    monkeypatch.delattr("os.pread")
    kept = Spool(limit=2)
    kept.append(b"some bytes")
    assert [kept.read(5, 10), kept.read(0, 4), kept.read(9, 99)] == [b"bytes", b"some", b"s"]


@pytest.mark.parametrize("limit", [0, 1 << 20])
def test_stored_examples_are_read_back(limit, monkeypatch):
    monkeypatch.setattr(spool, "LIMIT", limit)
    examples = stored()
    assert examples.items.spool.on_disk == (limit == 0)
    assert list(examples) == [Example(text, str(n % 2)) for n, text in enumerate(TEXTS)]
    assert examples.items[-1] == Example("a\nb", "0")
    assert examples.items[1:3] == list(examples)[1:3]
    assert examples.label_counts == {"0": 3, "1": 2}
    assert list(examples.take([4, 0])) == [examples.items[4], examples.items[0]]
    with pytest.raises(IndexError):
        examples.items[5]


def test_stored_examples_are_split_like_a_list():
    texts = [f"text {n}" for n in range(50)]
    for one, other in zip(
        split_stratified(stored(texts), fraction=0.2, seed=3),
        split_stratified(Examples(list(stored(texts))), fraction=0.2, seed=3),
        strict=True,
    ):
        assert list(one) == list(other)


def test_encoded_texts_are_the_same_on_disk_and_in_memory(monkeypatch):
    tokenizer = Tokenizer.from_words(["a", "film"])
    words = tokenizer.encode(TEXTS * 50, max_words=10)
    before = EncodedTexts.from_words(words, max_chars=8)
    monkeypatch.setattr(spool, "LIMIT", 0)
    after = EncodedTexts.from_words(words, max_chars=8)
    del words
    gc.collect()
    assert isinstance(after.ids.base.obj, mmap.mmap)
    np.testing.assert_array_equal(before.ids, after.ids)
    monkeypatch.setattr(spool, "PIECE", 16)
    assert b"".join(piece.tobytes() for piece in pieces(after.ids)) == before.ids.tobytes()
    for one, other in zip(before.pack([4, 2]), after.pack([4, 2]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_a_temporary_file_has_no_name_and_is_closed_with_its_spool(monkeypatch, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    kept = Spool(limit=0)
    kept.append(b"abcd")
    numbers = kept.array(np.uint8)
    assert list(tmp_path.iterdir()) == []
    file = kept._file
    del kept
    gc.collect()
    assert file.closed
    assert bytes(numbers) == b"abcd"


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs Linux's /proc")
def test_memory_does_not_grow_with_the_texts():
    """With such a low limit, the texts and words of both corpora are on disk."""

    def measured(rows):
        options = ["--distinct", "500", "--limit", "65536"]
        return json.loads(run_forked(["-m", "tests.data.large", rows, *options]).stdout)

    few, many = measured(1_000), measured(8_000)
    assert many["texts"] == 8_000
    assert many["index_mb"] - few["index_mb"] < 3, "5 MB of texts are not kept in memory"
    assert many["ten_steps_mb"] - few["ten_steps_mb"] < 25
