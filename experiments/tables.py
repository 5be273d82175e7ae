"""The paper's Tables 1 to 3 with our figures next to the published ones, and all comparisons."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import mean

from experiments.comparison import RESAMPLES, Comparison, compare, holm, shown_p
from experiments.groups import BY_DEFAULT, Group, family_of, find_group, find_pair
from experiments.published import published
from experiments.runs import Run
from fathomer.answer_file import csv_line
from fathomer.data.datasets import CORPORA, TABLE_1

NOTHING = "–"
"""Cell of a figure that was not measured or not published."""
UNSEEN = "accuracy_unseen"


@dataclass(frozen=True)
class Table:
    """A table with its title and a note below it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""

    def to_markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {self.title}\n\n{body}\n" + (f"\n{self.note}\n" if self.note else "")

    def to_csv(self) -> str:
        """Return the table as CSV, without title and note."""
        return "".join(map(csv_line, [self.header, *self.rows]))


def table1() -> Table:
    """Compare the corpora with the paper's statistics."""
    rows = []
    for corpus in CORPORA.values():
        ours, theirs = corpus.words, TABLE_1[corpus.folder]
        in_all = " in all" if corpus.folder != corpus.name else ""
        rows.append(
            [
                corpus.name,
                str(len(set(corpus.labels.values()))),
                f"{ours.average:.0f}" if ours else NOTHING,
                str(theirs.average_words),
                f"{ours.longest:,}" if ours else NOTHING,
                f"{theirs.longest_words:,}",
                *(f"{size:,}" if size else "CV" for size in corpus.sizes),
                f"{theirs.train:,}{in_all}",
                f"{theirs.test:,}{in_all}" if theirs.test else "CV",
            ]
        )
    header = [
        "corpus", "labels", "mean words", "mean words, paper", "longest", "longest, paper",
        "train", "test", "train, paper", "test, paper",
    ]  # fmt: skip
    note = (
        "CV: cross validation with ten folds; the paper's table says ten, its text five. The paper's figures "
        "for Amazon-16 cover its 16 corpora together."
    )
    return Table("table1", "Table 1: the corpora", header, rows, note)


def table2(runs: Sequence[Run]) -> Table:
    """Compare the accuracies on Amazon-16."""
    corpora = [name for name in CORPORA if name.startswith("amazon16/")]
    models = _models(runs, corpora)
    header = ["corpus", *(part for m in models for part in (m, f"{m}, unseen texts", "paper"))]
    by_corpus = [_groups(runs, corpus, models) for corpus in corpora]
    rows, found = [], {model: [groups.get(model) for groups in by_corpus] for model in models}
    for number, corpus in enumerate(corpora):
        cells = [corpus.removeprefix("amazon16/")]
        for model in models:
            group = found[model][number]
            cells += [_cell(group), _cell(group, UNSEEN), _figure(corpus, model)]
        rows.append(cells)
    averages = ["mean"]
    for model in models:
        groups = [group for group in found[model] if group]
        whole = len(groups) == len(corpora)
        theirs = published().averages().get(model)
        shown = NOTHING if theirs is None else f"{theirs:.1f}"
        ours = [_mean(groups, name) if whole else NOTHING for name in ("accuracy", UNSEEN)]
        averages += [*ours, shown]
    note = (
        "Unseen texts: the test texts that do not also occur in the training set.\n\n"
        + _epochs(corpora, runs)
    ).rstrip()
    return Table("table2", "Table 2: accuracy on Amazon-16", header, [*rows, averages], note)


def _mean(groups: Sequence[Group], name: str) -> str:
    """Return the cell of a mean over corpora, each counted once."""
    share = 100 * mean(group.mean(name) for group in groups)
    return f"{share:.2f} ({sum(len(group.runs) for group in groups)}) {groups[0].marks}".rstrip()


def table3(runs: Sequence[Run]) -> Table:
    """Compare the accuracies on the other corpora."""
    corpora = [name for name in CORPORA if not name.startswith("amazon16/")]
    models = _models(runs, corpora)
    header = ["model", *(part for corpus in corpora for part in (corpus, "paper"))]
    found = {corpus: _groups(runs, corpus, models) for corpus in corpora}
    rows = [
        [
            model,
            *(
                part
                for corpus in corpora
                for part in (_cell(found[corpus].get(model)), _figure(corpus, model))
            ),
        ]
        for model in models
    ]
    notes = [line for corpus in corpora for line in _data_notes(corpus, found[corpus])]
    title = "Table 3: accuracy on the other corpora"
    epochs = _epochs(corpora, runs)
    return Table(
        "table3", title, header, rows, "\n\n".join([*notes, *([epochs] if epochs else [])])
    )


