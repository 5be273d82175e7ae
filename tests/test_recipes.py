"""The shipped recipes: each one loads and builds a network."""

import pytest

from fathomer.config import Recipe
from fathomer.errors import ConfigError, MissingFileError
from fathomer.model import DepthAdaptiveNetwork
from fathomer.recipes import (
    FOLDER,
    chosen_recipe,
    find_recipe,
    shipped_recipes,
    starting_recipe,
)


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Work in an empty folder, where no file has the name of a recipe."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_toml_file_is_a_shipped_recipe():
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
def test_a_shipped_recipe_does_not_set_what_the_data_decides(name):
    model = find_recipe(name).model
    assert (model.vocab_size, model.num_labels, model.fixed_words) == (0, 0, False)


def test_a_file_is_a_recipe_whatever_its_name(empty_folder):
    for name in ("mine.toml", "mine", "demo"):
        (empty_folder / name).write_text("[train]\nepochs = 3\n", encoding="utf-8")
        assert find_recipe(name) == Recipe().with_settings(["train.epochs=3"])


def test_the_named_recipe_comes_before_that_of_the_corpus(empty_folder):
    (empty_folder / "trec").write_text("the corpus is meant, not this file", encoding="utf-8")
    assert starting_recipe("trec") == Recipe.from_toml(shipped_recipes()["trec"])
    assert starting_recipe("trec", "small") == find_recipe("small")
    assert starting_recipe("amazon16/books") == find_recipe("amazon16")
    assert starting_recipe("mine.csv") == Recipe()


def test_without_a_recipe_the_settings_follow_from_the_data_except_for_the_demo():
    assert chosen_recipe("mine.csv", None) is None
    assert chosen_recipe("trec", None) is None
    assert chosen_recipe("demo", None) == find_recipe("demo")
    assert chosen_recipe("demo", "small") == chosen_recipe("mine.csv", "small")


def test_the_recipe_paper_is_that_of_the_corpus_or_the_defaults():
    assert chosen_recipe("mine.csv", "paper") == Recipe()
    assert chosen_recipe("trec", "paper") == find_recipe("trec")
    assert chosen_recipe("amazon16/books", "paper") == find_recipe("amazon16")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("dmo", "dmo: no such recipe; did you mean 'demo'?"),
        ("none.toml", "none.toml: no such recipe"),
    ],
)
def test_an_unknown_recipe_is_a_clear_error(name, message):
    with pytest.raises(MissingFileError) as caught:
        find_recipe(name)
    assert str(caught.value) == message


def test_if_no_name_is_close_all_recipes_are_listed():
    with pytest.raises(MissingFileError) as caught:
        find_recipe("zzzzzzzz")
    listed = ", ".join(sorted(shipped_recipes()))
    assert str(caught.value) == f"zzzzzzzz: no such recipe; choose from {listed}"


def test_a_folder_does_not_hide_a_recipe_of_the_same_name(empty_folder):
    (empty_folder / "demo").mkdir()  # as after `fathomer train demo --out demo`
    assert find_recipe("demo") == Recipe.from_toml(shipped_recipes()["demo"])


def test_an_invalid_recipe_names_its_file(empty_folder):
    (empty_folder / "mine.toml").write_text("[train]\nepoch = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"^mine\.toml: unknown setting 'epoch'; did you mean"):
        find_recipe("mine.toml")
