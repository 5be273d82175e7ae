"""Experiments: what is planned, what is run once only, and what survives being killed."""

import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import parallel as crew_module
from experiments.parallel import Crew, threads_of
from experiments.plan import Experiment, Plan, find_experiment
from experiments.run import Job, carry_out
from experiments.runs import read_run, read_runs
from fathomer.config import Recipe
from fathomer.errors import ConfigError, MissingFileError, TrainingError
from fathomer.recipes import shipped_experiments, shipped_recipes
from fathomer.train.fit import CHECKPOINT
from tests.tiny import TINY, tiny_examples, write_csv

ASKED = {
    "corpus", "model", "seed", "fold", "accuracy", "macro_f1", "mean_depth", "parameters", "epochs",
    "train_words_per_second", "predict_words_per_second", "vectors", "settings", "command", "commit",
    "versions", "checksums", "wall_seconds",
}  # fmt: skip


def settings(**train):
    """Write the tiny model's settings as an experiment does."""
    recipe = TINY.updated({"train": train})
    sections = [f"[settings.{line[1:]}" if line[:1] == "[" else line
                for line in recipe.to_toml().splitlines()]  # fmt: skip
    return "\n".join(sections)


@pytest.fixture
def experiment(tmp_path):
    """Write an experiment on a small file, by cross validation."""
    data = write_csv(tmp_path / "opinions.csv", tiny_examples())
    path = tmp_path / "small.toml"
    path.write_text(
        f"[experiment]\n{settings(epochs=2)}\n[variants]\n"
        "full = { model = { depth = 'full' } }\nsame = {}\n"
        f"[[runs]]\ncorpora = ['{data}']\nmodels = ['fathomer', 'tfidf']\nfolds = [1, 2]\nof = 3\n"
        "forced_depths = [1, 4, 9]\n"
        f"[[runs]]\ncorpora = ['{data}']\nfolds = [1]\nof = 3\nvariants = ['full', 'same']\n",
        encoding="utf-8",
    )
    return path


def job(plan, folder):
    return Job(plan=plan, results=folder / "results", work=folder / "work")


@pytest.fixture
def carried_out(experiment, tmp_path):
    """Carry out the first run here, in this process."""
    plan = Experiment.from_toml(experiment).plans()[0]
    lines = []
    run = carry_out(job(plan, tmp_path), lines.append)
    return plan, run, lines


def test_an_experiment_is_all_combinations_each_once(experiment):
    plans = Experiment.from_toml(experiment).plans()
    found = [(p.recipe.model.name, p.variant, p.fold) for p in plans]
    assert found == [
        ("fathomer", None, 1), ("tfidf", None, 1), ("fathomer", None, 2), ("tfidf", None, 2),
        ("fathomer", "full", 1),
    ], "a variant that changes nothing is no run of its own"  # fmt: skip
    assert {p.recipe.train.epochs for p in plans} == {2}
    assert plans[4].recipe == plans[0].recipe.with_settings(["model.depth=full"])


def test_a_name_is_readable_and_its_key_follows_from_what_decides_the_result():
    plan = Plan(corpus="amazon16/dvd", settings={"train.seed": 3}, variant="soft", fold=2, folds=5)
    assert plan.name == f"amazon16-dvd-fathomer-soft-fold2-seed3-{plan.key}"
    assert replace(plan, variant="other", forced_depths=(1,)).key == plan.key
    for change in ({"fold": 1}, {"folds": 9}, {"corpus": "mr"}, {"vectors": "v"},
                   {"settings": {}}, {"match_parameters": True}):  # fmt: skip
        assert replace(plan, **change).key != plan.key, change


