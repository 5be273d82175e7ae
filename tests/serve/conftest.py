import pytest

from tests.serve.process import service
from tests.tiny import tiny_artifact


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("served") / "model"
    tiny_artifact().save(folder)
    return folder


@pytest.fixture(scope="session")
def running(model):
    """One service for all tests that leave it as they find it."""
    with service(model, "--limit", "body_bytes=50000", "--limit", "body_seconds=1") as found:
        yield found
