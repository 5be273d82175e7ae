"""The real corpora; tests that need one are skipped where it is missing."""

import os
from pathlib import Path

import pytest

from fathomer.data.datasets import CORPORA
from fathomer.data.layouts import is_present


def real_folder() -> Path:
    """Return the folder in which the real data is looked for."""
    repository = Path(__file__).resolve().parents[2]
    return Path(os.environ.get("FATHOMER_TEST_DATA", repository.parent / "shared" / "data"))


def real_data(name: str) -> Path:
    """Return the folder of the real data, or skip the test if the corpus is missing."""
    folder = real_folder()
    if not is_present(CORPORA[name], folder):
        pytest.skip(f"the real {name} is missing: {folder / CORPORA[name].folder}")
    return folder