@pytest.mark.parametrize("name", shipped_experiments())
def test_a_shipped_experiment_compares_models_by_one_setting(name):
    experiment = Experiment.from_toml(shipped_experiments()[name])
    plans = experiment.plans()
    assert name not in shipped_recipes()
    assert find_experiment(name) == shipped_experiments()[name]
    assert len({plan.key for plan in plans}) == len({plan.name for plan in plans}) == len(plans)
    own = {"model": {"name": "fathomer"}, "train": {"seed": 0}}
    for corpus in {plan.corpus for plan in plans}:
        chosen = [p for p in plans if p.corpus == corpus and not p.variant]
        assert len({p.recipe.updated(own) for p in chosen}) <= 1, corpus


def test_the_tables_of_the_paper_are_shipped():
    assert set(shipped_experiments()) == {"table2", "table3", "table4", "figure3"}


def test_tables_share_their_runs():
    keys = {
        name: {plan.key for plan in Experiment.from_toml(path).plans()}
        for name, path in shipped_experiments().items()
    }
    assert len(keys["table3"] & keys["table4"]) == 3, "ours on TREC, three seeds"


def test_a_run_puts_down_all_that_is_asked(carried_out, tmp_path):
    plan, run, lines = carried_out
    path = run.save(tmp_path / "results")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert set(content) >= ASKED
    assert read_run(path) == run
    assert path == plan.find(tmp_path / "results")
    assert len(path.read_bytes()) < 10_000
    assert len(lines) == 2
    assert "epoch 2/2" in lines[1]


def test_the_figures_of_a_run_agree_with_each_other(carried_out):
    _, run, _ = carried_out
    assert run.answers.mean() == run.accuracy
    assert len(run.answers) == run.examples == 20
    assert sum(run.depths) == run.words
    assert np.dot(run.depths, [1, 2, 3, 4]) / run.words == pytest.approx(run.mean_depth)
    assert [row["depth"] for row in run.forced] == [1, 4], "beyond L there is nothing to force"
    assert {sample["label"] for sample in run.samples} == {"positive", "negative"}
    assert run.examples_unseen < run.examples, "the small opinions repeat each other"
    assert len(run.curve) == run.epochs == 2
    assert run.train_words_per_second > 0 < run.predict_words_per_second


@pytest.mark.parametrize("model", ["tfidf", "s-lstm"])
def test_a_model_without_depth_has_no_depths(experiment, tmp_path, model):
    plan = Experiment.from_toml(experiment).plans()[1]
    plan = replace(plan, settings={**plan.settings, "model.name": model})
    assert plan.forced_depths
    run = carry_out(job(plan, tmp_path), print)
    assert (run.model, run.depths, run.forced, run.samples) == (model, (), (), ())
    assert run.train_words_per_second > 0


def test_an_experiment_is_run_and_not_repeated(run, experiment, tmp_path):
    code, out, err = run("experiment", "run", str(experiment), "--only", "*fold1*", "--limit", "1")
    assert (code, out) == (0, "1 of 3 runs are in results\n")
    assert "1 done, 0 running, 0 left" in err
    files = sorted((tmp_path / "results" / "runs").iterdir())
    code, out, err = run("experiment", "run", str(experiment), "--only", "*-tfidf-*", "--json")
    assert code == 0
    assert json.loads(out)["runs"] == 2
    assert "2 runs, 2 of them to do" in err
    code, out, err = run("experiment", "run", str(experiment), "--dry-run")
    assert "5 runs, 2 of them to do" in err
    names = out.split()
    code, out, _ = run("experiment", "run", str(experiment), "--dry-run", "--json")
    assert (code, json.loads(out)) == (0, {"runs": 5, "left": names})
    assert set(files) < set((tmp_path / "results" / "runs").iterdir())
    assert list((tmp_path / "build" / "experiments").iterdir()) == [], "nothing is left behind"


def test_ctrl_c_says_that_the_same_command_continues(run, experiment, monkeypatch):
    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.parallel.Crew.work", interrupt)
    code, out, err = run("experiment", "run", str(experiment))
    assert (code, out) == (130, "")
    assert err.endswith("runs that were done are kept; the same command continues.\n")


