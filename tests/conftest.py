"""Run every test with the shapes of `fathomer.model` checked: jaxtyping's annotations are executed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import jaxtyping
import pytest
from hypothesis import HealthCheck, settings

# One thread, here and in the processes that tests start: small networks gain nothing from a second
# one, and lose much when another program wants its core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Before anything imports these packages: the hook rewrites modules while they are loaded.
jaxtyping.install_import_hook(["fathomer.model", "experiments.rivals"], "beartype.beartype")

# A shell that runs the tests in the background has them ignore Ctrl-C; the commands that they start
# would inherit that, and some tests are about Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The same texts every time, however busy the machine is: who changes a thing sees its own mistakes.
settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("fixed")


def pytest_collection_modifyitems(items):
    """Run all tests that use the demo model in one worker, so that it is trained once."""
    for item in items:
        if "demo" in item.fixturenames:
            item.add_marker(pytest.mark.xdist_group("demo"))


class Demo(NamedTuple):
    """Hold the demo's model and what its training printed."""

    folder: Path
    metrics: dict
    messages: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Train the demo as a user would; give the model's folder and what the command printed."""
    folder = tmp_path_factory.mktemp("demo") / "model"
    command = [sys.executable, "-m", "fathomer", "train", "demo", "--out", str(folder)]
    done = subprocess.run([*command, "--baseline", "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Demo(folder, json.loads(done.stdout), done.stderr)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run a command in an empty folder, which is also the data folder; give code, out and err."""
    from fathomer.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FATHOMER_DATA", str(tmp_path))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fathomer", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, *capsys.readouterr()

    return run
