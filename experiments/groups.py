"""Runs that belong together: the same model with the same settings, over seeds or folds."""

from collections import defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.runs import Run
from fathomer.data.datasets import CORPORA
from fathomer.model.interface import DirectNetwork, Network
from fathomer.model.registry import MODELS

REFERENCE = {"depth": "gumbel", "sequence": "bilstm", "max_depth": 9}
"""Our model as the paper has it; a row of the ablation changes one of these."""
PAPER_HIDDEN_SIZE = 400
PAPER_VECTORS = "glove.840B.300d"
RESAMPLES = 10_000

MARKS = {
    "v": f"other word vectors than the paper's {PAPER_VECTORS}",
    "s": f"another hidden size than the paper's {PAPER_HIDDEN_SIZE}",
    "p": "only a part of the training texts",
    "f": "not all folds of the cross validation",
    "c": "another corpus than the paper's",
}


@dataclass(frozen=True)
class Group:
    """Hold runs that differ in seed or fold only."""

    runs: tuple[Run, ...]

    def mean(self, name: str) -> float:
        """Give the mean of a figure over the runs."""
        return mean(float(getattr(run, name)) for run in self.runs)

    def deviation(self, name: str) -> float | None:
        """Give its standard deviation, if there are several runs."""
        values = [float(getattr(run, name)) for run in self.runs]
        return stdev(values) if len(values) > 1 else None

    @property
    def speed_up(self) -> float | None:
        """Say how many times as fast the models are with the selected depths as with all at the largest."""
        speeds = [(run.predict_words_per_second, run.full_depth_speed) for run in self.runs]
        ratios = [selected / full for selected, full in speeds if full]
        return mean(ratios) if ratios else None

    @property
    def forced(self) -> dict[float, float]:
        """Give the mean accuracy with every word at the same depth, by depth."""
        found: defaultdict[float, list[float]] = defaultdict(list)
        for row in (row for run in self.runs for row in run.forced):
            found[row["depth"]].append(row["accuracy"])
        return {depth: mean(each) for depth, each in found.items()}

    @property
    def folds(self) -> tuple[int, ...]:
        """Name the folds of the cross validation that were run."""
        return tuple(sorted({run.fold for run in self.runs if run.fold}))

    @property
    def setting(self) -> str:
        """Sum up what models and rows of the ablation have in common, so that they can be compared."""
        free = {"train.seed", "model.name", *(f"model.{name}" for name in REFERENCE)}
        return _setting(self.runs[0], but_for=free)

    @property
    def marks(self) -> str:
        """Give a letter for each way in which the runs differ from the paper's."""
        run = self.runs[0]
        network = MODELS[run.recipe.model.name].network
        sized = not issubclass(network, DirectNetwork)
        knows_vectors = network.word_vectors is not Network.word_vectors
        wanted = CORPORA[run.corpus].folds if run.corpus in CORPORA else run.folds
        found = {
            "v": knows_vectors and run.vectors != PAPER_VECTORS,
            "s": sized and run.recipe.model.hidden_size != PAPER_HIDDEN_SIZE,
            "p": any(note.startswith("partial training") for note in run.notes),
            "f": wanted is not None and len(self.folds) < wanted,
        }
        return "".join(letter for letter, differs in found.items() if differs)

    def cell(self, name: str = "accuracy", *, marks: str = "") -> str:
        """Write mean and deviation in percent, the number of runs, and the marks."""
        spread = self.deviation(name)
        shown = f"{100 * self.mean(name):.2f}"
        shown += "" if spread is None else f" ± {100 * spread:.2f}"
        return f"{shown} ({len(self.runs)}) {self.marks}{marks}".rstrip()


def family_of(corpus: str) -> str:
    """Name the row that the paper's statistics and claims have for a corpus: one for all of Amazon-16."""
    return corpus.partition("/")[0]


