"""An experiment: corpora × models × seeds or folds × settings, planned from one TOML file.

All models of an experiment have the same settings on a corpus: those that ``fathomer train`` chooses
for a corpus of its size, but with the paper's depth and without n-grams; then the learning rate of
the model, then the experiment's ``[settings]``, then ``[corpora.<name>]``, then ``[models.<name>]``.
Otherwise only a named variant changes them::

    [experiment]
    vectors = "pypi"

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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from fnmatch import fnmatch
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any, Self

import experiments.rivals  # noqa: F401 (registers the models)
from experiments.runs import RUNS, Run
from fathomer.config import Recipe
from fathomer.data.datasets import CORPORA, TABLE_1
from fathomer.errors import ConfigError, MissingFileError, did_you_mean
from fathomer.model.registry import find_model
from fathomer.model.sizes import match_hidden_size
from fathomer.recipes import starting_recipe
from fathomer.train.automatic import DataSize, automatic_recipe

RECIPES = Path(__file__).resolve().parent / "recipes"

Sections = Mapping[str, Mapping[str, Any]]


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One planned run: everything that its result depends on."""

    corpus: str
    settings: Mapping[str, Any]
    """Settings that differ from the defaults, named ``section.name``."""
    vectors: str | None = None
    variant: str | None = None
    fold: int | None = None
    folds: int | None = None
    match_parameters: bool = False
    forced_depths: tuple[int, ...] = ()

    @classmethod
    def from_run(cls, run: Run) -> Self:
        """Return the plan of a run that was carried out before."""
        names = [item.name for item in fields(cls)]
        return cls(**{name: getattr(run, name) for name in names if hasattr(run, name)})

    @property
    def recipe(self) -> Recipe:
        """All settings of the run."""
        return Recipe().with_values(self.settings)

    @property
    def key(self) -> str:
        """Hash of everything that decides the result; the name of a variant does not."""
        parts = [self.corpus, self.fold, self.folds, self.vectors, self.match_parameters]
        content = json.dumps([*parts, dict(sorted(self.settings.items()))])
        return hashlib.sha256(content.encode()).hexdigest()[:8]

    @property
    def duration_key(self) -> str:
        """Everything that decides how long a run takes."""
        model, train = self.recipe.model, self.recipe.train
        parts = (model.name, model.hidden_size, model.max_depth, model.depth, train.epochs)
        return f"{self.corpus} {' '.join(map(str, parts))}"

    @property
    def name(self) -> str:
        """Readable name of the run, used for its file."""
        model, seed = self.recipe.model.name, self.recipe.train.seed
        fold = f"fold{self.fold}" if self.fold else None
        parts = [self.corpus, model, self.variant, fold, f"seed{seed}", self.key]
        return "-".join(re.sub(r"[^\w.]+", "-", part).strip("-") for part in parts if part)

    def find(self, results: Path) -> Path | None:
        """Return the file of the finished run, whatever its variant was called, or None."""
        return next((results / RUNS).glob(f"*-{self.key}.json"), None)

    def to_dict(self) -> dict[str, Any]:
        """Return the plan as plain values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class RunsEntry:
    """One ``[[runs]]`` entry of an experiment: all combinations of what it lists."""

    corpora: list[str]
    models: list[str] = field(default_factory=lambda: ["fathomer"])
    seeds: list[int] = field(default_factory=lambda: [0])
    folds: list[int] = field(default_factory=list)
    of: int | None = None
    """Number of folds of the cross validation; by default the corpus's own."""
    variants: list[str] = field(default_factory=list)
    forced_depths: list[int] = field(default_factory=list)
    """Depths at which the trained model is also tested with every word at the same depth."""

    def combinations(self) -> Iterator[tuple[int, str, int | None, str | None, str]]:
        """Yield seed, corpus, fold, variant and model; one seed is complete before the next."""
        folds: list[int | None] = [*self.folds] or [None]
        variants: list[str | None] = [*self.variants] or [None]
        return product(self.seeds, self.corpora, folds, variants, self.models)


