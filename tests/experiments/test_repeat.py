"""Repeating a run from its JSON file."""

import json
import sys
from dataclasses import replace
from functools import partial

from experiments.execute import execute


def test_a_repeated_run_gives_the_same_answers(run_experiments, executed, tmp_path, forked_workers):
    path = executed[1].save(tmp_path / "results")
    code, out, err = run_experiments("repeat", str(path))
    assert (code, out.splitlines()[1]) == (0, "the same test texts are correct")
    assert "not those of the run" not in err
    assert "another processor" not in err


class JobsHere:
    """Jobs that are executed in this process, one after the other."""

    def __init__(self, jobs, **_):
        self.jobs = jobs

    def run(self):
        for job in self.jobs:
            execute(job, partial(print, file=sys.stderr)).save(job.results)


def test_a_repetition_reports_every_difference(run_experiments, executed, tmp_path, monkeypatch):
    monkeypatch.setattr("experiments.repeat.ParallelJobs", JobsHere)
    run = executed[1]
    changed = replace(
        run, accuracy=0.123, correct="00" * 3, checksums={"train": "0", "test": "0"},
        machine={**run.machine, "processor": "an abacus"},
    )  # fmt: skip
    path = changed.save(tmp_path / "results")
    code, out, err = run_experiments("repeat", str(path), "--json")
    assert code == 1
    assert "The texts or vectors are not those of the run." in err
    assert "The run was made on another processor (an abacus)." in err
    assert json.loads(out) == {"before": 0.123, "now": run.accuracy, "same_answers": False}
