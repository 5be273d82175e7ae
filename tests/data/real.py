"""The real corpora, where they are; the tests that need them are skipped where they are not."""

import os
from pathlib import Path

import pytest

from fathomer.data.corpora import CORPORA
from fathomer.data.places import is_present


def real_data(name: str) -> Path:
    """Find the folder of the real data, or skip the test and say why."""
    repository = Path(__file__).resolve().parents[2]
    folder = Path(os.environ.get("FATHOMER_TEST_DATA", repository.parent / "shared" / "data"))
    if not is_present(CORPORA[name], folder):
        pytest.skip(f"the real {name} is not there: {folder / CORPORA[name].folder}")
    return folder
