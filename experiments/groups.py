"""Groups of runs: the same model with the same settings, over several seeds or folds."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import experiments.rivals  # noqa: F401 (registers the models)
from experiments.plan import corpus_recipe
from experiments.runs import Run
from fathomer.data.datasets import CORPORA
from fathomer.model.interface import DirectNetwork, Network
from fathomer.model.registry import MODELS

REFERENCE = {"depth": "gumbel", "sequence": "bilstm", "max_depth": 9, "ngrams": False}
"""The full model of the paper; a row of the ablation changes one of these settings."""
BY_DEFAULT = "fathomer, by default"
"""The name for our model as ``fathomer train`` makes it, beside ``fathomer``: as published."""
DEFAULTS = {**REFERENCE, "max_depth": 3, "ngrams": True}
"""What distinguishes it."""
LEARNED = 0.9
"""Accuracy on the training texts that a trained model should have."""
PAPER_HIDDEN_SIZE = 400
PAPER_VECTORS = "glove.840B.300d"

MARKS = {
    "v": f"word vectors other than the paper's {PAPER_VECTORS}",
    "s": f"a hidden size other than the paper's {PAPER_HIDDEN_SIZE}",
    "p": "only part of the training texts",
    "f": "not all folds of the cross validation",
    "t": "fewer than 90 % of the training texts are classified correctly after training",
    "e": "fewer epochs than `fathomer train` would choose, to save time",
    "c": "a corpus other than the paper's",
}


@dataclass(frozen=True)
class Group:
    """Runs that differ only in seed or fold."""

    runs: tuple[Run, ...]

    def mean(self, name: str) -> float:
        """Return the mean of a figure over the runs."""
        return mean(float(getattr(run, name)) for run in self.runs)

    def deviation(self, name: str) -> float | None:
        """Return the standard deviation of a figure, or None if there is only one run."""
        values = [float(getattr(run, name)) for run in self.runs]
        return stdev(values) if len(values) > 1 else None

    @property
    def speed_up(self) -> float | None:
        """Speed at the selected depths relative to the same model with every word at full depth."""
        speeds = [(run.predict_words_per_second, run.full_depth_speed) for run in self.runs]
        ratios = [selected / full for selected, full in speeds if full]
        return mean(ratios) if ratios else None

    @property
    def forced_accuracies(self) -> dict[float, float]:
        """Mean accuracy with every word at the same depth, by depth."""
        accuracies: defaultdict[float, list[float]] = defaultdict(list)
        for row in (row for run in self.runs for row in run.forced):
            accuracies[row["depth"]].append(row["accuracy"])
        return {depth: mean(values) for depth, values in accuracies.items()}

    @property
    def folds(self) -> tuple[int, ...]:
        """Folds of the cross validation that were run."""
        return tuple(sorted({run.fold for run in self.runs if run.fold}))

    @property
    def undertrained(self) -> bool:
        """Whether a model has not learned its training texts, so that beating it means little."""
        found = [run.train_accuracy for run in self.runs if run.train_accuracy is not None]
        return bool(found) and mean(found) < LEARNED

    @property
    def shared_settings(self) -> str:
        """Settings that must be equal before models or rows of the ablation can be compared."""
        free = {"train.seed", "model.name", *(f"model.{name}" for name in REFERENCE)}
        model = MODELS[self.runs[0].model]  # its own learning rate and epochs were chosen for it
        free |= {"train.learning_rate"} if model.rate else set()
        free |= {"train.epochs"} if model.epochs > 1 else set()
        return _settings_key(self.runs[0], ignoring=free)

    @property
    def marks(self) -> str:
        """The letters of :data:`MARKS` that apply."""
        run = self.runs[0]
        network = MODELS[run.recipe.model.name].network
        has_hidden_size = not issubclass(network, DirectNetwork)
        uses_vectors = network.word_vectors is not Network.word_vectors
        folds = CORPORA[run.corpus].folds if run.corpus in CORPORA else run.folds
        applies = {
            "v": uses_vectors and run.vectors != PAPER_VECTORS,
            "s": has_hidden_size and run.recipe.model.hidden_size != PAPER_HIDDEN_SIZE,
            "p": any(note.startswith("partial training") for note in run.notes),
            "f": folds is not None and len(self.folds) < folds,
            "t": self.undertrained,
            "e": has_hidden_size
            and run.corpus in CORPORA
            and run.recipe.train.epochs < corpus_recipe(run.corpus).train.epochs,
        }
        return "".join(letter for letter, applied in applies.items() if applied)

    def cell(self, name: str = "accuracy", *, marks: str = "") -> str:
        """Return a table cell: mean and deviation in percent, number of runs, and marks."""
        spread = self.deviation(name)
        shown = f"{100 * self.mean(name):.2f}"
        shown += "" if spread is None else f" ± {100 * spread:.2f}"
        return f"{shown} ({len(self.runs)}) {self.marks}{marks}".rstrip()


def family_of(corpus: str) -> str:
    """Return the corpus, or ``amazon16`` for one of its 16, which the paper's claims count as one."""
    return corpus.partition("/")[0]


def find_group(
    runs: Sequence[Run], corpus: str, model: str, *, like: Group | None = None, **settings: Any
) -> Group | None:
    """Return the runs of a model on a corpus, or None; with ``like``, those with equal settings.

    If there are several settings, those with the most runs are chosen, then the largest model.
    """
    wanted = {**{"fathomer": REFERENCE, BY_DEFAULT: DEFAULTS}.get(model, {}), **settings}
    name = "fathomer" if model == BY_DEFAULT else model
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if (run.corpus, run.model) != (corpus, name):
            continue
        config = run.recipe.model.to_dict()
        if all(config[name] == value for name, value in wanted.items()):
            groups[_settings_key(run, ignoring={"train.seed"})].append(run)
    found = [Group(tuple(each)) for each in groups.values()]
    if like:
        found = [group for group in found if group.shared_settings == like.shared_settings]
    return max(found, key=lambda g: (len(g.runs), g.mean("hidden_size")), default=None)


def find_pair(
    runs: Sequence[Run], corpus: str, rival: str, *, model: str = "fathomer", **settings: Any
) -> tuple[Group, Group] | None:
    """Return our runs and a rival's (or ours, changed) with equal settings, or None."""
    ours = find_group(runs, corpus, model)
    theirs = find_group(runs, corpus, rival, like=ours, **settings) if ours else None
    return (ours, theirs) if ours and theirs else None


def _settings_key(run: Run, *, ignoring: Set[str]) -> str:
    same = {name: value for name, value in sorted(run.settings.items()) if name not in ignoring}
    return repr((same, run.vectors, run.folds))
