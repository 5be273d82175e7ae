"""The first table of RESULTS.md: each corpus with the systems that a reader would choose from."""

from collections.abc import Mapping, Sequence, Set
from statistics import mean

from experiments.alternatives import MINILM, Measured
from experiments.comparison import compare
from experiments.groups import BY_DEFAULT, Group, family_of, find_group, find_pair
from experiments.published import published
from experiments.runs import Run
from experiments.tables import NOTHING, Table
from fathomer.data.datasets import CORPORA

SYSTEMS = {
    "as published": "fathomer",
    "Fathomer": BY_DEFAULT,
    "BiLSTM": "bilstm",
    "S-LSTM": "s-lstm",
    "TF-IDF": "tfidf",
}
_NAMES = {
    "as published": "the paper's network",
    "BiLSTM": "a three-layer BiLSTM",
    "S-LSTM": "the S-LSTM",
}
_REFERENCES = ("Fathomer", "TF-IDF")
"""Systems that every row has, if they were run at all."""
_NOTE = (
    "Test accuracy in percent, with the number of trainings in brackets where there are several per corpus. "
    "*As published*: the paper's network, trained with our settings. *Fathomer*: what `fathomer train` makes "
    "without any setting. *MiniLM + regression*: logistic regression on sentence embeddings, on corpora with a "
    "test set. Means are over the domains of amazon16, or the folds of a cross validation, that all systems of "
    "the row were run on; systems that were run on fewer domains have a row of their own."
)


def overview(runs: Sequence[Run], measured: Sequence[Measured] = ()) -> Table:
    """Return accuracies by corpus, Amazon-16 as one, and their mean over the corpora of the rows."""
    families: dict[str, list[str]] = {}
    for corpus in CORPORA:
        families.setdefault(family_of(corpus), []).append(corpus)
    minilm = {found.corpus: found.accuracy for found in measured if found.system == MINILM}
    rows = [row for name, corpora in families.items() for row in _rows(runs, name, corpora, minilm)]
    header = ["corpus", "paper", *SYSTEMS, MINILM]
    return Table("overview", "Accuracy at a glance", header, rows, _NOTE)


def _rows(
    runs: Sequence[Run], family: str, corpora: Sequence[str], minilm: Mapping[str, float]
) -> list[list[str]]:
    """Return a row for each set of corpora that some systems were run on, the largest first."""
    found = {
        title: {c: group for c in corpora if (group := find_group(runs, c, model))}
        for title, model in SYSTEMS.items()
    }
    references = [{*found[title]} for title in _REFERENCES if found[title]]
    sets = {
        frozenset(set.intersection({*groups}, *references)) for groups in found.values() if groups
    }
    rows = []
    for common in sorted(sets, key=lambda each: (-len(each), sorted(each))):
        if common:
            name = family if len(corpora) == 1 else f"{family} ({len(common)} of {len(corpora)})"
            groups = [groups[c] for groups in found.values() for c in common if c in groups]
            name += " (part of the training texts)" * any("p" in group.marks for group in groups)
            rows.append([name, *_cells(found, sorted(common)), _minilm_cell(minilm, common)])
    return rows


def _cells(found: dict[str, dict[str, Group]], common: Sequence[str]) -> list[str]:
    """Return the figure of the paper, and those of the systems that were run on all the corpora."""
    theirs = [published().accuracies(corpus)["fathomer"] for corpus in common]
    shown = {title: groups for title, groups in found.items() if {*common} <= {*groups}}
    shared = {c: _folds([groups[c] for groups in shown.values()]) for c in common}
    cells = [
        _cell([_of_folds(shown[title][c], shared[c]) for c in common])
        if title in shown
        else NOTHING
        for title in found
    ]
    return [f"{mean(theirs):.1f}", *cells]


def standing(runs: Sequence[Run]) -> list[str]:
    """Return a line for each other system that says how far our default model is ahead or behind."""
    lines = []
    for title, model in SYSTEMS.items():
        pairs = [p for c in CORPORA if (p := find_pair(runs, c, model, model=BY_DEFAULT))]
        if model == BY_DEFAULT or not pairs or not (found := compare(*pairs)):
            continue
        ahead = sum(ours.mean("accuracy") > theirs.mean("accuracy") for ours, theirs in pairs)
        points = f"{abs(100 * found.gain):.1f}"
        side = f"{points} points {'ahead of' if found.gain > 0 else 'behind'}"
        side = "level with" if points == "0.0" else side
        weak = "" if found.significant or points == "0.0" else ", which may be chance"
        lines.append(
            f"- Fathomer is {side} {_NAMES.get(title, title)} on average "
            f"(95 %: {100 * found.low:+.1f} to {100 * found.high:+.1f}){weak}, and ahead on {ahead} of "
            f"the {len(pairs)} corpora or domains where both were run."
        )
    return lines


def _minilm_cell(accuracies: Mapping[str, float], corpora: Set[str]) -> str:
    """Return the mean over the corpora, if all were measured and have a test set of their own."""
    if any(corpus not in accuracies or CORPORA[corpus].folds for corpus in corpora):
        return NOTHING
    return f"{100 * mean(accuracies[corpus] for corpus in corpora):.1f}"


def _folds(groups: Sequence[Group]) -> set[int]:
    """Return the folds of a cross validation that all systems were run on."""
    return set.intersection(*({*group.folds} for group in groups))


def _of_folds(group: Group, folds: set[int]) -> Group:
    return Group(tuple(run for run in group.runs if run.fold is None or run.fold in folds))


def _cell(groups: Sequence[Group]) -> str:
    if not any(group.runs for group in groups):
        return NOTHING
    trainings = sum(len(group.runs) for group in groups)
    number = f" ({trainings})" if trainings > len(groups) else ""
    return f"{100 * mean(group.mean('accuracy') for group in groups):.1f}{number}"
