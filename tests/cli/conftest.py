"""A small recipe, model and data file in the folder in which ``run`` runs commands."""

import pytest

from tests.tiny import TINY, tiny_artifact, tiny_examples, write_csv


@pytest.fixture
def recipe(tmp_path):
    path = tmp_path / "tiny.toml"
    path.write_text(TINY.to_toml(), encoding="utf-8")
    return str(path)


@pytest.fixture
def model(tmp_path):
    tiny_artifact().save(tmp_path / "model")
    return "model"


@pytest.fixture
def data(tmp_path):
    write_csv(tmp_path / "data.csv", tiny_examples())
    return "data.csv"


@pytest.fixture
def interrupt():
    """A function that raises KeyboardInterrupt whatever its arguments, as if Ctrl-C was pressed."""

    def raise_interrupt(*_, **__):
        raise KeyboardInterrupt

    return raise_interrupt