def find_group(
    runs: Sequence[Run], corpus: str, model: str, *, like: Group | None = None, **settings: Any
) -> Group | None:
    """Find the runs of a model on a corpus: with the settings of another group, if it is given.

    Of several settings those that were run most often are chosen, then those of the largest model.
    """
    wanted = {**REFERENCE, **settings} if model == "fathomer" else settings
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if (run.corpus, run.model) != (corpus, model) or run.match_parameters:
            continue
        config = run.recipe.model.to_dict()
        if all(config[name] == value for name, value in wanted.items()):
            groups[_setting(run, but_for={"train.seed"})].append(run)
    found = [Group(tuple(each)) for each in groups.values()]
    if like:
        found = [group for group in found if group.setting == like.setting]
    return max(found, key=lambda g: (len(g.runs), g.mean("hidden_size")), default=None)


def find_pair(
    runs: Sequence[Run], corpus: str, rival: str, **settings: Any
) -> tuple[Group, Group] | None:
    """Find our runs on a corpus, and those of a rival (or of ours, changed) with the same settings."""
    ours = find_group(runs, corpus, "fathomer")
    theirs = find_group(runs, corpus, rival, like=ours, **settings) if ours else None
    return (ours, theirs) if ours and theirs else None


def _setting(run: Run, *, but_for: Set[str]) -> str:
    """Sum up the settings of a run without some of them."""
    same = {name: value for name, value in sorted(run.settings.items()) if name not in but_for}
    return repr((same, run.vectors, run.folds))


@dataclass(frozen=True)
class Comparison:
    """Hold by how much one group is better than another on the same test texts."""

    gain: float
    low: float
    high: float
    """Bounds of the middle 95 % of the resampled gains."""
    p: float
    """Two-sided: how often a resampled gain lies on the other side of zero."""
    texts: int
    runs: int
    """Of the side that has fewer."""

    @property
    def significant(self) -> bool:
        """Say whether chance is an unlikely reason."""
        return self.p < 0.05

    @property
    def shown_p(self) -> str:
        """Write p as far as the resampling knows it."""
        return "< 0.001" if self.p < 0.001 else f"{self.p:.3f}"

    def __str__(self) -> str:
        p = self.shown_p if self.p < 0.001 else f"= {self.shown_p}"
        runs = f"{self.runs} run{'s' if self.runs > 1 else ''}"
        return f"{100 * self.gain:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}], p {p} ({runs})"


def compare(*pairs: tuple[Group, Group]) -> Comparison | None:
    """Compare ours with theirs by a paired bootstrap over the test texts that both have answered.

    What several seeds answer to one text is averaged first: the texts are drawn, not the answers.
    The texts of several pairs, each on a corpus of its own, are drawn together.
    """
    differences = [array for pair in pairs for array in _differences(*pair)]
    if not differences:
        return None
    all_of_them = np.concatenate(differences)
    texts = len(all_of_them)
    # Texts with the same difference are alike: drawing texts is drawing how many of each kind.
    _, first, counts = np.unique(all_of_them.round(9), return_index=True, return_counts=True)
    drawn = np.random.default_rng(0).multinomial(texts, counts / texts, size=RESAMPLES)
    gains = (drawn @ all_of_them[first] / texts).round(12)  # what cancels out is zero
    low, high = np.quantile(gains, [0.025, 0.975])
    tail = min(float(np.mean(gains <= 0)), float(np.mean(gains >= 0)))
    return Comparison(
        gain=float(all_of_them.mean()),
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * tail),
        texts=texts,
        runs=sum(min(len(group.runs) for group in pair) for pair in pairs),
    )


def _differences(ours: Group, theirs: Group) -> list[NDArray[np.float64]]:
    """Subtract the shares of right answers to each text, for each test part that both have read."""
    first, second = _answers(ours), _answers(theirs)
    return [first[key] - second[key] for key in sorted(set(first) & set(second))]


def _answers(group: Group) -> dict[tuple[int, str], NDArray[np.float64]]:
    """Give the share of right answers to each text, by fold and test part."""
    found: defaultdict[tuple[int, str], list[NDArray[np.bool_]]] = defaultdict(list)
    for run in group.runs:
        found[run.fold or 0, run.checksums["test"]].append(run.answers)
    return {key: np.mean(answers, axis=0) for key, answers in found.items()}
