"""What the models cost: by formula, by count, and matched with ours."""

import json
import re
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from fathomer.data.demo import demo_corpus
from fathomer.errors import ConfigError
from fathomer.model.interface import trainable_parameters
from fathomer.model.registry import MODELS, build_model
from fathomer.model.sizes import (
    PAPER_SIZE,
    SIZES,
    WORDS,
    cost_of,
    count_parameters,
    match_hidden_size,
    multiply_adds_per_word,
)
from tests.model.baselines.small import small_config
from tests.tiny import TINY

PAGE = Path(__file__).parents[2] / "docs" / "models.md"

# H hidden_size, T width of a token, V vocabulary, Y labels, L max_depth, I depth_size
STEPS = "(21*H*H + 7*H) + 7*H*H + (3*H*H + 3*H) + 2*H*H + H*H"  # window, sentence, node
BILSTM = "2 * (4*(H//2) * (T + H//2) + 4*(H//2))"
FORMULAS = {
    "fathomer": f"{BILSTM} + (H*I + I) + I*L + (I*H + H) + 7*H*(T + I) + {STEPS} + 3*H*Y + Y",
    "s-lstm": f"(T*H + H) + 7*H*T + {STEPS} + 3*H*Y + Y",
    "bilstm": f"{BILSTM} + 4 * (4*(H//2) * 3*(H//2) + 4*(H//2)) + 2*H*Y + Y",
    "rcrn": f"3 * {BILSTM} + 2*H*Y + Y",
    "transformer": "(T*H + H) + 6 * (4*(H*H + H) + (8*H*H + 5*H) + 4*H) + 2*H + 2*H*Y + Y",
    "star-transformer": "(T*H + H) + 4 * 2 * (4*(H*H + H) + 2*H) + 3*H*Y + Y",
    "adasent": "(T*H + H) + (2*H*H + H) + (6*H + 3) + H + H*Y + Y",
    "capsule-b": "12*T*H + 3 * (H + 64*H + 64 + 24*8*64 + 8*(Y+1)*64)",
    "dpcnn": "(3*T*H + H) + 14 * (3*H*H + H) + H*Y + Y",
    "drnn": "3 * (T*H + H*H + 2*H) + (H*H + H) + H*Y + Y",
    "region-embedding": "(T*H + H) + 7*V*H + H*Y + Y",
    "swem-concat": "(T*H + H) + (2*H*H + H) + H*Y + Y",
    "text-cnn": "(3 + 4 + 5) * T * (H//4) + 3*(H//4) + 3*(H//4)*Y + Y",
}
CHAR_CNN = "256*C + (7*C*H + H) + (7*H*H + H) + 4 * (3*H*H + H) + 2 * (H*H + H) + H*Y + Y"
"""Of the one model that has no word vectors; C char_input_size."""


def embedding_parameters(config):
    words = 0 if config.fixed_words else config.vocab_size * config.word_size
    return (
        words + 256 * config.char_input_size + (3 * config.char_input_size + 1) * config.char_size
    )


@pytest.mark.parametrize("name", FORMULAS)
@pytest.mark.parametrize(
    "settings", [{}, {"hidden_size": 24, "num_labels": 2, "fixed_words": True}]
)
def test_a_model_has_as_many_parameters_as_its_formula_says(name, settings):
    config = small_config(name, **settings)
    letters = {
        "H": config.hidden_size,
        "T": config.word_size + config.char_size,
        "V": config.vocab_size,
        "Y": config.num_labels,
        "L": config.max_depth,
        "I": config.depth_size,
    }
    wanted = eval(FORMULAS[name], letters) + embedding_parameters(config)
    assert trainable_parameters(build_model(config)) == count_parameters(config) == wanted


def test_the_model_that_reads_characters_has_no_word_vectors():
    config = small_config("char-cnn")
    letters = {"H": config.hidden_size, "C": config.char_input_size, "Y": config.num_labels}
    assert count_parameters(config) == eval(CHAR_CNN, letters)
    assert build_model(config).word_vectors is None


@cache
def costs():
    return [cost_of(name) for name in MODELS]


@pytest.mark.parametrize("reference", [{}, {"num_labels": 14, "max_depth": 3, "word_size": 200}])
@pytest.mark.parametrize("name", MODELS)
def test_a_matched_model_is_as_large_as_ours(name, reference):
    config = replace(PAPER_SIZE, **{"name": name, **reference})
    sizes = {count_parameters(replace(config, hidden_size=size)) for size in (SIZES[0], SIZES[-1])}
    if len(sizes) == 1:
        with pytest.raises(ConfigError, match=f"the model {name} has no hidden size that could be"):
            match_hidden_size(config)
        return
    found = count_parameters(replace(config, hidden_size=match_hidden_size(config)))
    wanted = count_parameters(replace(config, name="fathomer"))
    assert abs(found - wanted) <= 0.03 * wanted


