"""The recipes that come with Fathomer: each one loads, and each one builds a network."""

import pytest

from fathomer.config import Recipe
from fathomer.errors import ConfigError, MissingFileError
from fathomer.model import DepthAdaptiveNetwork
from fathomer.recipes import (
    FOLDER,
    find_recipe,
    shipped_recipes,
    starting_recipe,
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Work in a folder of our own, where no file has the name of a recipe."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_demo_has_a_recipe_and_every_recipe_a_name():
    assert shipped_recipes()["demo"] == FOLDER / "demo.toml"
    assert sorted(shipped_recipes().values()) == sorted(FOLDER.rglob("*.toml"))


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_shipped_recipe_loads_and_builds_a_network(name):
    recipe = find_recipe(name)
    assert Recipe.from_toml(shipped_recipes()[name]) == recipe
    sized = recipe.updated({"model": {"vocab_size": 10, "num_labels": 2}})
    network = DepthAdaptiveNetwork(sized.model)
    assert network.output.weight.shape == (2, 3 * recipe.model.hidden_size)


@pytest.mark.parametrize("name", shipped_recipes())
def test_a_shipped_recipe_leaves_to_the_data_what_the_data_decides(name):
    model = find_recipe(name).model
    assert (model.vocab_size, model.num_labels, model.fixed_words) == (0, 0, False)


def test_a_file_is_a_recipe_whatever_its_name(empty_folder):
    for name in ("mine.toml", "mine", "demo"):
        (empty_folder / name).write_text("[train]\nepochs = 3\n", encoding="utf-8")
        assert find_recipe(name) == Recipe().with_settings(["train.epochs=3"])


def test_a_training_starts_from_the_named_recipe_else_from_that_of_its_corpus(empty_folder):
    (empty_folder / "trec").write_text("the corpus is meant, not this file", encoding="utf-8")
    assert starting_recipe("trec") == Recipe.from_toml(shipped_recipes()["trec"])
    assert starting_recipe("trec", "small") == find_recipe("small")
    assert starting_recipe("amazon16/books") == find_recipe("amazon16")
    assert starting_recipe("mine.csv") == Recipe()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dmo", "dmo: no such recipe; did you mean 'demo'?"),
        ("none.toml", "none.toml: no such recipe"),
    ],
)
def test_an_unknown_recipe_is_one_line_that_says_what_to_do(name, message):
    with pytest.raises(MissingFileError) as caught:
        find_recipe(name)
    assert str(caught.value) == message


def test_an_unlikely_name_is_answered_with_all_recipes():
    with pytest.raises(MissingFileError) as caught:
        find_recipe("zzzzzzzz")
    listed = ", ".join(sorted(shipped_recipes()))
    assert str(caught.value) == f"zzzzzzzz: no such recipe; choose from {listed}"


def test_a_folder_does_not_hide_a_recipe_of_the_same_name(empty_folder):
    (empty_folder / "demo").mkdir()  # as after `fathomer train demo --out demo`
    assert find_recipe("demo") == Recipe.from_toml(shipped_recipes()["demo"])


def test_a_wrong_recipe_names_its_file(empty_folder):
    (empty_folder / "mine.toml").write_text("[train]\nepoch = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^mine\.toml: unknown setting 'epoch'; did you mean"):
        find_recipe("mine.toml")
