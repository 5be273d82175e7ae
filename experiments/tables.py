"""The paper's tables, ours beside the published, as Markdown and as CSV."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import mean
from typing import Any

from experiments.groups import Group, compare, family_of, find_group, find_pair
from experiments.published import published
from experiments.runs import Run
from fathomer.answer_file import csv_line
from fathomer.data.corpora import CORPORA

NOTHING = "–"
UNSEEN = "accuracy_unseen"
ROWS: tuple[dict[str, Any], ...] = (
    {}, {"depth": "full"}, {"sequence": "none"}, {"sequence": "sinusoidal"}, {"sequence": "learned"},
    {"depth": "hard"}, {"depth": "soft"},
)  # fmt: skip
"""What each row of the ablation changes."""


@dataclass(frozen=True)
class Table:
    """Hold a table with its heading and what must be said below it."""

    name: str
    title: str
    header: list[str]
    rows: list[list[str]]
    note: str = ""

    def to_markdown(self) -> str:
        """Write the table for reading."""
        lines = [self.header, ["---", *["---:"] * (len(self.header) - 1)], *self.rows]
        body = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return f"## {self.title}\n\n{body}\n" + (f"\n{self.note}\n" if self.note else "")

    def to_csv(self) -> str:
        """Write the table for programs."""
        return "".join(map(csv_line, [self.header, *self.rows]))


def all_tables(runs: Sequence[Run]) -> list[Table]:
    """Make all tables."""
    return [table1(), table2(runs), table3(runs), table4(runs), significance(runs)]


def table1() -> Table:
    """Compare the corpora with what the paper says of them."""
    rows, papers = [], {each.corpus: each for each in published().corpora}
    for corpus in CORPORA.values():
        ours, theirs = corpus.words, papers[family_of(corpus.name)]
        in_all = " in all" if theirs.corpus != corpus.name else ""
        rows.append(
            [
                corpus.name,
                str(len(set(corpus.labels.values()))),
                f"{ours.average:.0f}" if ours else NOTHING,
                str(theirs.average_length),
                f"{ours.longest:,}" if ours else NOTHING,
                f"{theirs.max_length:,}",
                *(f"{size:,}" if size else "CV" for size in corpus.sizes),
                f"{theirs.train:,}{in_all}",
                f"{theirs.test:,}{in_all}" if theirs.test else "CV",
            ]
        )
    header = [
        "corpus", "labels", "mean words", "paper", "longest", "paper", "train", "test",
        "train, paper", "test, paper",
    ]  # fmt: skip
    note = (
        "CV: cross validation, in ten parts; the paper's table has ten, its text five. The paper gives "
        "Amazon-16's figures for its 16 corpora together."
    )
    return Table("table1", "Table 1: the corpora", header, rows, note)


def table2(runs: Sequence[Run]) -> Table:
    """Compare accuracies on Amazon-16."""
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
        "Unseen texts: the test texts that do not stand in the training part too.\n\n"
        + _epochs(corpora, runs)
    ).rstrip()
    return Table("table2", "Table 2: accuracy on Amazon-16", header, [*rows, averages], note)


def _mean(groups: Sequence[Group], name: str) -> str:
    """Average over corpora, each of which counts once."""
    share = 100 * mean(group.mean(name) for group in groups)
    return f"{share:.2f} ({sum(len(group.runs) for group in groups)}) {groups[0].marks}".rstrip()


def table3(runs: Sequence[Run]) -> Table:
    """Compare accuracies on the other corpora."""
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
    notes = [line for corpus in corpora for line in _cautions(corpus, found[corpus])]
    title = "Table 3: accuracy on the other corpora"
    epochs = _epochs(corpora, runs)
    return Table(
        "table3", title, header, rows, "\n\n".join([*notes, *([epochs] if epochs else [])])
    )


def _epochs(corpora: Sequence[str], runs: Sequence[Run]) -> str:
    """Say for how many epochs models were trained, if they were."""
    groups = {corpus: find_group(runs, corpus, "fathomer") for corpus in corpora}
    epochs = {c: group.runs[0].recipe.train.epochs for c, group in groups.items() if group}
    if not epochs:
        return ""
    if len({*epochs.values()}) == 1:
        return f"Epochs of training: {next(iter(epochs.values()))}."
    return f"Epochs of training: {', '.join(f'{c} {number}' for c, number in epochs.items())}."


def _cautions(corpus: str, groups: Mapping[str, Group]) -> Iterator[str]:
    """Say what the cells of a corpus do not: which part of it was used."""
    for note in sorted({n for group in groups.values() for run in group.runs for n in run.notes}):
        if note.startswith("partial"):
            yield f"{corpus}: {note}."
    ours = groups.get("fathomer")
    common = set.intersection(*({*group.folds} for group in groups.values())) if groups else set()
    if ours and common and common < {*ours.folds}:
        part = Group(tuple(run for run in ours.runs if run.fold in common))
        named = " and ".join(map(str, sorted(common)))
        yield (
            f"{corpus}: ours was run on {len(ours.folds)} folds; on folds {named}, which all have read, "
            f"it has {part.cell()}."
        )


def ablated_corpus(runs: Sequence[Run]) -> str:
    """Choose the corpus on which most rows of the ablation were run: the paper's, if in doubt."""
    counts = {corpus: len([row for row in ROWS if find_group(runs, corpus, "fathomer", **row)])
              for corpus in ("imdb", *sorted({run.corpus for run in runs}))}  # fmt: skip
    return max(counts, key=lambda corpus: counts[corpus])