def test_a_model_that_cannot_be_as_small_says_so():
    config = small_config("capsule-b", hidden_size=4, fixed_words=True)
    with pytest.raises(
        ConfigError, match=r"cannot have \d,\d\d\d parameters; the nearest are \d\d,"
    ):
        match_hidden_size(config)


def test_train_matches_parameters(run, monkeypatch, tmp_path):
    monkeypatch.setattr(demo_corpus, "__kwdefaults__", {"seed": 0, "train": 60, "test": 20})
    recipe = TINY.updated({"model": {"hidden_size": 40}, "train": {"epochs": 1}})
    (tmp_path / "tiny.toml").write_text(recipe.to_toml(), encoding="utf-8")
    arguments = ["--recipe", "tiny.toml", "--match-parameters", "--json"]
    found = {}
    for name in ("fathomer", "rcrn"):
        code, out, err = run("train", "demo", "--out", name, "--model", name, *arguments)
        assert code == 0, err
        found[name] = json.loads(out)["parameters"]
        assert f"{found[name]:,} trainable parameters\n" in err
    assert abs(found["rcrn"] - found["fathomer"]) <= 0.03 * found["fathomer"]
    settings = json.loads((tmp_path / "rcrn" / "config.json").read_text("utf-8"))["recipe"]["model"]
    assert settings["hidden_size"] > 40
    code, out, err = run("train", "demo", "--out", "x", "--model", "tfidf", *arguments)
    assert (code, out) == (2, "")
    assert err.endswith("fathomer: the model tfidf has no hidden size that could be matched\n")
    assert not (tmp_path / "x").exists()


T, H, Y, CHAR = 350, 400, 2, 3 * 30 * 50
"""Sizes of the paper; CHAR: multiply-adds of the character CNN for a byte of a word."""


def test_multiply_adds_are_those_of_the_matrices():
    """Of 18 words, spelled "0" to "17" and padded to two bytes each."""
    char = 2 * CHAR
    output = {name: parts * H * Y / WORDS for name, parts in (("two", 2), ("three", 3))}
    lstm = 2 * 4 * 200 * (T + 200)
    at = {name: multiply_adds_per_word(replace(PAPER_SIZE, name=name)) for name in FORMULAS}
    stack = lstm + 2 * 2 * 4 * 200 * (H + 200)
    recurrent = 2 * 4 * 200 * 200 / WORDS  # nothing comes before the first word
    assert at["bilstm"] == pytest.approx(char + stack - 3 * recurrent + output["two"])
    assert at["rcrn"] == pytest.approx(char + 3 * (lstm - recurrent) + output["two"])
    attention = 2 * WORDS * H
    layers = 6 * (12 * H * H + attention)
    assert at["transformer"] == pytest.approx(char + T * H + layers + output["two"])
    nodes = (7 + 3 + 2) * H * H / WORDS  # V g, W g and U h of a sentence node, once per step
    steps = 9 * (21 * H * H + H * H + nodes)
    once = T * H + T * 7 * H
    assert at["s-lstm"] == pytest.approx(char + once + steps + output["three"])


def test_models_are_listed_with_their_costs(run):
    code, out, _ = run("models", "--json")
    found = json.loads(out)["models"]
    assert code == 0
    assert [model["name"] for model in found] == list(MODELS)
    assert found == [cost._asdict() for cost in costs()]
    ours = next(model for model in found if model["name"] == "fathomer")
    assert ours["paper"].startswith("Liu et al. 2020")
    full = next(model for model in found if model["name"] == "s-lstm")
    assert 0 < ours["multiply_adds_per_word"] < full["multiply_adds_per_word"]
    code, out, _ = run("models")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines()[1 : 1 + len(MODELS)]] == list(MODELS)
    assert f"a text of {WORDS} words" in out


def table():
    """Write the table of docs/models.md."""
    lines = ["| name | parameters | multiply-adds per word | paper |", "|---|---:|---:|---|"]
    for cost in costs():
        counts = (cost.parameters, cost.multiply_adds_per_word)
        parameters, products = ("–" if count is None else f"{count:,}" for count in counts)
        lines.append(f"| `{cost.name}` | {parameters} | {products} | {cost.paper} |")
    return "\n".join(lines) + "\n"


TABLE = re.compile(r"\| name \|.*?\n\n", re.DOTALL)


def test_the_page_of_models_shows_them_all():
    """After a change: python -c "from tests.model.baselines.test_sizes import *; write_table()"."""
    [found] = TABLE.findall(PAGE.read_text(encoding="utf-8"))
    assert found == table() + "\n"


def write_table():
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(TABLE.sub(lambda _: table() + "\n", page, count=1), encoding="utf-8")
