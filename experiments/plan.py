"""An experiment: corpora × models × seeds or folds × settings, planned from one TOML file.

All models of an experiment have the same settings on a corpus. They are its own recipe, then the
experiment's ``[settings]``, then ``[corpora.<name>]``; only a named variant differs from them::

    [experiment]
    vectors = "mixed.300d"

    [settings.train]
    epochs = 15

    [variants]
    full_depth = { model = { depth = "full" } }

    [[runs]]
    corpora = ["trec"]
    models = ["fathomer", "bilstm"]
    seeds = [0, 1, 2]
"""

import hashlib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from itertools import product
from pathlib import Path
from typing import Any, Self

from experiments.runs import RUNS, Run
from fathomer.config import Recipe
from fathomer.data.datasets import CORPORA
from fathomer.errors import ConfigError, MissingFileError, did_you_mean
from fathomer.recipes import starting_recipe

RECIPES = Path(__file__).resolve().parent / "recipes"

Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """Name all that one run depends on."""

    corpus: str
    settings: Mapping[str, Any]
    """What differs from the defaults, named ``section.name``."""
    vectors: str | None = None
    variant: str | None = None
    fold: int | None = None
    folds: int | None = None
    match_parameters: bool = False
    forced_depths: tuple[int, ...] = ()

    @classmethod
    def of(cls, run: Run) -> Self:
        """Plan a run that has been run once more."""
        same = {
            item.name: getattr(run, item.name) for item in fields(cls) if hasattr(run, item.name)
        }
        return cls(**same)

    @property
    def recipe(self) -> Recipe:
        """Give all settings."""
        return Recipe().with_values(self.settings)

    @property
    def key(self) -> str:
        """Sum up what decides the result; the name of a variant does not."""
        parts = [self.corpus, self.fold, self.folds, self.vectors, self.match_parameters]
        content = json.dumps([*parts, dict(sorted(self.settings.items()))])
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    @property
    def kind(self) -> str:
        """Name what decides how long a run takes."""
        model, train = self.recipe.model, self.recipe.train
        parts = (model.name, model.hidden_size, model.max_depth, model.depth, train.epochs)
        return f"{self.corpus} {' '.join(map(str, parts))}"

    @property
    def name(self) -> str:
        """Name the run readably, for its file."""
        model, seed = self.recipe.model.name, self.recipe.train.seed
        fold = f"fold{self.fold}" if self.fold else None
        parts = [self.corpus, model, self.variant, fold, f"seed{seed}", self.key]
        return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts if part)

    def find(self, results: Path) -> Path | None:
        """Find the run in a folder of results, under whatever variant's name."""
        return next((results / RUNS).glob(f"*-{self.key}.json"), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """Hold one list of runs: all combinations of what it names."""

    corpora: list[str]
    models: list[str] = field(default_factory=lambda: ["fathomer"])
    seeds: list[int] = field(default_factory=lambda: [0])
    folds: list[int] = field(default_factory=list)
    of: int | None = None
    """Parts of the cross validation; by default as many as the corpus has."""
    variants: list[str] = field(default_factory=list)
    forced_depths: list[int] = field(default_factory=list)
    """Depths at which the trained model is tested with all words alike."""

    def combinations(self) -> Iterator[tuple[int, str, int | None, str | None, str]]:
        """Go through the combinations; every seed is complete before the next begins."""
        folds: list[int | None] = [*self.folds] or [None]
        variants: list[str | None] = [*self.variants] or [None]
        return product(self.seeds, self.corpora, folds, variants, self.models)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """Hold a planned experiment."""

    title: str = ""
    vectors: str | None = None
    match_parameters: bool = False
    settings: Sections = field(default_factory=dict)
    corpora: Mapping[str, Sections] = field(default_factory=dict)
    variants: Mapping[str, Sections] = field(default_factory=dict)
    runs: tuple[Entry, ...] = ()

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read an experiment."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            return cls._from_dict(content)
        except FileNotFoundError:
            known = did_you_mean(path.stem, shipped_experiments())
            raise MissingFileError(f"{path}: no such experiment; {known}") from None
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise ConfigError(f"{path}: {error}") from None

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Self:
        if "experiment" not in content:
            raise ConfigError("not an experiment: it has no section [experiment]")
        values = {**content.pop("experiment"), **content}
        _check_names(values, cls)
        for entry in values.get("runs", ()):
            _check_names(entry, Entry)
        values["runs"] = tuple(Entry(**entry) for entry in values.get("runs", ()))
        experiment = cls(**values)
        experiment.plans()  # whatever is wrong with the settings is found now
        return experiment

    def plans(self, *, vectors: str | None = None) -> list[Plan]:
        """List the runs in their order, each once; ``vectors`` are used instead of the named."""
        plans: dict[str, Plan] = {}
        for entry in self.runs:
            for seed, corpus, fold, variant, model in entry.combinations():
                recipe = self._updated(starting_recipe(corpus), corpus, variant)
                chosen: Sections = {"model": {"name": model}, "train": {"seed": seed}}
                plan = Plan(
                    corpus=corpus,
                    settings=recipe.updated(chosen).changed_values(),
                    vectors=vectors_name(vectors) if vectors else self.vectors,
                    variant=variant,
                    fold=fold,
                    folds=(entry.of or _folds_of(corpus)) if fold else None,
                    match_parameters=self.match_parameters and model != "fathomer",
                    forced_depths=tuple(entry.forced_depths),
                )
                before = plans.get(plan.key, plan)
                depths = sorted({*before.forced_depths, *plan.forced_depths})
                plans[plan.key] = replace(before, forced_depths=tuple(depths))
        return list(plans.values())

    def _updated(self, recipe: Recipe, corpus: str, variant: str | None) -> Recipe:
        recipe = recipe.updated(self.settings).updated(self.corpora.get(corpus, {}))
        if variant is None:
            return recipe
        if variant not in self.variants:
            raise ConfigError(
                f"no such variant {variant!r}; {did_you_mean(variant, self.variants)}"
            )
        return recipe.updated(self.variants[variant])


def shipped_experiments() -> dict[str, Path]:
    """Return the experiments of this folder by name."""
    return {path.stem: path for path in sorted(RECIPES.glob("*.toml"))}


def find_experiment(name: str) -> Path:
    """Return the path of an experiment: a file, or one of this folder by name."""
    if Path(name).is_file() or name not in shipped_experiments():
        return Path(name)
    return shipped_experiments()[name]


def vectors_name(file: str) -> str:
    """Name vectors as results do: without folder and suffix.

    >>> vectors_name("data/mixed.300d.txt.gz")
    'mixed.300d'
    """
    return re.sub(r"(\.(txt|vec|bin|zip|gz))+$", "", Path(file).name)


def _folds_of(corpus: str) -> int | None:
    return CORPORA[corpus].folds if corpus in CORPORA else None


def _check_names(values: Mapping[str, Any], kind: type) -> None:
    known = [item.name for item in fields(kind)]
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown name {name!r}; {did_you_mean(name, known)}")