def table4(runs: Sequence[Run]) -> Table:
    """Compare the rows of the ablation: accuracy and speed, and what each change does to them."""
    corpus = ablated_corpus(runs)
    mark = "" if corpus == "imdb" else "c"
    reference = find_group(runs, corpus, "fathomer")
    rows = []
    for variant, changed in zip(published().ablation, ROWS, strict=True):
        group = find_group(runs, corpus, "fathomer", like=reference, **changed)
        rows.append(
            [
                variant.title,
                group.cell(marks=mark) if group else NOTHING,
                _change(group, reference, "accuracy", 100),
                f"{variant.accuracy:.2f} ± {variant.accuracy_deviation:.2f}",
                f"{variant.accuracy_change:+.2f}",
                f"{group.mean('predict_words_per_second'):,.0f}" if group else NOTHING,
                _change(group, reference, "predict_words_per_second", 1),
                f"{variant.speed:.0f}",
                f"{variant.speed_change:+.0f}",
            ]
        )
    header = [
        "row", "accuracy", "Δ", "paper", "Δ, paper", "words/s", "Δ", "texts/s, paper", "Δ, paper",
    ]  # fmt: skip
    note = (
        f"Ours on {corpus}, the paper's on IMDB. Speeds are of prediction: ours on a CPU in words per second, "
        "the paper's on a GPU in texts per second. Our rows were timed hours apart on shared machines: "
        f"compare no speeds by them.{_both_ways(runs)}"
    )
    return Table("table4", "Table 4: ablation", header, rows, note)


def _both_ways(runs: Sequence[Run]) -> str:
    """Say what the selected depths gain on the paper's corpus, where one run has timed a model both ways."""
    group = find_group(runs, "imdb", "fathomer")
    adaptive, full_depth, *_ = published().ablation
    for run in group.runs if group else ():
        fast, slow = run.predict_words_per_second, run.full_depth_speed
        if slow:
            return (
                f" One model was timed both ways in one run, on the test part of imdb: {fast:,.0f} words per "
                f"second with the selected depths, {slow:,.0f} with every word at depth "
                f"{run.recipe.model.max_depth}: {fast / slow:.2f} times as fast (the paper's rows: "
                f"{adaptive.speed / full_depth.speed:.2f} times). The table of depths has other corpora."
            )
    return ""


def significance(runs: Sequence[Run]) -> Table:
    """Compare ours with each rival on the texts that both have answered."""
    parts = {corpus: [corpus] for corpus in CORPORA}
    parts["amazon16, together"] = [corpus for corpus in CORPORA if corpus.startswith("amazon16/")]
    rows = [
        row
        for name, corpora in parts.items()
        for model in _models(runs, corpora)[1:]
        if (row := _comparison(runs, name, corpora, model))
    ]
    header = ["corpus", "rival", "texts", "runs", "size", "gain", "95 %", "p", "significant"]
    note = (
        "Paired bootstrap over the test texts that both have answered (10,000 samples; the answers of "
        "several seeds to a text are averaged). Runs: trainings of the side that has fewer. Size: the rival's "
        "trained parameters as a share of ours. Gains are in points of accuracy. The bounds do not hold the "
        "chance of the training itself, which after one training may be as large as the gain; p is two-sided "
        "and not corrected for many comparisons."
    )
    return Table("significance", "Ours against each rival", header, rows, note)


def _comparison(
    runs: Sequence[Run], name: str, corpora: Sequence[str], model: str
) -> list[str] | None:
    """Compare ours with a rival on all texts of some corpora."""
    pairs = [pair for corpus in corpora if (pair := find_pair(runs, corpus, model))]
    found = compare(*pairs)
    if not found:
        return None
    verdict = "no"
    if found.significant:
        verdict = "ours is better" if found.gain > 0 else "ours is worse"
    bounds = f"{100 * found.low:+.2f} to {100 * found.high:+.2f}"
    ours, theirs = (group.mean("parameters") for group in pairs[0])
    size = f"{theirs / ours:.2f}" if theirs else NOTHING
    cells = [f"{found.texts:,}", str(found.runs), size, f"{100 * found.gain:+.2f}"]
    return [name, model, *cells, bounds, found.shown_p, verdict]


def _models(runs: Sequence[Run], corpora: Sequence[str]) -> list[str]:
    """Name the models that were run on some of the corpora, ours first."""
    found = {run.model for run in runs if run.corpus in corpora} - {"fathomer"}
    return ["fathomer", *sorted(found)]


def _groups(runs: Sequence[Run], corpus: str, models: Sequence[str]) -> dict[str, Group]:
    """Find the runs of each model on a corpus, all with the settings of ours."""
    ours = find_group(runs, corpus, "fathomer")
    found = {model: find_group(runs, corpus, model, like=ours) for model in models}
    return {model: group for model, group in found.items() if group}


def _cell(group: Group | None, name: str = "accuracy") -> str:
    return group.cell(name) if group else NOTHING


def _figure(corpus: str, model: str) -> str:
    found = published().accuracies(corpus).get(model)
    return NOTHING if found is None else f"{found:g}"


def _change(group: Group | None, reference: Group | None, name: str, scale: float) -> str:
    if group is None or reference is None:
        return NOTHING
    change = scale * (group.mean(name) - reference.mean(name))
    return f"{change:+,.2f}" if scale > 1 else f"{change:+,.0f}"
