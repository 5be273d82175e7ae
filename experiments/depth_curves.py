"""Accuracy against average depth, by how the depths are found: one training run per method and seed.

Results are lines of JSON in one file. A training that is already there is not repeated.
"""

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from experiments.runs import read_lines
from fathomer.artifact import versions
from fathomer.config import DepthTarget, Recipe, TextConfig
from fathomer.data.opening import Dataset, open_dataset, select_fold
from fathomer.errors import DataError, did_you_mean
from fathomer.evaluate.metrics import Answered
from fathomer.model.inference import classify
from fathomer.model.registry import MODELS
from fathomer.predictor import BATCH_WORDS, Predictor
from fathomer.recipes import chosen_recipe
from fathomer.train.automatic import DataSize, automatic_recipe
from fathomer.train.fit import fit

BUDGETS = (1.2, 1.5, 2.0, 3.0, 4.5, 6.0)
SHUFFLES = 10
"""How often the depths of a text are dealt at random to the words of the corpus."""
FOLDS = 10
"""Of a file without a test set, one of this many folds is the test set."""
TARGETS: tuple[DepthTarget, ...] = ("mi", "frequency", "random", "oracle")
FIXED = ("fixed-1", "fixed-2", "fixed-3")
METHODS = (*TARGETS, "gumbel", *FIXED)


class DepthPoint(NamedTuple):
    """A model at one average depth."""

    budget: float | None
    """The depth budget; None if the model has none."""
    mean_depth: float
    accuracy: float
    texts_per_second: float
    dealt: float | None
    """Mean accuracy with the same depths dealt to the words at random."""
    error: float | None
    """Standard error of ``accuracy - dealt`` over the texts."""


@dataclass(frozen=True)
class DepthTrial:
    """One training run and its results."""

    corpus: str
    method: str
    seed: int
    settings: dict[str, Any]
    examples: int
    train_seconds: float
    points: tuple[DepthPoint, ...]
    versions: dict[str, str]

    @property
    def key(self) -> str:
        """What distinguishes trials."""
        return json.dumps([self.corpus, self.method, self.seed, self.settings], sort_keys=True)

    def to_json(self) -> str:
        """Return the trial as one line of JSON."""
        content = asdict(self) | {"points": [point._asdict() for point in self.points]}
        return json.dumps(content)

    @classmethod
    def from_json(cls, line: str) -> "DepthTrial":
        """Read the result of :meth:`to_json`."""
        content = json.loads(line)
        content["points"] = tuple(DepthPoint(**point) for point in content["points"])
        return cls(**content)


def read_trials(path: Path) -> list[DepthTrial]:
    """Read a file of trials; there are none if it does not exist."""
    return read_lines(path, DepthTrial.from_json)


def open_corpus(name: str, *, every: int, data_dir: Path | None) -> Dataset:
    """Open a corpus or a file, with a fold as the test set if it has none; keep every N-th text."""
    dataset = open_dataset(name, data_dir=data_dir)
    if dataset.test is None:
        dataset = select_fold(dataset, 1, FOLDS)
    train, test = (
        part.take(range(0, len(part), every)) for part in (dataset.train, dataset.evaluation_set)
    )
    return replace(dataset, train=train, test=test)


def starting_settings(dataset: Dataset) -> Recipe:
    """Return the settings that ``fathomer train`` would use, without n-grams."""
    size = DataSize.of(dataset.train.texts, len(dataset.train), max_words=TextConfig().max_words)
    recipe = chosen_recipe(dataset.name, None) or automatic_recipe(size)
    return recipe.updated({"model": {"ngrams": False}})


def check_methods(methods: Sequence[str]) -> None:
    """Raise an error for a method that is neither one of ours nor a model."""
    known = [*METHODS, *MODELS]
    for method in methods:
        if method not in known:
            raise DataError(f"unknown method {method!r}; {did_you_mean(method, known)}")


def run_trials(
    dataset: Dataset,
    recipe: Recipe,
    *,
    methods: Sequence[str],
    seeds: int,
    out: Path,
    vectors: Path | None = None,
) -> Iterator[DepthTrial]:
    """Carry out the trials of a corpus that are not in ``out`` yet, and append them to it."""
    done = {trial.key for trial in read_trials(out)}
    for seed in range(seeds):
        for method in methods:
            changed = method_recipe(recipe, method, seed)
            settings = changed.changed_values() | {"vectors": vectors and vectors.name}
            settings["train_texts"] = len(dataset.train)
            if json.dumps([dataset.name, method, seed, settings], sort_keys=True) in done:
                continue
            began = time.perf_counter()
            predictor = Predictor(fit(dataset.train, changed, vectors=vectors).artifact)
            seconds = time.perf_counter() - began
            points = tuple(measure_points(predictor, predictor.answer(dataset.evaluation_set)))
            trial = DepthTrial(
                corpus=dataset.name,
                method=method,
                seed=seed,
                settings=settings,
                examples=len(dataset.evaluation_set),
                train_seconds=round(seconds, 1),
                points=points,
                versions=versions(),
            )
            with out.open("a", encoding="utf-8") as file:
                file.write(trial.to_json() + "\n")
            yield trial


def method_recipe(recipe: Recipe, method: str, seed: int) -> Recipe:
    """Return the settings of a method; all methods share the rest."""
    changes: dict[str, dict[str, Any]] = {"train": {"seed": seed}, "model": {}}
    if method in TARGETS:
        changes["model"]["depth"], changes["train"]["depth_target"] = "supervised", method
    elif method in FIXED:
        changes["model"] |= {"depth": "full", "max_depth": int(method[-1])}
    elif method == "gumbel":
        changes["model"]["depth"] = "gumbel"
    else:
        changes["model"]["name"] = method
    return recipe.updated(changes)


def measure_points(predictor: Predictor, answered: Answered) -> Iterator[DepthPoint]:
    """Measure a model at its own average depth, or at every budget."""
    table = predictor.artifact.depth_budgets
    budgets: Sequence[float | None] = [None]
    if table:
        largest = table.depths[-1]
        wanted = {*(each for each in BUDGETS if each < largest), table.target, largest}
        budgets = sorted(wanted)
    predictor.classify(answered.data.texts, None)  # fill the caches
    for budget in budgets:
        began = time.perf_counter()
        found = predictor.classify(answered.data.texts, None, budget)
        seconds = time.perf_counter() - began
        right = found.labels == answered.data.targets
        dealt = error = None
        if len(set(found.depths.tolist())) > 1:
            gained = right - _dealt(predictor, answered, found.depths)
            dealt = float(right.mean() - gained.mean())
            error = float(gained.std() / np.sqrt(len(gained)))
        yield DepthPoint(
            budget=budget,
            mean_depth=float(found.depths.mean()),
            accuracy=float(right.mean()),
            texts_per_second=round(len(right) / seconds, 1),
            dealt=dealt,
            error=error,
        )


def _dealt(
    predictor: Predictor, answered: Answered, depths: NDArray[np.int16]
) -> NDArray[np.float64]:
    """Return how often each text is classified correctly with the depths dealt at random."""
    texts, targets = answered.data.texts, answered.data.targets
    right = np.zeros(len(targets))
    for seed in range(SHUFFLES):
        shuffled = np.random.default_rng(seed).permutation(depths)
        found = classify(predictor.network, texts, batch_words=BATCH_WORDS, depths=shuffled)
        right += found.labels == targets
    return right / SHUFFLES