def _epochs(corpora: Sequence[str], runs: Sequence[Run]) -> str:
    """Return a line with the number of epochs on each corpus; empty if there are no runs."""
    groups = {corpus: find_group(runs, corpus, "fathomer") for corpus in corpora}
    epochs = {c: group.runs[0].recipe.train.epochs for c, group in groups.items() if group}
    if not epochs:
        return ""
    if len({*epochs.values()}) == 1:
        return f"Training epochs: {next(iter(epochs.values()))}."
    return f"Training epochs: {', '.join(f'{c} {number}' for c, number in epochs.items())}."


def _data_notes(corpus: str, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield a line for each part of a corpus that was not used."""
    for note in sorted({n for group in groups.values() for run in group.runs for n in run.notes}):
        if note.startswith("partial"):
            yield f"{corpus}: {note}."
    ours = groups.get("fathomer")
    common = set.intersection(*({*group.folds} for group in groups.values())) if groups else set()
    if ours and common and common < {*ours.folds}:
        part = Group(tuple(run for run in ours.runs if run.fold in common))
        named = " and ".join(map(str, sorted(common)))
        yield (
            f"{corpus}: our figure is over {len(ours.folds)} folds; over folds {named}, which all models were "
            f"run on, it is {part.cell()}."
        )


def significance(runs: Sequence[Run]) -> Table:
    """Compare our model with each rival on the test texts that both classified."""
    parts = {corpus: [corpus] for corpus in CORPORA}
    parts["amazon16, together"] = [corpus for corpus in CORPORA if corpus.startswith("amazon16/")]
    if len({family_of(run.corpus) for run in runs}) > 1:
        parts["all, together"] = list(CORPORA)
    found = [
        ([name, model, rival], pairs, comparison)
        for name, corpora in parts.items()
        for model, rival in combinations(dict.fromkeys([BY_DEFAULT, *_models(runs, corpora)]), 2)
        if model in ("fathomer", BY_DEFAULT)
        and (pairs := [p for c in corpora if (p := find_pair(runs, c, rival, model=model))])
        and (comparison := compare(*pairs))
    ]
    corrected = holm([comparison.p for *_, comparison in found])
    rows = [_comparison(*each, p) for each, p in zip(found, corrected, strict=True)]
    header = [
        "corpus",
        "ours",
        "rival",
        "texts",
        "runs",
        "size",
        "gain",
        "95 %",
        "p",
        "Holm's p",
        "verdict",
    ]
    note = (
        f"Paired bootstrap over the test texts that both models classified ({RESAMPLES:,} samples; the answers "
        "of several seeds to a text are averaged). Runs: trainings of the model that has fewer. Size: "
        "trainable parameters of the rival relative to ours. Gains are in percentage points of accuracy. The "
        "interval does not include the variation between trainings, which for a single training may be as "
        "large as the gain; p is two-sided. Holm's p is corrected for all comparisons of this table, and "
        "decides the verdict. Of several corpora together, each counts the same and is resampled by itself."
    )
    return Table("significance", "Ours against each rival", header, rows, note)


def _comparison(
    names: list[str],
    pairs: Sequence[tuple[Group, Group]],
    found: Comparison,
    corrected: float,
) -> list[str]:
    """Return the row that compares our model with a rival on some corpora."""
    verdict = "no difference shown"
    if corrected < 0.05:
        verdict = "better" if found.gain > 0 else "worse"
    if found.gain > 0 and any(theirs.undertrained for _, theirs in pairs):
        verdict = "rival has not learned"
    bounds = f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
    ours, theirs = (group.mean("parameters") for group in pairs[0])
    size = f"{theirs / ours:.2f}" if theirs else NOTHING
    cells = [f"{found.texts:,}", str(found.runs), size, f"{100 * found.gain:+.2f}"]
    return [*names, *cells, bounds, shown_p(found.p), shown_p(corrected), verdict]


def _models(runs: Sequence[Run], corpora: Sequence[str]) -> list[str]:
    """Return the models that were run on any of the corpora, ours first."""
    found = {run.model for run in runs if run.corpus in corpora} - {"fathomer"}
    default = any(find_group(runs, corpus, BY_DEFAULT) for corpus in corpora)
    return ["fathomer", *[BY_DEFAULT] * default, *sorted(found)]


def _groups(runs: Sequence[Run], corpus: str, models: Sequence[str]) -> dict[str, Group]:
    """Return the runs of each model on a corpus, with the settings of ours."""
    ours = find_group(runs, corpus, "fathomer")
    found = {model: find_group(runs, corpus, model, like=ours) for model in models}
    return {model: group for model, group in found.items() if group}


def _cell(group: Group | None, name: str = "accuracy") -> str:
    return group.cell(name) if group else NOTHING


def _figure(corpus: str, model: str) -> str:
    found = published().accuracies(corpus).get(model)
    return NOTHING if found is None else f"{found:g}"
