"""The command line of the experiments."""

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest
import typer

import experiments
from experiments.__main__ import app
from experiments.plan import find_experiment, shipped_experiments
from fathomer.config import Recipe
from tests.experiments.small import ROOT


def test_the_package_runs_from_a_clone():
    path = os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-m", "experiments", "--help"],
        cwd=ROOT, env={**os.environ, "PYTHONPATH": path}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    for command in ("train", "run", "repeat", "report", "depths"):
        assert re.search(rf"^  {command} ", done.stdout, re.MULTILINE)


def test_finished_runs_are_not_repeated(run_experiments, experiment, tmp_path, forked_workers):
    results = tmp_path / "experiments" / "results" / "runs"
    code, out, err = run_experiments("run", str(experiment), "--only", "*fold1*", "--limit", "1")
    assert (code, out) == (0, "1 of 3 runs are in experiments/results\n")
    assert "1 done, 0 running, 0 left" in err
    (first,) = results.iterdir()
    recorded = json.loads(first.read_text(encoding="utf-8"))["command"]
    assert recorded == f"python -m experiments run {experiment} --only {first.stem}"
    code, out, err = run_experiments("run", str(experiment), "--only", "*-tfidf-*fold1*", "--json")
    assert code == 0
    assert json.loads(out)["runs"] == 1
    assert "1 runs, 1 of them to do" in err
    code, out, err = run_experiments("run", str(experiment), "--dry-run")
    assert "5 runs, 3 of them to do" in err
    names = out.split()
    code, out, _ = run_experiments("run", str(experiment), "--dry-run", "--json")
    assert (code, json.loads(out)) == (0, {"runs": 5, "left": names})
    assert first in results.iterdir()
    assert list((tmp_path / "build" / "experiments").iterdir()) == [], "nothing is left behind"


@pytest.mark.parametrize("name", shipped_experiments())
def test_a_shipped_experiment_is_run_by_name(run_experiments, name):
    code, out, err = run_experiments("run", name, "--dry-run", "--json")
    assert code == 0, err
    assert len(json.loads(out)["left"]) == json.loads(out)["runs"]


def test_ctrl_c_says_that_the_same_command_continues(run_experiments, experiment, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.parallel.ParallelJobs.run", interrupt)
    code, out, err = run_experiments("run", str(experiment))
    assert (code, out) == (130, "")
    assert err.endswith("epochs and runs are kept; the same command continues.\n")


def test_what_is_missing_is_reported_in_one_line(run_experiments, experiment):
    code, out, err = run_experiments("run", "none.toml")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "no such experiment" in err
    assert "no run is called x; " in run_experiments("run", str(experiment), "--only", "x")[2]
    assert run_experiments("report", "--results", "typo") == (
        2, "", "fathomer: typo: there are no runs in this folder\n"
    )  # fmt: skip
    assert not Path("RESULTS.md").exists()
    assert not Path("typo").exists()
    assert "no such run" in run_experiments("repeat", "none.json")[2]
    code, _, err = run_experiments("train", "demo", "--model", "text-cn", "--out", "m")
    assert code == 2
    assert "unknown model 'text-cn'; did you mean 'text-cnn'?" in err


def shown_commands():
    """Find the commands of this package in all blocks of code of the documents."""
    for document in sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]):
        for block in re.findall(r"^```\w*\n(.*?)^```$", document.read_text("utf-8"), re.M | re.S):
            for command in re.findall(r"^(?:\$ )?python -m experiments (.*)", block, re.MULTILINE):
                yield pytest.param(command.partition(" > ")[0], id=f"{document.stem}: {command}")


@pytest.mark.parametrize("command", list(shown_commands()))
def test_a_command_in_the_documents_has_options_and_settings_that_exist(command):
    name, *arguments = shlex.split(command, comments=True)
    found = typer.main.get_command(app).commands[name]
    given = found.make_context("experiments", arguments).params  # parses, but does not run
    Recipe().with_settings(given.get("set_") or [])
    if name == "run":
        assert find_experiment(given["experiment"]).is_file()


def test_every_option_is_explained_and_every_command_has_an_example():
    for name, command in typer.main.get_command(app).commands.items():
        assert f"Example: python -m experiments {name}" in command.help
        assert all(item.help for item in command.params), name


@pytest.mark.parametrize(
    "name", [module.name for module in walk_packages(experiments.__path__, "experiments.")]
)
def test_the_examples_in_docstrings_run(name):
    assert doctest.testmod(import_module(name)).failed == 0