def test_a_run_repeated_from_its_json_answers_alike(run, carried_out, tmp_path):
    path = carried_out[1].save(tmp_path / "results")
    code, out, err = run("experiment", "repeat", str(path))
    assert (code, out.splitlines()[1]) == (0, "every test text is answered alike")
    assert "not those of the run" not in err
    assert "another processor" not in err
    changed = replace(
        carried_out[1], accuracy=0.123, correct="00" * 3, checksums={"train": "0", "test": "0"},
        machine={**carried_out[1].machine, "processor": "an abacus"},
    )  # fmt: skip
    other = changed.save(tmp_path / "results")
    code, out, err = run("experiment", "repeat", str(other), "--json")
    assert code == 1
    assert "The texts or vectors are not those of the run." in err
    assert "The run was made on another processor (an abacus)." in err
    assert json.loads(out) == {
        "before": 0.123, "now": carried_out[1].accuracy, "same_answers": False
    }  # fmt: skip


def wait_for(condition, seconds=60):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_after_sigkill_the_run_goes_on_from_its_last_epoch(experiment, tmp_path):
    text = experiment.read_text(encoding="utf-8").replace("epochs = 2", "epochs = 60")
    experiment.write_text(text, encoding="utf-8")
    plan = Experiment.from_toml(experiment).plans()[0]
    command = [sys.executable, "-m", "fathomer", "experiment", "run", str(experiment)]
    checkpoint = tmp_path / "build" / "experiments" / plan.name / CHECKPOINT
    with subprocess.Popen(
        [*command, "--limit", "1"], cwd=tmp_path, stderr=subprocess.DEVNULL
    ) as started:
        wait_for(checkpoint.exists)
        started.send_signal(signal.SIGKILL)
    time.sleep(2)  # the process that it had started ends by itself
    before = checkpoint.stat().st_mtime_ns
    time.sleep(0.3)
    assert checkpoint.stat().st_mtime_ns == before, "the run outlived its experiment"
    assert read_runs(tmp_path / "results") == []
    lines = []
    where = replace(job(plan, tmp_path), work=tmp_path / "build" / "experiments")
    run = carry_out(where, lines.append)
    assert 0 < len(lines) < 60, "epochs that were done are not done again"
    assert "epoch 60/60" in lines[-1]
    assert len(run.curve) == 60


def test_work_on_other_data_is_not_continued(experiment, carried_out, tmp_path):
    plan, run, _ = carried_out
    assert (tmp_path / "work" / plan.name / CHECKPOINT).exists()
    write_csv(tmp_path / "opinions.csv", tiny_examples(90))
    lines = []
    again = carry_out(job(plan, tmp_path), lines.append)
    assert "starts again" in lines[0]
    assert again.checksums != run.checksums
    clock = json.loads((tmp_path / "work" / plan.name / "clock.json").read_text("utf-8"))
    assert len(clock["speeds"]) == again.epochs, "the discarded training does not count"


