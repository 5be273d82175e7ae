"""Costs of the package's models: by formula, by count, and matched with our network."""

import json
from dataclasses import replace
from functools import cache

import pytest

from fathomer.data.demo import demo_corpus
from fathomer.model.registry import MODELS
from fathomer.model.sizes import PAPER_SIZE, WORDS, cost_of, multiply_adds_per_word
from tests.forked import run_forked
from tests.model.baselines import sizes
from tests.model.baselines.sizes import CHAR, LSTM, H, T, Y
from tests.model.baselines.small import SHIPPED
from tests.tiny import TINY

# H hidden_size, T width of a token, Y labels, L max_depth, I depth_size
STEPS = "(21*H*H + 7*H) + 7*H*H + (3*H*H + 3*H) + 2*H*H + H*H"  # window, sentence, node
FORMULAS = {
    "fathomer": f"{sizes.BILSTM} + (H*I + I) + I*L + (I*H + H) + 7*H*(T + I) + {STEPS} + 3*H*Y + Y",
    "s-lstm": f"(T*H + H) + 7*H*T + {STEPS} + 3*H*Y + Y",
    "bilstm": f"{sizes.BILSTM} + 4 * (4*(H//2) * 3*(H//2) + 4*(H//2)) + 2*H*Y + Y",
    "transformer": "(T*H + 3*H) + 6 * (4*(H*H + H) + (8*H*H + 5*H) + 4*H) + 2*H + 2*H*Y + Y",
}


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize("settings", sizes.SETTINGS)
def test_a_model_has_as_many_parameters_as_its_formula(name, settings):
    sizes.assert_has_parameters(name, FORMULAS[name], **settings)


@pytest.mark.parametrize("reference", sizes.REFERENCES)
@pytest.mark.parametrize("name", SHIPPED)
def test_a_matched_model_is_as_large_as_our_network(name, reference):
    sizes.assert_can_be_matched(name, **reference)


def test_train_matches_parameters(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    recipe = TINY.updated({"model": {"hidden_size": 40}, "train": {"epochs": 1}})
    (tmp_path / "tiny.toml").write_text(recipe.to_toml(), encoding="utf-8")
    options = ["--recipe", "tiny.toml", "--match-parameters", "--json"]
    found = {}
    for name in ("fathomer", "bilstm"):
        code, out, err = run("train", "demo", "--out", name, "--model", name, *options)
        assert code == 0, err
        found[name] = json.loads(out)["parameters"]
        assert f"{found[name]:,} trainable parameters\n" in err
    assert abs(found["bilstm"] - found["fathomer"]) <= 0.03 * found["fathomer"]
    config = json.loads((tmp_path / "bilstm" / "config.json").read_text("utf-8"))
    assert config["recipe"]["model"]["hidden_size"] > 40
    code, out, err = run("train", "demo", "--out", "x", "--model", "tfidf", *options)
    assert (code, out) == (2, "")
    assert err.endswith("fathomer: the model tfidf has no hidden size that could be matched\n")
    assert not (tmp_path / "x").exists()


def test_multiply_adds_are_those_of_the_matrices():
    at = {name: multiply_adds_per_word(replace(PAPER_SIZE, name=name)) for name in FORMULAS}
    two, three = 2 * H * Y / WORDS, 3 * H * Y / WORDS  # the output layer, once per text
    stack = LSTM + 2 * 2 * 4 * 200 * (H + 200)
    assert at["bilstm"] == pytest.approx(CHAR + stack + two)
    layers = 6 * (12 * H * H + 2 * WORDS * H)  # the second part is attention
    assert at["transformer"] == pytest.approx(CHAR + T * H + layers + two)
    nodes = (7 + 3 + 2) * H * H / WORDS  # V g, W g and U h of a sentence node, once per step
    steps = 9 * (21 * H * H + H * H + nodes)
    once = T * H + T * 7 * H
    assert at["s-lstm"] == pytest.approx(CHAR + once + steps + three)


def test_a_user_without_the_experiments_has_six_models():
    done = run_forked(["-m", "fathomer", "models", "--json"])
    assert done.returncode == 0, done.stderr
    assert [model["name"] for model in json.loads(done.stdout)["models"]] == SHIPPED


def test_models_are_listed_with_their_costs(run, monkeypatch):
    once = cache(cost_of)  # per model, not per model and command
    monkeypatch.setattr("fathomer.model.sizes.cost_of", once)
    code, out, _ = run("models", "--json")
    found = json.loads(out)["models"]
    assert code == 0
    assert [model["name"] for model in found] == list(MODELS)
    assert found == [once(name)._asdict() for name in MODELS]
    ours = next(model for model in found if model["name"] == "fathomer")
    assert ours["paper"].startswith("Liu et al. 2020")
    full = next(model for model in found if model["name"] == "s-lstm")
    assert 0 < ours["multiply_adds_per_word"] < full["multiply_adds_per_word"]
    code, out, _ = run("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1 : 1 + len(MODELS)]] == list(MODELS)
    assert f"a text of {WORDS} words" in " ".join(out.split())
    for name, model in MODELS.items():
        assert (f"{name} needs {model.needs}." in out) == bool(model.needs)


def test_the_page_of_models_lists_those_of_the_package():
    assert sizes.page_tables()[0] == sizes.cost_table(SHIPPED), (
        "run python -m tests.model.baselines.sizes"
    )
