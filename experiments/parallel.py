"""Several runs at a time, each in its own process with its share of the cores."""

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from experiments.job import Job, Log
from experiments.runs import Run, read_run
from fathomer.errors import ConfigError, TrainingError

_POLL_SECONDS = 0.1


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_per_process(processes: int) -> int:
    """Divide the cores among the processes, unless OMP_NUM_THREADS sets the number of threads."""
    cores = available_cores()
    if not 1 <= processes <= cores:
        raise ConfigError(f"jobs must be 1 to {cores}, at most one per core, not {processes}")
    try:
        return int(os.environ["OMP_NUM_THREADS"])
    except (KeyError, ValueError):
        return cores // processes


@dataclass
class ParallelJobs:
    """Jobs that run in several processes, with progress and an estimate of the time left."""

    jobs: Sequence[Job]
    threads: int
    """Threads of each process."""
    processes: int
    log: Log
    known_seconds: Mapping[str, float] = field(default_factory=dict)
    """Seconds that runs took before, by :attr:`Plan.duration_key`."""

    def __post_init__(self) -> None:
        self.waiting = list(self.jobs)
        self.running: dict[str, tuple[Job, subprocess.Popen[str]]] = {}
        self.seconds: list[float] = []
        self.failed: list[str] = []

    def run(self) -> None:
        """Run all jobs; one that fails does not stop the others."""
        try:
            while self.waiting or self.running:
                self._start_waiting()
                time.sleep(_POLL_SECONDS)
                self._collect_finished()
        except BaseException:
            for _, process in self.running.values():
                process.kill()
                process.wait()
            raise
        if self.failed:
            raise TrainingError(
                f"{len(self.failed)} of {len(self.jobs)} runs failed: {', '.join(self.failed)}"
            )

    def _start_waiting(self) -> None:
        while self.waiting and len(self.running) < self.processes:
            job = self.waiting.pop(0)
            if job.plan.find(job.results):  # another experiment has finished it meanwhile
                continue
            self.running[job.plan.name] = (job, _start(job, self.threads))
            self.log(f"started {job.plan.name}")

    def _collect_finished(self) -> None:
        for name, (job, process) in list(self.running.items()):
            if process.poll() is None:
                continue
            del self.running[name]
            if process.stdin:
                process.stdin.close()
            path = job.plan.find(job.results)
            if process.returncode or path is None:
                self.failed.append(name)
                self.log(f"failed {name} (exit code {process.returncode}); {self.status()}")
            else:
                run = read_run(path)
                self.seconds.append(run.wall_seconds)
                self.log(f"done {name}: {_scores(run)}; {self.status()}")

    def status(self) -> str:
        """Return how many runs are done, running, left and failed, and the time left."""
        done = len(self.jobs) - len(self.waiting) - len(self.running) - len(self.failed)
        line = f"{done} done, {len(self.running)} running, {len(self.waiting)} left"
        if self.failed:
            line += f", {len(self.failed)} failed"
        seconds = self.seconds_left()
        return line if seconds is None else f"{line}, about {_duration(seconds)}"

    def seconds_left(self) -> float | None:
        """Estimate the seconds left, assuming that running jobs are half done."""
        average = mean(self.seconds) if self.seconds else None
        running = [job for job, _ in self.running.values()]
        times = [
            (share, self.known_seconds.get(job.plan.duration_key, average))
            for share, jobs in ((1.0, self.waiting), (0.5, running))
            for job in jobs
        ]
        estimates = [share * seconds for share, seconds in times if seconds is not None]
        return sum(estimates) / self.processes if estimates else None


def _start(job: Job, threads: int) -> subprocess.Popen[str]:
    """Start the process of a job; it ends when this process does."""
    # The worker must import this very package, wherever it is started.
    clone = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(filter(None, [clone, os.environ.get("PYTHONPATH")]))
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "experiments.worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": path},
    )
    assert process.stdin
    process.stdin.write(job.to_json() + "\n")
    process.stdin.flush()
    return process


def _scores(run: Run) -> str:
    depth = f", depth {run.mean_depth:.2f}" if run.depths else ""
    return f"accuracy {run.accuracy:.4f}{depth}, {_duration(run.wall_seconds)}"


def _duration(seconds: float) -> str:
    """Return a duration in a readable unit.

    >>> _duration(42.3), _duration(5400)
    ('42 s', '1 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
