"""Settings that follow from the data: the rule, its bounds, the time estimate and its one line."""

import re

import pytest
import torch

from fathomer.cli.settings import SettingChanges
from fathomer.config import Recipe
from fathomer.train import automatic
from fathomer.train.automatic import (
    BATCH_WORDS,
    EPOCHS,
    DataSize,
    automatic_recipe,
    describe,
    estimate_seconds,
    fast_precision,
    suggest_vectors,
)

RULE = [  # texts, words, hidden size, held out, words per batch, epochs
    (50, 1_000, 100, 0.2, 200, 30),
    (500, 50_000, 100, 0.2, 200, 8),
    (5_000, 500_000, 200, 0.1, 2000, 8),
    (50_000, 5_000_000, 200, 0.1, 2000, 4),
]


@pytest.fixture(autouse=True)
def reference_speed(monkeypatch):
    """Estimates as on the processor whose speed they were measured on."""
    monkeypatch.setattr(automatic, "_product_seconds", lambda: automatic._REFERENCE_SECONDS)


@pytest.mark.parametrize(("texts", "words", "hidden", "held_out", "batch_words", "epochs"), RULE)
def test_the_rule(texts, words, hidden, held_out, batch_words, epochs):
    recipe = automatic_recipe(DataSize(texts, words))
    assert recipe.model.hidden_size == hidden
    assert recipe.train.held_out == held_out
    assert recipe.train.batch_words == batch_words
    assert recipe.train.epochs == epochs
    assert (recipe.model.max_depth, recipe.model.ngrams) == (3, True)
    assert (recipe.train.keep, recipe.train.minutes) == ("last", 0.0)
    assert recipe.text == Recipe().text


def test_the_sizes_change_at_1000_texts_and_ngrams_end_beyond_100000():
    few, enough = (automatic_recipe(DataSize(texts, 100_000)) for texts in (999, 1000))
    assert (few.model.hidden_size, few.train.held_out) == (100, 0.2)
    assert (enough.model.hidden_size, enough.train.held_out) == (200, 0.1)
    many, more = (automatic_recipe(DataSize(texts, 10**7)) for texts in (100_000, 100_001))
    assert (many.model.ngrams, more.model.ngrams) == (True, False)


def test_short_texts_have_less_dropout_and_more_epochs():
    short, long = (automatic_recipe(DataSize(5_000, 5_000 * words)) for words in (14, 15))
    for recipe, rate, whole, epochs in ((short, 0.3, 0.0, 12), (long, 0.5, 0.1, 8)):
        model = recipe.model
        assert (model.word_dropout, model.hidden_dropout) == (rate, rate)
        assert model.whole_word_dropout == whole
        assert recipe.train.epochs == epochs


@pytest.mark.parametrize("words", [0, 1, 199, 10**3, 10**5, 10**6, 10**9])
@pytest.mark.parametrize("texts", [1, 999, 10**6])
def test_batches_and_epochs_stay_within_their_bounds(texts, words):
    train = automatic_recipe(DataSize(texts, words)).train
    assert BATCH_WORDS[0] <= train.batch_words <= BATCH_WORDS[1]
    assert train.batch_words % 100 == 0
    assert EPOCHS[0] <= train.epochs <= EPOCHS[1]


def test_words_are_counted_in_some_texts_and_extrapolated():
    texts = ["one two three"] * automatic.SAMPLE + ["not counted " * 100] * 1000
    assert DataSize.of(texts, 2000, max_words=50) == DataSize(2000, 8000)
    assert DataSize.of(["word " * 500, "word"], 2, max_words=50) == DataSize(2, 52)
    assert DataSize.of([], 0, max_words=50) == DataSize(0, 0)


