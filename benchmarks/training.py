"""The training benchmark: one process, one process with several threads, and several processes.

Every case trains the same network on the same texts in processes of its own, started anew in every
round. The cases take turns, as the speed of a machine varies over time.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

from benchmarks.machine import describe_machine
from benchmarks.workloads import IMDB, draw_words, word_names
from fathomer.config import Recipe
from fathomer.data.examples import Example, Examples
from fathomer.errors import TrainingError
from fathomer.text.encode import plan_batches
from fathomer.train.checkpoint import TrainingState
from fathomer.train.follow import receive_run, send_run
from fathomer.train.loop import train_steps
from fathomer.train.prepare import prepare
from fathomer.train.processes import ProcessGroup, divide, join_processes

ROOT = Path(__file__).parents[1]
WARM_UP = 3
"""Steps that are not timed."""


@dataclass(frozen=True)
class TrainingPlan:
    """What to train, and for how many steps and rounds."""

    hidden_size: int = 400
    max_depth: int = 9
    batch_words: int = 2000
    precision: str = "float32"
    vocabulary: int = 30_000
    steps: int = 20
    rounds: int = 5

    def recipe(self) -> Recipe:
        """Return the settings: fixed vectors, as in the paper."""
        model = {"hidden_size": self.hidden_size, "max_depth": self.max_depth, "fixed_words": True}
        train = {"batch_words": self.batch_words, "precision": self.precision, "held_out": 0.0}
        return Recipe().updated({"model": model, "train": train, "text": {"min_count": 1}})

    def examples(self) -> Examples:
        """Return random texts as long as film reviews, enough for all steps."""
        random, names = np.random.default_rng(0), np.array(word_names(self.vocabulary))
        count = IMDB.texts_of(self.batch_words * (self.steps + WARM_UP) * 2)
        texts = [
            " ".join(names[draw_words(length, vocabulary=self.vocabulary, random=random)])
            for length in random.permutation(IMDB.draw(count)).tolist()
        ]
        return Examples([Example(text, f"label{n % 2}") for n, text in enumerate(texts)])


COMPLETE = TrainingPlan()
QUICK = TrainingPlan(steps=8, rounds=2)


class TrainingCase(NamedTuple):
    """The number of processes, and of threads in each of them."""

    processes: int
    threads: int


def measure_training(
    plan: TrainingPlan, *, number: int, report: Callable[[str], None]
) -> dict[str, Any]:
    """Return the words per second of each case, and the ratios of their medians."""
    one, threads, processes = TrainingCase(1, 1), TrainingCase(1, number), TrainingCase(number, 1)
    found: dict[TrainingCase, list[float]] = {one: [], threads: [], processes: []}
    for turn in range(1, plan.rounds + 1):
        for case, speeds in found.items():
            speeds.append(_run(plan, case))
            report(f"round {turn}/{plan.rounds}: {case} {speeds[-1]:,.0f} words/s")
    middle = {case: median(speeds) for case, speeds in found.items()}
    return {
        "rows": [
            case._asdict() | {"words_per_second": round(middle[case], 1), "rounds": speeds}
            for case, speeds in found.items()
        ],
        "ratios": {
            "processes / one process": round(middle[processes] / middle[one], 3),
            "processes / threads": round(middle[processes] / middle[threads], 3),
            "whole texts allow": round(largest_ratio(plan, number), 3),
        },
        "plan": asdict(plan),
        "machine": describe_machine(),
    }


def largest_ratio(plan: TrainingPlan, number: int) -> float:
    """Return how many times as fast processes can be at most, by counting the words of the busiest.

    A text is not divided, so a step takes as long as the process with the most words.
    """
    lengths = np.array([len(text.split()) for text in plan.examples().texts])
    shuffle = np.random.default_rng([plan.recipe().train.seed, 1, 0])
    batches = list(plan_batches(lengths, budget=plan.batch_words, shuffle=shuffle, parts=number))
    timed = batches[WARM_UP : WARM_UP + plan.steps]
    words = sum(lengths[batch].sum() for batch in timed)
    shares = [[lengths[part].sum() for part in divide(batch, lengths, number)] for batch in timed]
    return float(words / sum(map(max, shares)))


def _run(plan: TrainingPlan, case: TrainingCase) -> float:
    """Train in new processes and return the words per second."""
    arguments = json.dumps({**asdict(plan), "processes": case.processes})
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-m", "benchmarks.training", arguments],
        cwd=ROOT,
        env=os.environ | {"OMP_NUM_THREADS": str(case.threads)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise TrainingError(f"{case} failed: {done.stderr.strip().splitlines()[-1]}")
    return float(done.stdout)


def train_once(plan: TrainingPlan, processes: int) -> float | None:
    """Take the steps of a plan; the first process returns the words per second."""
    with join_processes(processes, device="cpu", module="benchmarks.training") as group:
        if group.rank:
            assert isinstance(group, ProcessGroup)
            group.connect()
            prepared, state = receive_run(group, device="cpu")
        else:
            prepared = prepare(plan.examples(), plan.recipe())
            state = TrainingState.start(prepared.network)
            if isinstance(group, ProcessGroup):
                group.connect()
                send_run(group, prepared, state)
        words, began = 0, 0.0
        for number, step in enumerate(train_steps(state, prepared, group), 1):
            words += step.words
            if number == WARM_UP:
                words, began = 0, time.perf_counter()
            if number == WARM_UP + plan.steps:
                break
        seconds = time.perf_counter() - began
        group.decide(lambda: None)  # nobody leaves early
    return None if group.rank else words / seconds


if __name__ == "__main__":
    given = json.loads(sys.argv[1])
    started = given.pop("processes")
    if (speed := train_once(TrainingPlan(**given), started)) is not None:
        sys.stdout.write(f"{speed}\n")
