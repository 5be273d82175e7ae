"""Several runs side by side, each in a process of its own with its share of the cores."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import mean

from experiments.run import Job
from experiments.runs import Run, read_run
from fathomer.errors import ConfigError, TrainingError

Tell = Callable[[str], None]
_PAUSE = 0.1


def cores() -> int:
    """Count the cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def threads_of(jobs: int) -> int:
    """Share the cores among processes; OMP_NUM_THREADS, where it is set, is what each one gets."""
    if not 1 <= jobs <= cores():
        raise ConfigError(f"jobs must be 1 to {cores()}, one for each core, not {jobs}")
    try:
        return int(os.environ["OMP_NUM_THREADS"])
    except (KeyError, ValueError):
        return cores() // jobs


def start(job: Job, threads: int) -> subprocess.Popen[str]:
    """Start a run; the process ends when we do, as it listens to us."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads), "PYTHONPATH": _path()}
    process = subprocess.Popen(
        [sys.executable, "-P", "-m", "experiments.run"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env=environment,
    )
    assert process.stdin
    process.stdin.write(job.to_json() + "\n")
    process.stdin.flush()
    return process


def _path() -> str:
    """Let the process find the very package that we are."""
    here = str(Path(__file__).resolve().parents[1])
    return os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))


@dataclass
class Crew:
    """Carry out jobs, some at a time, and tell how far they are."""

    jobs: Sequence[Job]
    threads: int
    size: int
    tell: Tell
    known: Mapping[str, float] = field(default_factory=dict)
    """Seconds that a kind of run took before."""

    def __post_init__(self) -> None:
        self.waiting = list(self.jobs)
        self.running: dict[str, tuple[Job, subprocess.Popen[str]]] = {}
        self.seconds: list[float] = []
        self.failed: list[str] = []

    def work(self) -> None:
        """Carry out all jobs; one that fails does not stop the others."""
        try:
            while self.waiting or self.running:
                self._fill()
                time.sleep(_PAUSE)
                self._collect()
        except BaseException:
            for _, process in self.running.values():
                process.kill()
                process.wait()
            raise
        if self.failed:
            raise TrainingError(
                f"{len(self.failed)} of {len(self.jobs)} runs failed: {', '.join(self.failed)}"
            )

    def _fill(self) -> None:
        while self.waiting and len(self.running) < self.size:
            job = self.waiting.pop(0)
            if job.plan.find(job.results):  # another experiment has run it meanwhile
                continue
            self.running[job.plan.name] = (job, start(job, self.threads))
            self.tell(f"started {job.plan.name}")

    def _collect(self) -> None:
        for name, (job, process) in list(self.running.items()):
            if process.poll() is None:
                continue
            del self.running[name]
            if process.stdin:
                process.stdin.close()
            path = job.plan.find(job.results)
            if process.returncode or path is None:
                self.failed.append(name)
                self.tell(f"failed {name} (exit code {process.returncode}); {self.account()}")
            else:
                run = read_run(path)
                self.seconds.append(run.wall_seconds)
                self.tell(f"done {name}: {_scores(run)}; {self.account()}")

    def account(self) -> str:
        """Say what is done, running and left."""
        done = len(self.jobs) - len(self.waiting) - len(self.running) - len(self.failed)
        line = f"{done} done, {len(self.running)} running, {len(self.waiting)} left"
        if self.failed:
            line += f", {len(self.failed)} failed"
        left = self.estimate()
        return line if left is None else f"{line}, about {_duration(left)}"

    def estimate(self) -> float | None:
        """Guess the seconds that the waiting and half of the running runs take."""
        usual = mean(self.seconds) if self.seconds else None
        running = [job for job, _ in self.running.values()]
        times = [
            (share, self.known.get(job.plan.kind, usual))
            for share, jobs in ((1.0, self.waiting), (0.5, running))
            for job in jobs
        ]
        guesses = [share * seconds for share, seconds in times if seconds is not None]
        return sum(guesses) / self.size if guesses else None


def _scores(run: Run) -> str:
    depth = f", depth {run.mean_depth:.2f}" if run.depths else ""
    return f"accuracy {run.accuracy:.4f}{depth}, {_duration(run.wall_seconds)}"


def _duration(seconds: float) -> str:
    """Write a time.

    >>> _duration(42.3), _duration(5400)
    ('42 s', '1 h 30 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
