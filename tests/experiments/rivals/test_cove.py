"""The biattentive classification network over CoVe."""

import pytest
import safetensors.torch
import torch

from experiments.rivals import cove
from experiments.rivals.translations import FILE as TRANSLATIONS
from fathomer.data.examples import Example, Examples
from fathomer.errors import ConfigError, DataError
from fathomer.model.interface import trainable_parameters
from fathomer.model.registry import build_model
from fathomer.model.sizes import count_parameters
from fathomer.train.fit import fit
from tests.experiments.rivals.test_mt_lstm import published
from tests.model.baselines.contract import SMALL
from tests.model.baselines.small import LONG, assert_agrees, small_config, small_model, tokens_of
from tests.model.networks import packed

EXAMPLES = Examples([Example("good film", "good"), Example("bad film", "bad")] * 6)
RECIPE = SMALL.updated({"model": {"name": "cove"}, "train": {"epochs": 1}})


def oracle(network, text):
    """Compute the equations of the docstring for one text, with plain sums over its words."""
    size = network.encoder.size
    if not text:
        return network.output(torch.zeros(4 * size, dtype=torch.float64)[None])[0]
    batch = packed([text])
    words = network.embedding.word(batch.words.clamp(min=0))
    w = torch.cat([tokens_of(network, text), network.mt_lstm(words, batch)], 1)
    x = network.encoder(torch.relu(network.feedforward(w)), batch)
    c = []
    for i in range(len(x)):
        scores = torch.softmax(torch.stack([x[i] @ other for other in x]), 0)
        c.append(sum(score * other for score, other in zip(scores, x, strict=True)))
    c = torch.stack(c)
    z = network.integrate(torch.cat([x, x - c, x * c], 1), batch)
    weights = torch.softmax(z @ network.attention.weight[0], 0)
    p = torch.cat([z.max(0).values, z.mean(0), z.min(0).values, weights @ z])
    first, second, last = network.output
    for layer in (first, second):
        p = (p - p.mean()) / torch.sqrt(p.var(unbiased=False) + 1e-5)
        p = p * layer.normalise.weight + layer.normalise.bias
        pieces = layer.pieces.weight @ p + layer.pieces.bias
        p = torch.stack(pieces.chunk(cove.PIECES)).max(0).values
    return last(p)


def test_it_agrees_with_plain_sums():
    assert_agrees(small_model("cove"), oracle, LONG)


def test_it_has_as_many_parameters_as_its_formula():
    config = small_config("cove")
    h, t, y, word = config.hidden_size, config.word_size + config.char_size, 3, config.word_size
    chars = 256 * config.char_input_size + (3 * config.char_input_size + 1) * config.char_size
    lstms = sum(2 * (2 * h * (size + h // 2) + 2 * h) for size in (h, 3 * h))
    maxout = 4 * h * (4 * h + 1) + 4 * h * (h + 1) + 2 * (4 * h + h)
    wanted = chars + (t + 2 * word + 1) * h + lstms + h + maxout + h * y + y
    assert trainable_parameters(build_model(config)) == count_parameters(config) == wanted


def test_weights_of_a_file_are_used_with_the_vectors_as_they_are(tmp_path, monkeypatch):
    original = published(3)
    safetensors.torch.save_file(original.state_dict(), tmp_path / "mt.safetensors")
    monkeypatch.setenv(cove.FILE, str(tmp_path / "mt.safetensors"))
    vectors = tmp_path / "small.vec"
    vectors.write_text("good 1 0 2\nbad 0 3 1\nfilm 1 1 1\n", encoding="utf-8")
    network = fit(EXAMPLES, RECIPE, vectors=vectors).artifact.network
    good = network.embedding.word.weight[network.embedding.word.weight[:, 2] == 2]
    assert good.tolist() == [[1, 0, 2]]
    g = network.mt_lstm.layers[1].recurrent[1, :3]  # the gate that PyTorch has in the third place
    torch.testing.assert_close(g, original.weight_hh_l1_reverse[6:9].float())


def test_weights_for_other_vectors_are_one_line(tmp_path, monkeypatch):
    safetensors.torch.save_file(published(4).state_dict(), tmp_path / "mt.safetensors")
    monkeypatch.setenv(cove.FILE, str(tmp_path / "mt.safetensors"))
    with pytest.raises(ConfigError, match="trained with; give --vectors"):
        fit(EXAMPLES, RECIPE)
    vectors = tmp_path / "small.vec"
    vectors.write_text("good 1 0 2\nbad 0 3 1\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"not an MT-LSTM for these vectors: .*of 3 numbers") as why:
        fit(EXAMPLES, RECIPE, vectors=vectors)
    assert "\n" not in str(why.value)


def test_without_weights_and_translations_it_says_what_to_get(monkeypatch):
    monkeypatch.delenv(cove.FILE, raising=False)
    monkeypatch.delenv(TRANSLATIONS, raising=False)
    with pytest.raises(
        DataError, match="cove: there is no MT-LSTM; set FATHOMER_MT_LSTM to"
    ) as why:
        fit(EXAMPLES, RECIPE)
    assert "salesforce/cove" in str(why.value)
    assert "\n" not in str(why.value)


def test_without_weights_it_is_trained_on_translations(tmp_path, monkeypatch):
    monkeypatch.delenv(cove.FILE, raising=False)
    (tmp_path / "a.csv").write_text(
        "text,de\ngood film,guter Film\nbad film,schlechter Film\n", encoding="utf-8"
    )
    monkeypatch.setenv(TRANSLATIONS, str(tmp_path / "a.csv"))
    network = fit(EXAMPLES, RECIPE).artifact.network
    assert network.mt_lstm.layers[0].bias.any()  # zeros at the start
    assert not network.embedding.word.weight.requires_grad