def test_the_estimate_grows_with_words_epochs_and_size():
    size = DataSize(5_000, 100_000)
    recipe = automatic_recipe(size)

    def seconds(section, **settings):
        return estimate_seconds(recipe.updated({section: settings}), size)

    first = estimate_seconds(recipe, size)
    assert estimate_seconds(recipe, DataSize(5_000, 200_000)) > first
    twice = seconds("train", epochs=2 * recipe.train.epochs)
    assert twice == pytest.approx(2 * first)
    assert seconds("model", hidden_size=400) > first
    assert seconds("model", max_depth=9) > first
    assert seconds("train", precision="float32") > seconds("train", precision="bfloat16")


def test_vectors_are_suggested_for_fewer_than_20000_texts():
    assert suggest_vectors(20_000) is None
    assert "add --vectors wordllama" in (suggest_vectors(19_999) or "")


def test_the_estimate_follows_the_speed_of_the_machine(monkeypatch):
    size = DataSize(5_000, 100_000)
    recipe = automatic_recipe(size)
    first = estimate_seconds(recipe, size)
    slow = 3 * automatic._REFERENCE_SECONDS
    monkeypatch.setattr(automatic, "_product_seconds", lambda: slow)
    assert estimate_seconds(recipe, size) == pytest.approx(3 * first)


def test_the_speed_of_the_machine_is_measured(monkeypatch):
    monkeypatch.undo()
    assert 0 < automatic._product_seconds() < 10


def test_a_time_limit_lowers_the_number_of_epochs():
    size = DataSize(5_000, 500_000)
    free = automatic_recipe(size)
    minutes = estimate_seconds(free, size) / 60
    half = automatic_recipe(size, minutes=minutes / 2)
    assert half.train.epochs == free.train.epochs // 2
    assert half.train.minutes == minutes / 2
    assert automatic_recipe(size, minutes=10 * minutes).train.epochs == free.train.epochs
    assert automatic_recipe(size, minutes=1e-6).train.epochs == 1


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.1, "5 seconds"),
        (44, "45 seconds"),
        (61, "1 minute"),
        (170, "3 minutes"),
        (7300, "2 hours"),
    ],
)
def test_the_description_fits_a_narrow_terminal_and_has_an_estimate(monkeypatch, seconds, shown):
    monkeypatch.setattr(automatic, "fast_precision", lambda: "float32")
    monkeypatch.setattr(automatic, "estimate_seconds", lambda recipe, size: seconds)
    size = DataSize(500, 300_000)
    assert describe(automatic_recipe(size), size) == (
        "settings: hidden size 100, max depth 3, 10 epochs, 1,500 words per batch\n"
        f"with float32 and n-grams, training takes about {shown}"
    )
    many = DataSize(200_000, 20_000_000)
    line = describe(automatic_recipe(many), many)
    assert re.search(r" 2,000 words per batch\nwith float32, training takes about ", line)
    assert max(map(len, line.splitlines())) < 80


def test_a_model_without_depths_is_described_without_them():
    size = DataSize(500, 300_000)
    recipe = SettingChanges([], model="bilstm").applied(automatic_recipe(size))
    assert describe(recipe, size).startswith("settings: hidden size 100, 10 epochs, ")


def test_settings_of_the_command_line_win_over_the_rule():
    recipe = automatic_recipe(DataSize(500, 50_000))
    assignments = ["train.epochs=2", "model.hidden_size=64", "model.ngrams=false"]
    changed = SettingChanges(assignments, seed=7).applied(recipe)
    expected = {"model": {"hidden_size": 64, "ngrams": False}, "train": {"epochs": 2, "seed": 7}}
    assert changed == recipe.updated(expected)


@pytest.mark.parametrize(
    ("found", "precision"),
    [
        ({}, "float32"),
        ({"avx2": True, "avx512_f": True, "avx512_bf16": False, "amx_bf16": False}, "float32"),
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True}, "bfloat16"),
    ],
)
def test_the_precision_depends_on_the_processor(monkeypatch, found, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: found)
    assert fast_precision() == precision
    assert automatic_recipe(DataSize(50, 1000)).train.precision == precision


def test_the_precision_of_an_unknown_processor_is_float32(monkeypatch):
    monkeypatch.delattr(torch.cpu, "get_capabilities")
    assert fast_precision() == "float32"
