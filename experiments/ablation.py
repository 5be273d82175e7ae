"""The paper's Table 4: the ablation, with our figures next to the published ones."""

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from experiments.groups import Group, find_group
from experiments.plan import RECIPES, Experiment
from experiments.published import published
from experiments.runs import Run
from experiments.tables import NOTHING, Table

PAPER_CORPUS = "imdb"


@cache
def variant_settings(variant: str | None) -> Mapping[str, Any]:
    """Return the model settings that a variant of ``recipes/table4.toml`` changes."""
    if variant is None:
        return {}
    return Experiment.from_toml(RECIPES / "table4.toml").variants[variant]["model"]


def find_row(
    runs: Sequence[Run], corpus: str, variant: str | None, *, like: Group | None = None
) -> Group | None:
    """Return the runs of a row of the ablation on a corpus, or None."""
    return find_group(runs, corpus, "fathomer", like=like, **variant_settings(variant))


def ablated_corpus(runs: Sequence[Run]) -> str:
    """Return the corpus with the most rows of the ablation; of several, the paper's."""

    def rows(corpus: str) -> int:
        found = [find_row(runs, corpus, row.variant) for row in published().ablation]
        return len([group for group in found if group])

    return max([PAPER_CORPUS, *sorted({run.corpus for run in runs})], key=rows)


def table4(runs: Sequence[Run]) -> Table:
    """Compare accuracy and speed of the rows of the ablation with those of the full model."""
    corpus = ablated_corpus(runs)
    mark = "" if corpus == PAPER_CORPUS else "c"
    reference = find_row(runs, corpus, None)
    rows = []
    for row in published().ablation:
        group = find_row(runs, corpus, row.variant, like=reference)
        rows.append(
            [
                row.title,
                group.cell(marks=mark) if group else NOTHING,
                _change(group, reference, "accuracy", 100),
                f"{row.accuracy:.2f} ± {row.accuracy_deviation:.2f}",
                f"{row.accuracy_change:+.2f}",
                f"{group.mean('predict_words_per_second'):,.0f}" if group else NOTHING,
                _change(group, reference, "predict_words_per_second", 1),
                f"{row.speed:.0f}",
                f"{row.speed_change:+.0f}",
            ]
        )
    header = [
        "row", "accuracy", "Δ", "paper", "Δ, paper", "words/s", "Δ", "texts/s, paper", "Δ, paper",
    ]  # fmt: skip
    note = (
        f"Our corpus is {corpus}, the paper's IMDB. Speed is that of prediction: ours in words per second on a "
        "CPU, the paper's in texts per second on a GPU. Our rows were timed hours apart on shared machines, so "
        f"their speeds cannot be compared with each other.{_speed_up(runs)}"
    )
    return Table("table4", "Table 4: ablation", header, rows, note)


def _change(group: Group | None, reference: Group | None, name: str, scale: float) -> str:
    if group is None or reference is None:
        return NOTHING
    change = scale * (group.mean(name) - reference.mean(name))
    return f"{change:+,.2f}" if scale > 1 else f"{change:+,.0f}"


def _speed_up(runs: Sequence[Run]) -> str:
    """Describe the speed-up on the paper's corpus, if a run timed one model at both depths."""
    group = find_row(runs, PAPER_CORPUS, None)
    adaptive, full_depth, *_ = published().ablation
    for run in group.runs if group else ():
        fast, slow = run.predict_words_per_second, run.full_depth_speed
        if slow:
            return (
                f" One run timed the same model both ways on the test set of {PAPER_CORPUS}: {fast:,.0f} words "
                f"per second at the selected depths, {slow:,.0f} with every word at depth "
                f"{run.recipe.model.max_depth}: {fast / slow:.2f} times as fast (the paper's rows: "
                f"{adaptive.speed / full_depth.speed:.2f} times). See the table of depths for other corpora."
            )
    return ""
