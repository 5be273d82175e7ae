"""Runs that belong together: the same model with the same settings, over seeds or folds."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.lab.runs import Run

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
    def marks(self) -> str:
        """Give a letter for each way in which the runs differ from the paper's."""
        run = self.runs[0]
        folds = {each.fold for each in self.runs}
        found = {
            "v": run.vectors != PAPER_VECTORS,
            "s": run.recipe.model.hidden_size != PAPER_HIDDEN_SIZE,
            "p": any("partial" in note for note in run.notes),
            "f": run.folds is not None and len(folds) < run.folds,
        }
        return "".join(letter for letter, differs in found.items() if differs)

    def cell(self, name: str = "accuracy", *, marks: str = "") -> str:
        """Write mean and deviation in percent, the number of runs, and the marks."""
        spread = self.deviation(name)
        shown = f"{100 * self.mean(name):.2f}"
        shown += "" if spread is None else f" ± {100 * spread:.2f}"
        return f"{shown} ({len(self.runs)}) {self.marks}{marks}".rstrip()


def find_group(runs: Sequence[Run], corpus: str, model: str, **settings: Any) -> Group | None:
    """Find the runs of a model on a corpus; of several settings, those that were run most often."""
    wanted = {**REFERENCE, **settings} if model == "fathomer" else settings
    groups: defaultdict[str, list[Run]] = defaultdict(list)
    for run in runs:
        if (run.corpus, run.model) != (corpus, model) or run.match_parameters:
            continue
        config = run.recipe.model.to_dict()
        if all(config[name] == value for name, value in wanted.items()):
            same = {k: v for k, v in sorted(run.settings.items()) if k != "train.seed"}
            groups[repr((same, run.vectors, run.folds))].append(run)
    if not groups:
        return None
    return max((Group(tuple(found)) for found in groups.values()), key=lambda g: len(g.runs))


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
    """Of the group that has fewer."""

    @property
    def significant(self) -> bool:
        """Say whether chance is an unlikely reason."""
        return self.p < 0.05

    def __str__(self) -> str:
        return (
            f"{100 * self.gain:+.2f} [{100 * self.low:+.2f}, {100 * self.high:+.2f}], "
            f"p = {self.p:.3f}"
        )


def compare(ours: Group, theirs: Group) -> Comparison | None:
    """Compare two groups by a paired bootstrap over the test texts that both have answered.

    What several seeds answer to one text is averaged first: the texts are drawn, not the answers.
    """
    shares = [_answers(group) for group in (ours, theirs)]
    common = sorted(set(shares[0]) & set(shares[1]))
    differences = [shares[0][key] - shares[1][key] for key in common]
    if not differences:
        return None
    all_of_them = np.concatenate(differences)
    values, counts = np.unique(all_of_them.round(9), return_counts=True)
    texts = len(all_of_them)
    # Texts with the same difference are alike: drawing texts is drawing how many of each kind.
    drawn = np.random.default_rng(0).multinomial(texts, counts / texts, size=RESAMPLES)
    gains = drawn @ values / texts
    low, high = np.quantile(gains, [0.025, 0.975])
    tail = min(float(np.mean(gains <= 0)), float(np.mean(gains >= 0)))
    return Comparison(
        gain=float(all_of_them.mean()),
        low=float(low),
        high=float(high),
        p=min(1.0, 2 * tail),
        texts=texts,
        runs=min(len(ours.runs), len(theirs.runs)),
    )


def _answers(group: Group) -> dict[tuple[int, str], NDArray[np.float64]]:
    """Give the share of right answers to each text, by fold and test part."""
    found: defaultdict[tuple[int, str], list[NDArray[np.bool_]]] = defaultdict(list)
    for run in group.runs:
        found[run.fold or 0, run.checksums["test"]].append(run.answers)
    return {key: np.mean(answers, axis=0) for key, answers in found.items()}
