"""Fixtures and settings of all tests; jaxtyping checks the shapes in those of the networks."""

import gc
import json
import os
import re
import signal
import sys
from functools import cache
from io import BytesIO, TextIOWrapper
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

import jaxtyping
import pytest
import typer.main
from hypothesis import HealthCheck, settings

from tests.forked import Forked

# One thread, also in subprocesses: small networks gain nothing from a second one, and are much slower
# when another program uses that core.
os.environ.setdefault("OMP_NUM_THREADS", "1")

# Must run before these packages are imported: the hook rewrites modules while they are loaded.
jaxtyping.install_import_hook(["fathomer.model", "experiments.rivals"], "beartype.beartype")
jaxtyping.config.update("jaxtyping_disable", True)  # until a test needs it

# Nothing that is imported for the tests is ever freed, but the garbage collector would visit all of it
# again and again; it is enabled once the tests are collected.
gc.disable()

# Typer builds all commands of an app anew whenever it is called, which takes longer than most of them.
typer.main.get_command = cache(typer.main.get_command)

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


TOGETHER = {
    "demo": ["test_contributions", "test_demo", "test_howto", "test_readme"],
    "tutorial": ["test_tutorial"],
    "service": [
        *("serve/test_connections", "serve/test_hostile", "serve/test_limits", "serve/test_routes"),
        *("serve/test_shutdown", "serve/test_worker", "serve/test_page", "serve/test_page_tables"),
    ],
    "processes": ["train/test_processes"],
    "ray": ["test_answer_dataset", "test_dataset", "benchmarks/test_scale"],
}
"""Files that share a trained model, a service or a browser, by the name of what they share.

Tests of services mostly wait: in one worker, they leave the cores to the others.
"""
GROUPS = {f"tests/{file}.py": name for name, files in TOGETHER.items() for file in files}
FITTED = re.compile(
    r"(?:Rivals|ShippedModels)::test_"
    r"(?:it_learns_64_examples|a_prediction_does_not_depend_on_the_other_texts"
    r"|a_saved_model_predicts_the_same)\[(.*)\]$"
)
"""The tests of all models that share a trained model of each, by name."""


def group_of(nodeid):
    """Return the name of the group that a test belongs to; a test without one is its own group."""
    if shared := FITTED.search(nodeid):
        return f"fitted {shared[1]}"
    return GROUPS.get(nodeid.partition("::")[0], nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Mark the tests that start a Ray or several training processes: ``pytest -m scale``."""
    for item in items:
        if group_of(item.nodeid) in ("ray", "processes"):
            item.add_marker("scale")


def pytest_collection_finish():
    """Collect garbage from now on, but only of what the tests allocate."""
    gc.enable()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item):
    """Check shapes where every network is run, also in training; elsewhere it only takes time.

    The tests of sizes build networks by the hundred, but hardly run them.
    """
    networks = item.nodeid.startswith(("tests/model/", "tests/experiments/rivals/"))
    jaxtyping.config.update("jaxtyping_disable", not networks or item.path.name == "test_sizes.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config):
    """Start one worker more than there are cores: a worker often waits for other processes."""
    return os.cpu_count() + 1


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Run the files that belong together in one worker, and everything else test by test.

    The largest groups start first. The option ``--dist loadgroup`` would do the same, but pytest 9.2
    ignores its marks (pytest-xdist issue 1386).
    """
    from xdist.scheduler import LoadScopeScheduling

    class Scheduler(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            return group_of(nodeid)

    return Scheduler(config, log)


class Demo(NamedTuple):
    """The demo's model, and what its training printed."""

    folder: Path
    metrics: dict
    messages: str


@pytest.fixture(scope="session")
def demo(tmp_path_factory):
    """Train the demo on the command line, once for all tests."""
    folder = tmp_path_factory.mktemp("demo") / "model"
    with Forked("train", "demo", "--out", str(folder), "--json", pipes=True) as process:
        messages, printed = process.stderr.read(), process.stdout.read()
    assert process.returncode == 0, messages
    return Demo(folder, json.loads(printed), messages)


@pytest.fixture(scope="session")
def ray():
    """Start a Ray of two workers on this machine, without a dashboard and with little memory."""
    ray = pytest.importorskip("ray", reason="ray is not installed: pip install 'fathomer[scale]'")
    os.environ |= {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_BACKEND_LOG_LEVEL": "fatal",
        "RAY_worker_niceness": "0",  # with Ray's 15, the other tests would starve the workers
    }
    limits = {"num_cpus": 3, "object_store_memory": 100 << 20}  # two for workers, one to read
    ray.init("local", include_dashboard=False, logging_level="ERROR", log_to_driver=False, **limits)
    yield ray
    ray.shutdown()


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs a command in an empty folder and returns exit code, stdout and stderr.

    The folder is also the data folder. The bytes ``piped`` are the standard input.
    """
    from fathomer.cli import main

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("FATHOMER_DATA", str(tmp_path))

    def run(*arguments, piped=None):
        monkeypatch.setattr(sys, "argv", ["fathomer", *arguments])
        if piped is not None:
            monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(piped)))
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def clock(monkeypatch):
    """Advance the clock of a search by a second at every look: a trial then takes about ten."""
    seconds = count()
    monkeypatch.setattr("fathomer.tune.time", SimpleNamespace(monotonic=lambda: next(seconds)))
