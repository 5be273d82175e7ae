"""Runs in processes of their own: threads, progress, failures and kills."""

import fcntl
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import psutil
import pytest

from experiments import parallel
from experiments.execute import execute
from experiments.parallel import ParallelJobs, threads_per_process
from experiments.plan import Experiment, Plan
from experiments.runs import read_runs
from fathomer.errors import ConfigError, TrainingError
from fathomer.train.folder import CHECKPOINT
from tests.experiments.small import ROOT, new_job


def wait_for(condition, seconds=300):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "nothing happened"
        time.sleep(0.02)


def test_after_a_kill_the_run_continues_from_its_last_epoch(experiment, tmp_path):
    text = experiment.read_text(encoding="utf-8").replace("epochs = 2", "epochs = 40")
    experiment.write_text(text, encoding="utf-8")
    plan = Experiment.from_toml(experiment).plans()[0]
    command = [sys.executable, "-m", "experiments", "run", str(experiment), "--limit", "1"]
    path = os.pathsep.join([str(ROOT), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])
    work = tmp_path / "build" / "experiments"
    checkpoint = work / plan.name / CHECKPOINT
    with subprocess.Popen(
        command, cwd=tmp_path, stderr=subprocess.DEVNULL, env={**os.environ, "PYTHONPATH": path}
    ) as started:
        wait_for(checkpoint.exists)
        workers = psutil.Process(started.pid).children(recursive=True)
        started.send_signal(signal.SIGKILL)
    psutil.wait_procs(workers, timeout=60)  # they end by themselves
    before = checkpoint.stat().st_mtime_ns
    time.sleep(0.3)
    assert checkpoint.stat().st_mtime_ns == before, "the worker outlived the command"
    assert read_runs(tmp_path / "experiments" / "results") == []
    lines = []
    run = execute(replace(new_job(plan, tmp_path), work=work), lines.append)
    assert 0 < len(lines) < 40, "finished epochs are not repeated"
    assert "epoch 40/40" in lines[-1]
    assert len(run.curve) == 40


def test_two_experiments_do_not_train_the_same_model_at_once(experiment, tmp_path, forked_workers):
    plan = Experiment.from_toml(experiment).plans()[0]
    job = new_job(plan, tmp_path)
    job.folder.mkdir(parents=True)
    lock = os.open(job.folder, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    lines = []
    with pytest.raises(TrainingError):
        ParallelJobs([job], threads=1, processes=1, log=lines.append).run()
    os.close(lock)
    assert "failed" in lines[-1]
    ParallelJobs([job], threads=1, processes=1, log=lines.append).run()
    assert plan.find(job.results)
    assert not job.folder.exists()


def test_processes_share_the_cores(monkeypatch):
    monkeypatch.setattr(parallel, "available_cores", lambda: 8)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert [threads_per_process(jobs) for jobs in (1, 2, 3, 8)] == [8, 4, 2, 1]
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    assert threads_per_process(3) == 2
    with pytest.raises(ConfigError, match="jobs must be 1 to 8"):
        threads_per_process(9)


def test_the_time_left_is_estimated_from_earlier_runs_of_the_same_kind(tmp_path):
    plans = [Plan(corpus="c", settings={"train.seed": seed}) for seed in range(4)]
    jobs = ParallelJobs([new_job(plan, tmp_path) for plan in plans], 1, 2, print)
    assert jobs.status() == "0 done, 0 running, 4 left"
    jobs.seconds.append(30.0)
    assert jobs.status() == "0 done, 0 running, 4 left, about 60 s"
    jobs.known_seconds = {plans[0].duration_key: 3600.0}
    assert jobs.status() == "0 done, 0 running, 4 left, about 2 h 0 min"
    shallow = Plan(corpus="c", settings={"model.max_depth": 1})
    assert shallow.duration_key != plans[0].duration_key


def test_a_failed_run_does_not_stop_the_others(
    run_experiments, experiment, tmp_path, forked_workers
):
    text = experiment.read_text(encoding="utf-8").replace("'fathomer', 'tfidf'", "'tfidf'")
    text = text.replace("folds = [1, 2]", "folds = [7, 2]").rpartition("[[runs]]")[0]
    experiment.write_text(text, encoding="utf-8")
    code, _, err = run_experiments("run", str(experiment))
    assert code == 2
    assert "1 of 2 runs failed: " in err
    assert len(read_runs(tmp_path / "experiments" / "results")) == 1
