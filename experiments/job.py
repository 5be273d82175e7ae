"""A job: a planned run and where its files are."""

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Self

from experiments.plan import Plan
from fathomer.data.datasets import find_vectors

Log = Callable[[str], None]
"""A function that shows one line of progress."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A planned run and where its files are."""

    plan: Plan
    results: Path
    work: Path
    """Folder for the checkpoints of unfinished runs."""
    vectors: Path | None = None
    data_dir: Path | None = None
    keep: Path | None = None
    """Folder for trained models, if they are to be kept."""
    command: str = ""

    @property
    def folder(self) -> Path:
        """Work folder of this run."""
        return self.work / self.plan.name

    def to_json(self) -> str:
        """Return the job as one line of JSON."""
        return json.dumps({**asdict(self), "plan": self.plan.to_dict()}, default=str)

    @classmethod
    def from_json(cls, line: str) -> Self:
        """Read a job from the line written by :meth:`to_json`."""
        values = json.loads(line)
        plan = values.pop("plan")
        plan["forced_depths"] = tuple(plan["forced_depths"])
        command = values.pop("command")
        paths = {name: Path(value) if value else None for name, value in values.items()}
        return cls(plan=Plan(**plan), command=command, **paths)  # type: ignore[arg-type]


def find_plan_vectors(plan: Plan, vectors: str | None, data_dir: Path | None) -> Path | None:
    """Return the vectors file of a plan; ``vectors`` replaces the name in the plan."""
    name = vectors or plan.vectors
    return find_vectors(name, data_dir) if name else None
