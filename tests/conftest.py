"""Fixtures and settings of all tests; tensor shapes are checked by jaxtyping while they run."""

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

# One thread, also in subprocesses: small networks gain nothing from a second one, and are much slower
# when another program uses that core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Must run before these packages are imported: the hook rewrites modules while they are loaded.
jaxtyping.install_import_hook(["fathomer.model", "experiments.rivals"], "beartype.beartype")

# Shells start background jobs with Ctrl-C ignored. Subprocesses would inherit that, and some tests
# interrupt them with Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)


# The same examples in every run, without a time limit, so that a failure is caused by a change.
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
    """The demo's model, and what its training printed."""

    folder: Path
    metrics: dict
    messages: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Train the demo on the command line, once for all tests."""
    folder = tmp_path_factory.mktemp("demo") / "model"
    command = [sys.executable, "-m", "fathomer", "train", "demo", "--out", str(folder)]
    done = subprocess.run([*command, "--json"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return Demo(folder, json.loads(done.stdout), done.stderr)


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs a command in an empty folder and returns exit code, stdout and stderr.

    The folder is also the data folder.
    """
    from fathomer.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FATHOMER_DATA", str(tmp_path))

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["fathomer", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, *capsys.readouterr()

    return run
