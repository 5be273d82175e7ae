"""The attacks, with a few trials each in ``make test`` and all of them in ``make torture``."""

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from tests.torture import kills, trials
from tests.torture.isolated import run_isolated
from tests.torture.load import load

RESULTS = Path(__file__).parents[2] / "build" / "torture.json"
SCALE = float(os.environ.get("FATHOMER_TORTURE", "1"))

PARTS = {
    "kills of a training": (200, 2, kills.train_kills),
    "kills of predict --out": (100, 2, kills.predict_kills),
    "changed model folders": (2000, 60, lambda n: run_isolated(trials.model_folder, n)),
    "damaged checkpoints and answers": (1000, 60, lambda n: run_isolated(trials.crash_state, n)),
    "changed data and vector files": (2000, 100, lambda n: run_isolated(trials.data_file, n)),
}
"""Trials of the campaign, trials in ``make test``, and the function that runs them."""


@pytest.mark.parametrize("name", PARTS)
def test_a_few_trials_do_no_harm(name):
    _, few, attack = PARTS[name]
    assert attack(few) == []


def test_hostile_strings_do_no_harm():
    assert run_isolated(trials.strings, 2) == []


def test_load_with_killed_workers_loses_nothing():
    requests, failures = load(5, clients=2)
    assert requests > 2
    assert [line for line in failures if "memory" not in line] == []  # too short to tell


@pytest.mark.torture
@pytest.mark.parametrize("name", [*PARTS, "hostile strings", "requests under load"])
def test_the_campaign(name):
    began = time.monotonic()
    if name in PARTS:
        tried = max(1, round(PARTS[name][0] * SCALE))
        failures = PARTS[name][2](tried)
    elif name == "hostile strings":
        trials_needed = max(1, round(1_000_000 * SCALE / trials.STRINGS))
        tried, failures = (
            trials_needed * trials.STRINGS,
            run_isolated(trials.strings, trials_needed),
        )
    else:
        tried, failures = load(600 * SCALE)
    _record(name, tried, failures, time.monotonic() - began)
    assert failures == []


def _record(name, tried, failures, seconds):
    """Keep the result for ``python -m tests.torture.report``."""
    found = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() else {}
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"],
        capture_output=True,
        text=True,
        cwd=RESULTS.parents[1],
    ).stdout.strip()
    found[name] = {
        "tried": tried,
        "failures": failures,
        "seconds": round(seconds),
        "commit": commit,
    }
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(found, indent=1), encoding="utf-8")
