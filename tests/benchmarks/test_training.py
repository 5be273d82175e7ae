"""The training benchmark: every case trains the same batches, in processes of its own."""

import json
from dataclasses import replace
from types import SimpleNamespace

from benchmarks import training
from benchmarks.training import TrainingCase, TrainingPlan, largest_ratio
from tests.forked import run_forked

SMALL = TrainingPlan(max_depth=2, vocabulary=500, steps=2, rounds=1)
SIZES = ("--hidden-size", "8", "--batch-words", "600")


def test_one_process_and_several_are_measured_in_turns(bench, monkeypatch):
    threads = []

    def run(command, *, cwd, env, **_):
        threads.append(env["OMP_NUM_THREADS"])
        return run_forked(command[1:], cwd)

    monkeypatch.setattr(training, "QUICK", SMALL)
    monkeypatch.setattr(training, "subprocess", SimpleNamespace(run=run))
    code, out, err = bench("training", "--quick", *SIZES, "--json", "--out", "found.json")
    assert code == 0, err
    found = json.loads(out)
    assert (found["plan"]["hidden_size"], found["plan"]["batch_words"]) == (8, 600)
    assert [(row["processes"], row["threads"]) for row in found["rows"]] == [(1, 1), (1, 2), (2, 1)]
    assert threads == ["1", "2", "1"]
    assert all(row["words_per_second"] > 0 for row in found["rows"])


def test_the_ratios_are_those_of_the_medians(monkeypatch, bench):
    speeds = {TrainingCase(1, 1): 100.0, TrainingCase(1, 2): 150.0, TrainingCase(2, 1): 180.0}
    monkeypatch.setattr(training, "_run", lambda plan, case: speeds[case])
    code, out, _ = bench("training")
    assert code == 0
    assert "processes / one process              1.80\n" in out
    assert "processes / threads                  1.20\n" in out


def test_the_busiest_process_limits_the_ratio():
    """Batches of few long texts cannot be divided evenly."""
    plan = TrainingPlan(vocabulary=500)
    assert largest_ratio(plan, 1) == 1.0
    assert 1.7 < largest_ratio(plan, 2) < 1.99
    assert largest_ratio(replace(plan, batch_words=8000), 2) > 1.99
