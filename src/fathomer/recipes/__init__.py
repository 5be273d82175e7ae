"""Recipes that ship with Fathomer."""

from pathlib import Path

from fathomer.config import Recipe
from fathomer.errors import MissingFileError, did_you_mean

FOLDER = Path(__file__).resolve().parent


def shipped_recipes() -> dict[str, Path]:
    """Return the files of the shipped recipes by name."""
    return {path.stem: path for path in sorted(FOLDER.glob("*.toml"))}


def find_recipe(name: str) -> Recipe:
    """Read a recipe file, or a shipped recipe by its name."""
    shipped = shipped_recipes()
    if name in shipped and not Path(name).is_file():
        return Recipe.from_toml(shipped[name])
    if not Path(name).is_file() and not name.endswith(".toml"):
        raise MissingFileError(f"{name}: no such recipe; {did_you_mean(name, shipped)}")
    return Recipe.from_toml(Path(name))


def chosen_recipe(data: str, name: str | None) -> Recipe | None:
    """Return the recipe of a training run, or ``None`` if its settings follow from the data.

    ``paper`` stands for the paper's settings, with the epochs and batches of a corpus that has its
    own recipe. Without a name, the demo corpus is trained with its own.
    """
    if name == "paper":
        return starting_recipe(data)
    if name or data == "demo":
        return find_recipe(name or data)
    return None


def starting_recipe(data: str, name: str | None = None) -> Recipe:
    """Return the named recipe, or the one for the corpus or its family, or the defaults."""
    if name:
        return find_recipe(name)
    family = "" if Path(data).suffix else data.partition("/")[0]  # amazon16/books -> amazon16
    own = shipped_recipes().get(family)
    return Recipe.from_toml(own) if own else Recipe()
