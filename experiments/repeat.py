"""Repetition of a finished run from its JSON file, to check that the result is the same."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from experiments.job import Job, Log, find_plan_vectors
from experiments.parallel import ParallelJobs
from experiments.plan import Plan
from experiments.runs import Run, read_runs


class Repetition(NamedTuple):
    """A run and its repetition."""

    before: Run
    now: Run

    @property
    def same_answers(self) -> bool:
        """Whether the same test texts were classified correctly."""
        return self.now.correct == self.before.correct

    def differences(self) -> Iterator[str]:
        """Yield a line for each difference in data or hardware that may change the result."""
        if self.now.checksums != self.before.checksums:
            yield "The texts or vectors are not those of the run."
        processor = self.before.machine.get("processor")
        if self.now.machine["processor"] != processor:
            yield f"The run was made on another processor ({processor})."


def repeat_run(
    before: Run, *, work: Path, vectors: str | None, data_dir: Path | None, log: Log
) -> Repetition:
    """Train and test once more as a run records it, with the same number of threads."""
    plan = Plan.from_run(before)
    with TemporaryDirectory() as results:
        job = Job(
            plan=plan,
            results=Path(results),
            work=work / "repeated",
            vectors=find_plan_vectors(plan, vectors, data_dir),
            data_dir=data_dir,
            command=before.command,
        )
        ParallelJobs([job], threads=before.machine["threads"], processes=1, log=log).run()
        (now,) = read_runs(Path(results))
    return Repetition(before, now)
