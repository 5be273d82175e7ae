"""Optional packages: a missing one is an error that says how to install it."""

import json
import tomllib
from pathlib import Path

import pytest

from fathomer.errors import EXTRAS, MissingExtraError, require


def test_an_installed_package_is_imported():
    assert require("json", "plots") is json


def test_a_missing_package_is_an_error_that_says_how_to_install_it():
    with pytest.raises(MissingExtraError) as caught:
        require("no_such_package", "plots")
    message = (
        "a plot needs no_such_package: pip install 'fathomer[plots]', "
        "or pip install -c constraints.txt '.[plots]' in a clone"
    )
    assert (str(caught.value), caught.value.name) == (message, "no_such_package")


def test_every_extra_of_the_package_has_a_purpose():
    pyproject = Path(__file__).parents[1] / "pyproject.toml"
    project = tomllib.loads(pyproject.read_text(encoding="utf-8"))["project"]
    assert EXTRAS.keys() == project["optional-dependencies"].keys() - {"dev"}
