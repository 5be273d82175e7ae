"""Fixtures: the command line of the experiments, and a small experiment on a small file."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from experiments.__main__ import main
from experiments.execute import execute
from experiments.plan import Experiment
from tests.experiments.small import new_job, write_experiment
from tests.forked import Forked


@pytest.fixture
def run_experiments(run, monkeypatch, capsys):
    """Run ``python -m experiments`` in the empty folder of ``run``; return code, stdout and stderr."""

    def run_main(*arguments):
        monkeypatch.setattr(sys, "argv", ["experiments", *arguments])
        with pytest.raises(SystemExit) as caught:
            main()
        return caught.value.code, *capsys.readouterr()

    return run_main


@pytest.fixture
def forked_workers(monkeypatch):
    """Fork the workers of experiments: new processes import PyTorch for seconds."""
    started = []

    def start(command, **_):
        assert command[-2:] == ["-m", "experiments.worker"]
        started.append(Forked(program="experiments.worker", pipes=True))
        return started[-1]

    pipes = {"PIPE": subprocess.PIPE, "DEVNULL": subprocess.DEVNULL}
    monkeypatch.setattr("experiments.parallel.subprocess", SimpleNamespace(Popen=start, **pipes))
    yield
    for process in started:
        process.close()


@pytest.fixture
def experiment(tmp_path):
    """Write an experiment with cross validation on a small file."""
    return write_experiment(tmp_path)


@pytest.fixture
def executed(experiment, tmp_path):
    """Execute the first run of the experiment in this process; return plan, run and log."""
    plan = Experiment.from_toml(experiment).plans()[0]
    lines = []
    run = execute(new_job(plan, tmp_path), lines.append)
    return plan, run, lines
