"""Settings: checked wherever they come from, and unchanged after a round trip."""

import dataclasses
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fathomer.config import ModelConfig, Recipe, TextConfig, TrainConfig
from fathomer.errors import ConfigError, MissingFileError
from fathomer.section import Section

SECTIONS = {"model": ModelConfig, "text": TextConfig, "train": TrainConfig}
FIELDS = [(cls, item) for cls in SECTIONS.values() for item in dataclasses.fields(cls)]
BOUNDS = [(cls, item) for cls, item in FIELDS if item.metadata["low"] is not None]


def values_of(cls: type[Section], item: dataclasses.Field[Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for the values that a setting accepts."""
    kind = get_type_hints(cls)[item.name]
    low, high = item.metadata["low"], item.metadata["high"]
    if get_origin(kind) is Literal:
        return st.sampled_from(get_args(kind))
    if kind is str:
        return st.sampled_from(["fathomer", "tfidf"])
    if kind is bool:
        return st.booleans()
    if item.name == "hidden_size":
        return st.integers(1, high // 2).map(lambda half: 2 * half)
    if kind is int:
        return st.integers(low, high)
    return st.floats(low, high, allow_nan=False, allow_infinity=False)


SOME_SETTINGS = st.fixed_dictionaries(
    {},
    optional={
        name: st.fixed_dictionaries(
            {}, optional={item.name: values_of(cls, item) for item in dataclasses.fields(cls)}
        )
        for name, cls in SECTIONS.items()
    },
)


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("model.max_dept=3", "unknown setting 'max_dept'; did you mean 'max_depth'?"),
        ("modle.max_depth=3", "unknown section 'modle'; did you mean 'model'?"),
        ("zzz.max_depth=3", "unknown section 'zzz'; choose from model, text, train"),
        ("model.depth.x=3", "unknown setting 'depth.x'; did you mean 'depth'?"),
        ("train.epochs=three", "epochs must be of type int, not 'three'"),
        ("train.epochs=", "epochs must be of type int, not ''"),
        ("train.epochs=3.0", "epochs must be of type int, not 3.0"),
        ("train.epochs=true", "epochs must be of type int, not True"),
        ("train.epochs=[3]", "epochs must be of type int, not [3]"),
        ("train.clip=true", "clip must be of type float, not True"),
        ("train.clip='5'", "clip must be of type float, not '5'"),
        ("model.fixed_words=1", "fixed_words must be of type bool, not 1"),
        (
            "model.depth=deep",
            "depth must be one of gumbel, hard, soft, full, supervised, not 'deep'",
        ),
        ("model.depth=[]", "depth must be one of gumbel, hard, soft, full, supervised, not []"),
        ("train.epochs=0", "epochs must be at least 1, not 0"),
        ("train.decay_to=1.5", "decay_to must be at most 1, not 1.5"),
        ("train.clip=nan", "clip must be at least 0, not nan"),
        ("train.clip=-inf", "clip must be at least 0, not -inf"),
        ("train.clip=inf", "clip must be at most 1000000000, not inf"),
        (
            "text.min_count=99999999999999999999",
            "min_count must be at most 1000000000, not 99999999999999999999",
        ),
        ("model.char_size=100000000000", "char_size must be at most 10000, not 100000000000"),
        ("model.hidden_size=7", "hidden_size must be even (half for each direction), not 7"),
        ("train.epochs", "--set train.epochs: expected section.name=value"),
        ("epochs=3", "--set epochs=3: expected section.name=value; did you mean train.epochs?"),
        ("epoch=3", "--set epoch=3: expected section.name=value"),
        ("train.=3", "--set train.=3: expected section.name=value"),
        ("", "--set : expected section.name=value"),
    ],
)
def test_a_wrong_assignment_is_a_clear_error(assignment, message):
    with pytest.raises(ConfigError) as caught:
        Recipe().with_settings([assignment])
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("assignment", "value"),
    [
        ("train.epochs=3", 3),
        (" train.epochs = 1_000 ", 1000),
        ("train.clip=1", 1.0),
        ("train.clip=1e-3", 0.001),
        ("model.fixed_words=true", True),
        ("model.depth=hard", "hard"),
        ('model.depth="hard"', "hard"),
        ("model.depth='hard'", "hard"),
    ],
)
def test_a_value_is_read_as_toml_or_else_as_a_string(assignment, value):
    recipe = Recipe().with_settings([assignment])
    section, name = assignment.split("=")[0].strip().split(".")
    found = getattr(getattr(recipe, section), name)
    assert (found, type(found)) == (value, type(value))
    assert recipe == Recipe().updated({section: {name: value}})


def test_the_last_assignment_of_a_setting_wins():
    recipe = Recipe().with_settings(["train.epochs=3", "train.clip=2", "train.epochs=4"])
    assert recipe == Recipe(train=TrainConfig(epochs=4, clip=2.0))


def test_settings_are_checked_after_all_assignments():
    recipe = Recipe().with_settings(["model.hidden_size=7", "model.sequence=none"])
    assert recipe.model.hidden_size == 7


def test_an_infinite_learning_rate_is_refused():
    with pytest.raises(ConfigError):
        TrainConfig(learning_rate=float("inf"))


def test_a_number_too_large_for_a_float_is_refused():
    with pytest.raises(ConfigError):
        Recipe().with_settings(["train.clip=1" + 400 * "0"])


@pytest.mark.parametrize(("cls", "item"), BOUNDS, ids=[item.name for _, item in BOUNDS])
def test_a_range_includes_its_bounds_and_nothing_beyond(cls, item):
    sequence = {"sequence": "none"} if cls is ModelConfig and item.name == "hidden_size" else {}
    for bound, step in ((item.metadata["low"], -1), (item.metadata["high"], 1)):
        if bound is not None:
            assert getattr(cls(**sequence, **{item.name: bound}), item.name) == bound
            with pytest.raises(ConfigError, match=f"{item.name} must be at "):
                cls(**sequence, **{item.name: bound + step})


@pytest.mark.parametrize("size", [7, 8])
@pytest.mark.parametrize("sequence", ["none", "sinusoidal", "learned"])
def test_an_odd_hidden_size_is_allowed_without_a_bilstm(size, sequence):
    assert ModelConfig(hidden_size=size, sequence=sequence).hidden_size == size


def test_every_setting_has_a_description():
    assert all(item.metadata["doc"] for _, item in FIELDS)


@pytest.mark.parametrize("cls", [Recipe, *SECTIONS.values()])
def test_settings_are_frozen(cls):
    config = cls()
    for item in dataclasses.fields(cls):
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(config, item.name, None)
    assert config == cls()
    assert hash(config) == hash(cls())


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"[train\nepochs = 3", "Expected ']'"),
        (b"[train]\nepochs = 3\nepochs = 4", "Cannot overwrite a value"),
        (b"\xff", "decode byte 0xff"),
        (b"train = 3", "train is a section, not a setting; write train.<setting>"),
        (b"epochs = 3", "unknown section 'epochs'"),
        (b"[train]\nepoch = 3", "unknown setting 'epoch'; did you mean 'epochs'?"),
        (b"[train]\nepochs = 0", "epochs must be at least 1, not 0"),
        (b"[train]\nepochs = 1979-05-27", "epochs must be of type int"),
    ],
)
def test_an_invalid_recipe_is_one_line_with_the_name_of_its_file(tmp_path, content, message):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        Recipe.from_toml(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_recipe_or_a_folder_is_a_clear_error(tmp_path):
    with pytest.raises(MissingFileError, match=r"none\.toml: no such recipe$"):
        Recipe.from_toml(tmp_path / "none.toml")
    with pytest.raises(ConfigError, match="directory"):
        Recipe.from_toml(tmp_path)


@given(sections=SOME_SETTINGS)
@settings(max_examples=200)
def test_a_recipe_is_the_same_after_a_round_trip(tmp_path_factory, sections):
    recipe = Recipe.from_dict(sections)
    path = tmp_path_factory.getbasetemp() / "recipe.toml"
    path.write_text(recipe.to_toml(), encoding="utf-8")
    assert Recipe.from_toml(path) == recipe
    assert Recipe.from_dict(recipe.to_dict()) == recipe


def test_only_settings_that_differ_from_the_defaults_are_written():
    assert Recipe().to_toml() == ""
    recipe = Recipe().with_settings(["model.depth=hard", "train.clip=1", "train.epochs=10"])
    assert recipe.to_toml() == '[model]\ndepth = "hard"\n\n[train]\nclip = 1.0\n'
