"""Costs of the rivals: by formula, by count, and matched with our network."""

import json
from dataclasses import replace

import pytest

from fathomer.data.demo import demo_corpus
from fathomer.errors import ConfigError
from fathomer.model.registry import build_model
from fathomer.model.sizes import (
    PAPER_SIZE,
    WORDS,
    count_parameters,
    match_hidden_size,
    multiply_adds_per_word,
)
from tests.experiments.rivals import RIVALS
from tests.model.baselines import sizes
from tests.model.baselines.sizes import CHAR, LSTM, H, Y
from tests.model.baselines.small import small_config
from tests.tiny import TINY

# H hidden_size, T width of a token, V vocabulary, Y labels
ENCODER = "4*(H*H + H) + (8*H*H + 5*H) + 4*H"
"""Parameters of a Transformer layer."""
STEPS = "3*H*{gates}*H + {gates}*H + {gates}*H*H + (3*H*H + 3*H) + 2*H*H + H*H"
"""Parameters of the transitions without those of the token."""
FIXING = "(12*T*(H//4) + 3*(H//4)) + 4 * (3*(H//4))**2 + 4 * (3*(H//4))"
"""Parameters of a context of CNN-MCFA."""
FORMULAS = {
    "cnn-mcfa": f"2 * ({FIXING}) + 2*3*(H//4)*Y + Y",
    "act-s-lstm": f"(T*H + H) + 7*H*T + {STEPS.format(gates=7)} + (H + 1) + 3*H*Y + Y",
    "authors-cell": f"{sizes.BILSTM} + (H*I + I) + I*L + (I*H + H) + 6*H*(T + I) + "
    f"{STEPS.format(gates=6)} + (T + I != H)*(T + I)*H + 3*H*Y + Y",
    "dnc-cuw": "4*H*(T + 32 + H + 2) + 33*(H + 1) + 2*H*H + 2*H + 99*(2*H + 1) + (H + 32)*Y + Y",
    "early-exit": f"(T*H + 3*H) + 6 * ({ENCODER} + 2*H + H*Y + Y)",
    "ms-trans": f"(T*H + 3*H) + 6 * ({ENCODER}) + 2*H + 2*H*Y + Y",
    "r-transformer": f"(T*H + H) + 3 * (2*H + 6*(H*H + H) + {ENCODER}) + 2*H + 2*H*Y + Y",
    "universal-transformer": f"(T*H + H) + {ENCODER} + 2*H + (H + 1) + 2*H*Y + Y",
    "rcrn": f"3 * {sizes.BILSTM} + 2*H*Y + Y",
    "star-transformer": "(T*H + 3*H) + 4 * 2 * (4*(H*H + H) + 2*H) + 3*H*Y + Y",
    "adasent": "(T*H + H) + (2*H*H + H) + (6*H + 3) + H + H*Y + Y",
    "capsule-b": "12*T*H + 3 * (H + 64*H + 64 + 24*8*64 + 8*(Y+1)*64)",
    "dpcnn": "(3*T*H + H) + 14 * (3*H*H + H) + H*Y + Y",
    "drnn": "3 * (T*H + H*H + 2*H) + (H*H + H) + H*Y + Y",
    "region-embedding": "(T*H + H) + 7*V*H + H*Y + Y",
    "swem-concat": "(T*H + H) + (2*H*H + H) + H*Y + Y",
    "text-cnn": "(3 + 4 + 5) * T * (H//4) + 3*(H//4) + 3*(H//4)*Y + Y",
}
OWN_TESTS = ("char-cnn", "cove", "multi-qt")
"""Rivals whose word vectors are not counted like those of the others."""
CHAR_CNN = "256*C + (7*C*H + H) + (7*H*H + H) + 4 * (3*H*H + H) + 2 * (H*H + H) + H*Y + Y"
"""The one rival without word vectors; C char_input_size."""


def test_every_rival_has_a_formula():
    assert {*FORMULAS, *OWN_TESTS} == set(RIVALS)


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("settings", sizes.SETTINGS)
def test_a_rival_has_as_many_parameters_as_its_formula(name, settings):
    sizes.assert_has_parameters(name, FORMULAS[name], **settings)


def test_the_character_cnn_has_no_word_vectors():
    config = small_config("char-cnn")
    letters = {"H": config.hidden_size, "C": config.char_input_size, "Y": config.num_labels}
    assert count_parameters(config) == eval(CHAR_CNN, letters)
    assert build_model(config).word_vectors is None


@pytest.mark.parametrize("reference", sizes.REFERENCES)
@pytest.mark.parametrize("name", RIVALS)
def test_a_matched_rival_is_as_large_as_our_network(name, reference):
    sizes.assert_can_be_matched(name, **reference)


def test_a_rival_that_cannot_be_as_small_is_an_error():
    config = small_config("capsule-b", hidden_size=4, fixed_words=True)
    with pytest.raises(
        ConfigError, match=r"cannot have \d,\d\d\d parameters; the nearest are \d\d,"
    ):
        match_hidden_size(config)


def test_train_matches_the_parameters_of_a_rival(run_experiments, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    recipe = TINY.updated({"model": {"hidden_size": 40}, "train": {"epochs": 1}})
    (tmp_path / "tiny.toml").write_text(recipe.to_toml(), encoding="utf-8")
    options = ["--recipe", "tiny.toml", "--match-parameters", "--json"]
    found = {}
    for name in ("fathomer", "rcrn"):
        code, out, err = run_experiments("train", "demo", "--out", name, "--model", name, *options)
        assert code == 0, err
        found[name] = json.loads(out)["parameters"]
    assert abs(found["rcrn"] - found["fathomer"]) <= 0.03 * found["fathomer"]
    config = json.loads((tmp_path / "rcrn" / "config.json").read_text("utf-8"))
    assert config["recipe"]["model"]["hidden_size"] > 40


def test_multiply_adds_are_those_of_the_matrices():
    found = multiply_adds_per_word(replace(PAPER_SIZE, name="rcrn"))
    output = 2 * H * Y / WORDS
    assert found == pytest.approx(CHAR + 3 * LSTM + output)


def test_the_page_of_models_lists_the_rivals():
    tables = [sizes.cost_table(RIVALS), sizes.difference_table(RIVALS)]
    assert sizes.page_tables()[1:] == tables, "run python -m tests.model.baselines.sizes"
