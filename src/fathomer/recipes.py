"""The recipes that come with Fathomer, by name: of trainings, and of experiments."""

import tomllib
from pathlib import Path

from fathomer.config import Recipe
from fathomer.errors import MissingFileError, did_you_mean


def recipes_folder() -> Path:
    """Find the recipes: inside the installed package, or beside the sources in a checkout."""
    here = Path(__file__).resolve().parent
    packaged = here / "recipes"
    return packaged if packaged.is_dir() else here.parents[1] / "recipes"


def shipped_recipes() -> dict[str, Path]:
    """Name the recipes that come with Fathomer."""
    return {name: path for name, path in _shipped().items() if not _is_experiment(path)}


def shipped_experiments() -> dict[str, Path]:
    """Name the experiments that come with Fathomer."""
    return {name: path for name, path in _shipped().items() if _is_experiment(path)}


def _shipped() -> dict[str, Path]:
    folder = recipes_folder()
    paths = sorted(folder.rglob("*.toml"))
    return {path.relative_to(folder).with_suffix("").as_posix(): path for path in paths}


def _is_experiment(path: Path) -> bool:
    return "experiment" in tomllib.loads(path.read_text(encoding="utf-8"))


def find_recipe(name: str) -> Recipe:
    """Read a recipe: a file, or one that comes with Fathomer."""
    shipped = shipped_recipes()
    if name in shipped and not Path(name).is_file():
        return Recipe.from_toml(shipped[name])
    if not Path(name).is_file() and not name.endswith(".toml"):
        raise MissingFileError(f"{name}: no such recipe; {did_you_mean(name, shipped)}")
    return Recipe.from_toml(Path(name))


def starting_recipe(data: str, name: str | None = None) -> Recipe:
    """Read what a training starts from: the named recipe, else the corpus's own, else defaults."""
    if name:
        return find_recipe(name)
    own = shipped_recipes().get(data)
    return Recipe.from_toml(own) if own else Recipe()