def test_two_experiments_do_not_train_the_same_model_at_once(experiment, tmp_path):
    plan = Experiment.from_toml(experiment).plans()[0]
    first = job(plan, tmp_path)
    first.folder.mkdir(parents=True)
    lock = os.open(first.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    lines = []
    with pytest.raises(TrainingError):
        Crew([first], 1, 1, lines.append).work()
    os.close(lock)
    assert "failed" in lines[-1]
    Crew([first], 1, 1, lines.append).work()
    assert plan.find(first.results)
    assert not first.folder.exists()


def test_entries_that_name_the_same_run_add_up_their_forced_depths(tmp_path):
    path = tmp_path / "e.toml"
    entry = "[[runs]]\ncorpora = ['trec']\n"
    path.write_text(f"[experiment]\n{entry}forced_depths = [9, 1]\n{entry}forced_depths = [3]\n")
    (plan,) = Experiment.from_toml(path).plans()
    assert plan.forced_depths == (1, 3, 9)


def test_a_kept_model_knows_its_fold(run, experiment, tmp_path):
    """So that its depths are looked at in texts that it has not been trained on."""
    plan = next(p for p in Experiment.from_toml(experiment).plans() if p.fold == 2)
    carried = carry_out(replace(job(plan, tmp_path), keep=tmp_path / "kept"), [].append)
    code, out, err = run(
        "experiment", "depths", str(tmp_path / "kept" / plan.name), plan.corpus, "--json"
    )
    assert code == 0
    assert f"fold 2 of {plan.folds} is the test part" in err
    assert json.loads(out)["words"] == carried.words


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr(crew_module, "cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [threads_of(jobs) for jobs in (1, 2, 3, 8)] == [8, 4, 2, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_of(3) == 2
    with pytest.raises(ConfigError, match="jobs must be 1 to 8"):
        threads_of(9)


def test_the_estimate_knows_what_a_model_took_before(tmp_path):
    plans = [Plan(corpus="c", settings={"train.seed": seed}) for seed in range(4)]
    crew = Crew([job(plan, tmp_path) for plan in plans], 1, 2, print)
    assert crew.account() == "0 done, 0 running, 4 left"
    crew.seconds.append(30.0)
    assert crew.account() == "0 done, 0 running, 4 left, about 60 s"
    crew.known = {plans[0].kind: 3600.0}
    assert crew.account() == "0 done, 0 running, 4 left, about 2 h 0 min"
    small = Plan(corpus="c", settings={"model.max_depth": 1})
    assert small.kind != plans[0].kind, "a shallow model is no guide to a deep one"


def test_a_failed_run_does_not_stop_the_others(run, experiment, tmp_path):
    text = experiment.read_text(encoding="utf-8").replace("'fathomer', 'tfidf'", "'tfidf'")
    text = text.replace("folds = [1, 2]", "folds = [7, 2]").rpartition("[[runs]]")[0]
    experiment.write_text(text, encoding="utf-8")
    code, _, err = run("experiment", "run", str(experiment))
    assert code == 2
    assert "1 of 2 runs failed: " in err
    assert len(read_runs(tmp_path / "results")) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[train]\nepochs = 3", "not an experiment"),
        ("[experiment]\nvector = 'x'", "did you mean 'vectors'"),
        ("[experiment]\n[[runs]]\ncorpora = ['trec']\nseed = [1]", "did you mean 'seeds'"),
        ("[experiment]\n[settings.train]\nepoch = 1\n[[runs]]\ncorpora = ['trec']", "'epochs'"),
        ("[experiment]\n[[runs]]\nmodels = ['tfidf']", "corpora"),
        ("[experiment]\n[[runs]]\ncorpora = ['trec']\nvariants = ['x']", "no such variant 'x'"),
        ("[experiment", "E.toml"),
    ],
)
def test_a_wrong_experiment_is_one_line(tmp_path, text, message):
    (tmp_path / "E.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=message):
        Experiment.from_toml(tmp_path / "E.toml")


def test_what_is_not_there_is_said(run, experiment):
    assert "no such experiment" in run("experiment", "run", "none.toml")[2]
    err = run("experiment", "run", str(experiment), "--only", "x")[2]
    assert "no run is called x; there is for example " in err
    assert run("experiment", "report", "--results", "typo") == (
        2, "", "fathomer: typo: holds no runs\n"
    )  # fmt: skip
    assert not Path("RESULTS.md").exists()
    assert not Path("typo").exists()
    with pytest.raises(MissingFileError):
        read_run(experiment.parent / "none.json")


def test_the_settings_of_a_run_are_all_that_differ(carried_out):
    plan, run, _ = carried_out
    assert Plan.of(run).key == plan.key
    assert run.recipe == plan.recipe != Recipe()
