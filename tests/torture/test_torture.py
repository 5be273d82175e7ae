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

RESULTS = Path(__file__).parents[2] / "build" / "torture"
SCALE = float(os.environ.get("FATHOMER_TORTURE", "1"))


def isolated(trial, each=1):
    """Return a function that runs a trial, which counts as several, and returns trials and failures."""
    return lambda count: (count * each, run_isolated(trial, count))


PARTS = {
    "kills of a training": (200, 2, kills.train_kills),
    "kills of predict --out": (100, 2, kills.predict_kills),
    "changed model folders": (2000, 60, isolated(trials.model_folder)),
    "damaged checkpoints and answers": (1000, 60, isolated(trials.crash_state)),
    "changed data and vector files": (2000, 100, isolated(trials.data_file)),
    "hostile strings": (1_000_000 // trials.STRINGS, 2, isolated(trials.strings, trials.STRINGS)),
}
"""Trials of the campaign, trials in ``make test``, and the function that runs them."""


@pytest.mark.parametrize("name", PARTS)
def test_a_few_trials_do_no_harm(name):
    _, few, attack = PARTS[name]
    assert attack(few)[1] == []


def test_load_with_killed_workers_loses_nothing():
    requests, failures = load(3, clients=2)
    assert requests > 2
    assert [line for line in failures if "memory" not in line] == []  # too short to tell


@pytest.mark.torture
@pytest.mark.parametrize("name", ["requests under load", *PARTS])
def test_the_campaign(name):
    began = time.monotonic()
    if name in PARTS:
        count, _, attack = PARTS[name]
        tried, failures = attack(max(1, round(count * SCALE)))
    else:
        tried, failures = load(600 * SCALE)
    _record(name, tried, failures, time.monotonic() - began)
    assert failures == []


def _record(name, tried, failures, seconds):
    """Keep the result for ``python -m tests.torture.report``."""
    command = ["git", "rev-parse", "--short", "HEAD"]
    commit = subprocess.run(command, capture_output=True, text=True, cwd=RESULTS.parents[1]).stdout
    found = {"tried": tried, "failures": failures, "seconds": round(seconds)}
    RESULTS.mkdir(parents=True, exist_ok=True)
    content = json.dumps({"name": name, **found, "commit": commit.strip()}, indent=1)
    (RESULTS / f"{name.replace(' ', '-')}.json").write_text(content, encoding="utf-8")