@dataclass(frozen=True, kw_only=True)
class Experiment:
    """The content of an experiment's TOML file."""

    title: str = ""
    vectors: str | None = None
    match_parameters: bool = False
    settings: Sections = field(default_factory=dict)
    corpora: Mapping[str, Sections] = field(default_factory=dict)
    models: Mapping[str, Sections] = field(default_factory=dict)
    variants: Mapping[str, Sections] = field(default_factory=dict)
    runs: tuple[RunsEntry, ...] = ()

    @classmethod
    def from_toml(cls, path: Path) -> Self:
        """Read an experiment; mistakes in its settings are found here, before anything runs."""
        try:
            content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
            experiment = cls._from_dict(content)
            experiment.plans()
        except FileNotFoundError:
            known = did_you_mean(path.stem, shipped_experiments())
            raise MissingFileError(f"{path}: no such experiment; {known}") from None
        except (ValueError, TypeError, AttributeError, OSError) as error:
            raise ConfigError(f"{path}: {error}") from None
        return experiment

    @classmethod
    def _from_dict(cls, content: dict[str, Any]) -> Self:
        if "experiment" not in content:
            raise ConfigError("not an experiment: it has no section [experiment]")
        values = {**content.pop("experiment"), **content}
        _check_names(values, cls)
        for entry in values.get("runs", ()):
            _check_names(entry, RunsEntry)
        values["runs"] = tuple(RunsEntry(**entry) for entry in values.get("runs", ()))
        return cls(**values)

    def plans(self, *, vectors: str | None = None) -> list[Plan]:
        """Return the runs in order, each once; ``vectors`` replaces the vectors of the file."""
        plans: dict[str, Plan] = {}
        for entry in self.runs:
            for seed, corpus, fold, variant, model in entry.combinations():
                chosen: Sections = {"model": {"name": model}, "train": {"seed": seed}}
                plan = Plan(
                    corpus=corpus,
                    settings=self._recipe(corpus, variant, model).updated(chosen).changed_values(),
                    vectors=vectors_name(vectors) if vectors else self.vectors,
                    variant=variant,
                    fold=fold,
                    folds=(entry.of or _default_folds(corpus)) if fold else None,
                    match_parameters=self.match_parameters and can_match(model),
                    forced_depths=tuple(entry.forced_depths),
                )
                first = plans.get(plan.key, plan)
                depths = sorted({*first.forced_depths, *plan.forced_depths})
                plans[plan.key] = replace(first, forced_depths=tuple(depths))
        return list(plans.values())

    def _recipe(self, corpus: str, variant: str | None, model: str) -> Recipe:
        """Return the settings of a corpus, with the learning rate of a model."""
        recipe = find_model(model).adapted(corpus_recipe(corpus)).updated(self.settings)
        recipe = recipe.updated(self.corpora.get(corpus, {})).updated(self.models.get(model, {}))
        if variant is None:
            return recipe
        if variant not in self.variants:
            raise ConfigError(
                f"no such variant {variant!r}; {did_you_mean(variant, self.variants)}"
            )
        return recipe.updated(self.variants[variant])


def corpus_recipe(name: str) -> Recipe:
    """Return the settings of all models on a corpus; on a file or the demo, those of its recipe."""
    if name not in CORPORA:
        return starting_recipe(name)
    corpus, words = CORPORA[name], CORPORA[name].words
    texts = corpus.sizes.train
    if corpus.folds:
        texts -= texts // corpus.folds
    average = words.average if words else TABLE_1[corpus.folder].average_words
    chosen = automatic_recipe(DataSize(texts=texts, words=round(texts * average)))
    published = {"max_depth": Recipe().model.max_depth, "ngrams": False}
    return chosen.updated({"model": published, "train": {"precision": "bfloat16"}})


@cache
def can_match(model: str) -> bool:
    """Whether there is a rival with as many parameters as ours; TF-IDF, for example, has no size."""
    if model == "fathomer":
        return False
    try:
        match_hidden_size(replace(Recipe().model, name=model, vocab_size=2, num_labels=2))
    except ConfigError:
        return False
    return True


def shipped_experiments() -> dict[str, Path]:
    """Return the experiments in this folder by name."""
    return {path.stem: path for path in sorted(RECIPES.glob("*.toml"))}


def find_experiment(name: str) -> Path:
    """Return the path of an experiment: a file, or one in this folder by name."""
    if Path(name).is_file() or name not in shipped_experiments():
        return Path(name)
    return shipped_experiments()[name]


def select_plans(plans: Sequence[Plan], pattern: str | None) -> list[Plan]:
    """Return the plans whose name matches a glob pattern; it is an error if none does."""
    selected = [plan for plan in plans if pattern is None or fnmatch(plan.name, pattern)]
    if not selected:
        problem = f"no run is called {pattern}; " if pattern else ""
        example = f"one of them is {plans[0].name}" if plans else "the experiment has no runs"
        raise ConfigError(f"{problem}{example}")
    return selected


def vectors_name(file: str) -> str:
    """Return the name of a vectors file without folder and suffix, as results record it.

    >>> vectors_name("data/mixed.300d.txt.gz")
    'mixed.300d'
    """
    return re.sub(r"(\.(txt|vec|bin|zip|gz|safetensors))+$", "", Path(file).name)


def _default_folds(corpus: str) -> int | None:
    return CORPORA[corpus].folds if corpus in CORPORA else None


def _check_names(values: Mapping[str, Any], kind: type) -> None:
    known = [item.name for item in fields(kind)]
    for name in values:
        if name not in known:
            raise ConfigError(f"unknown name {name!r}; {did_you_mean(name, known)}")
