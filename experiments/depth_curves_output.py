"""The table and the figure of accuracy against average depth."""

from collections.abc import Sequence
from pathlib import Path
from statistics import mean
from typing import NamedTuple

from experiments.depth_curves import FIXED, METHODS, DepthPoint, DepthTrial
from experiments.figures import new_figure, save_figure
from experiments.tables import Table

_NOTE = (
    "One model per method and seed, with the same settings on each corpus; supervised models are measured "
    "at several depth budgets. `mi`, `frequency`, `random` and `oracle` are target depths, `gumbel` is the "
    "paper's selection, and `fixed` reads every word equally deep. *Against dealt*: the accuracy minus that "
    "with the same depths dealt to the words at random, in points, with its standard error over the texts. "
    "Trainings that ran at the same time slow each other down, so texts per second are rough."
)


class CurveRow(NamedTuple):
    """The mean over the seeds of one corpus, method and budget."""

    corpus: str
    method: str
    budget: float | None
    seeds: int
    mean_depth: float
    accuracy: float
    gain: float | None
    """``accuracy - dealt``."""
    error: float | None
    texts_per_second: float
    train_seconds: float


def rows_of(trials: Sequence[DepthTrial]) -> list[CurveRow]:
    """Average the trials over their seeds.

    Seeds share the texts, so the standard errors are averaged, not divided.
    """
    groups: dict[tuple[str, str, float | None], list[tuple[DepthTrial, DepthPoint]]] = {}
    corpora = list(dict.fromkeys(trial.corpus for trial in trials))
    methods = list(dict.fromkeys([*METHODS, *(trial.method for trial in trials)]))
    for trial in sorted(trials, key=lambda t: (corpora.index(t.corpus), methods.index(t.method))):
        for point in trial.points:
            key = trial.corpus, trial.method, point.budget
            groups.setdefault(key, []).append((trial, point))
    rows = []
    for (corpus, method, budget), found in groups.items():
        points = [point for _, point in found]
        gains = [p.accuracy - p.dealt for p in points if p.dealt is not None]
        errors = [p.error for p in points if p.error is not None]
        rows.append(
            CurveRow(
                corpus,
                method,
                budget,
                len(points),
                mean(p.mean_depth for p in points),
                mean(p.accuracy for p in points),
                mean(gains) if gains else None,
                mean(errors) if errors else None,
                mean(p.texts_per_second for p in points),
                mean(trial.train_seconds for trial, _ in found),
            )
        )
    return rows


def table_of(trials: Sequence[DepthTrial]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table, as text."""
    header = ["corpus", "method", "budget", "seeds", "mean depth", "accuracy", "against dealt"]
    header += ["texts/s", "training, s"]
    body = [
        [
            row.corpus,
            row.method,
            "-" if row.budget is None else f"{row.budget:g}",
            str(row.seeds),
            f"{row.mean_depth:.2f}",
            f"{100 * row.accuracy:.1f}",
            "-" if row.gain is None else f"{100 * row.gain:+.1f} ± {100 * (row.error or 0):.1f}",
            f"{row.texts_per_second:,.0f}",
            f"{row.train_seconds:,.0f}",
        ]
        for row in rows_of(trials)
    ]
    return header, body


def curves_table(trials: Sequence[DepthTrial]) -> Table:
    """Return the table of RESULTS.md."""
    return Table("curves", "Accuracy against average depth", *table_of(trials), _NOTE)


def draw_curves(trials: Sequence[DepthTrial], path: Path) -> Path:
    """Draw accuracy against average depth: a panel per corpus, a line per method."""
    rows = rows_of(trials)
    corpora = list(dict.fromkeys(row.corpus for row in rows))
    names = [("fixed" if name in FIXED else name) for name in METHODS]
    names = list(dict.fromkeys([*names, *(row.method for row in rows)]))
    figure, panels = new_figure(4.5 * len(corpora), 3.5, ncols=len(corpora), squeeze=False)
    for axes, corpus in zip(panels, corpora, strict=True):
        lines: dict[str, list[CurveRow]] = {}
        for row in rows:
            if row.corpus == corpus:
                lines.setdefault("fixed" if row.method in FIXED else row.method, []).append(row)
        for name, found in lines.items():
            points = sorted((row.mean_depth, 100 * row.accuracy) for row in found)
            color = f"C{names.index(name)}"  # the same in all panels
            axes.plot(*zip(*points, strict=True), marker="o", markersize=3, label=name, color=color)
        axes.set(title=corpus, xlabel="average depth", ylabel="accuracy, %")
        axes.legend(frameon=False, fontsize="small")
    return save_figure(figure, path)
