"""The paper's figures as PNG: accuracy and speed by maximum depth, and the depths in two texts."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from benchmarks.charts import COLOURS, OTHERS
from experiments.groups import find_group
from experiments.runs import Run
from experiments.tables import NOTHING, Table
from fathomer.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DEPTHS = range(1, 10)
SELECTIONS = {"adaptive": "gumbel", "full": "full"}
Curve = dict[int, float]


class Sweep(NamedTuple):
    """Runs that differ in the maximum depth: their corpus and hidden size."""

    corpus: str
    hidden_size: int

    def __str__(self) -> str:
        return f"{self.corpus}, hidden size {self.hidden_size}"


def find_sweep(runs: Sequence[Run]) -> Sweep | None:
    """Return the corpus and size for which the most maximum depths were run, if more than one."""
    ours = [run for run in runs if run.model == "fathomer"]
    sweeps = sorted({Sweep(run.corpus, run.recipe.model.hidden_size) for run in ours})
    counts = {sweep: len(curve(runs, sweep, "adaptive", "accuracy")) for sweep in sweeps}
    best = max(sweeps, key=counts.__getitem__, default=None)
    return best if best and counts[best] > 1 else None


def curve(runs: Sequence[Run], sweep: Sweep, selection: str, name: str) -> Curve:
    """Return the mean of a figure by maximum depth, for adaptive or full depth."""
    corpus, size = sweep
    settings: dict[str, Any] = {"hidden_size": size, "depth": SELECTIONS[selection]}
    groups = {
        depth: find_group(runs, corpus, "fathomer", max_depth=depth, **settings) for depth in DEPTHS
    }
    return {depth: group.mean(name) for depth, group in groups.items() if group}


def sampled_run(runs: Sequence[Run]) -> Run | None:
    """Return the run whose sample texts are shown: on IMDB if possible, with the longest texts."""
    groups = [find_group(runs, corpus, "fathomer") for corpus in sorted({r.corpus for r in runs})]
    candidates = [run for group in groups if group for run in group.runs if len(run.samples) == 2]
    return max(
        candidates,
        key=lambda run: (run.corpus == "imdb", sum(len(s["depths"]) for s in run.samples)),
        default=None,
    )


def figure_tables(runs: Sequence[Run]) -> list[Table]:
    """Return the numbers of the figures for which there are enough runs."""
    sweep, run = find_sweep(runs), sampled_run(runs)
    return [
        *([_sweep_table(runs, sweep)] if sweep else []),
        *([_samples_table(run)] if run else []),
    ]


def _sweep_table(runs: Sequence[Run], sweep: Sweep) -> Table:
    names = ("accuracy", "predict_words_per_second", "mean_depth")
    curves = {(kind, name): curve(runs, sweep, kind, name) for kind in SELECTIONS for name in names}
    depths = sorted({depth for points in curves.values() for depth in points})
    rows = []
    for depth in depths:
        cells = [str(depth)]
        for kind in SELECTIONS:
            for name, form in zip(names, ("{:.2%}", "{:,.0f}", "{:.2f}"), strict=True):
                points = curves[kind, name]
                cells.append(form.format(points[depth]) if depth in points else NOTHING)
        rows.append(cells)
    parts = ("accuracy", "words/s", "depth")
    header = ["L", *(f"{kind}, {part}" for kind in SELECTIONS for part in parts)]
    error = _standard_error(max(curves["adaptive", "accuracy"].values()), runs, sweep)
    note = (
        f"One run each. The standard error of an accuracy on {_num_texts(runs, sweep):,} texts is {error:.1f} "
        "points. The runs were timed at different hours on shared machines."
    )
    return Table("figure3", f"Figure 3: the maximum depth ({sweep})", header, rows, note)


def _num_texts(runs: Sequence[Run], sweep: Sweep) -> int:
    """Return the number of test texts."""
    return max(run.examples for run in runs if run.corpus == sweep.corpus)


def _standard_error(accuracy: float, runs: Sequence[Run], sweep: Sweep) -> float:
    """Return the standard error of an accuracy in percentage points."""
    return float(100 * (accuracy * (1 - accuracy) / _num_texts(runs, sweep)) ** 0.5)


def _samples_table(run: Run) -> Table:
    header = ["text", "label", "words", *(f"depth {depth}" for depth in DEPTHS)]
    rows = []
    for sample in run.samples:
        depths = sample["depths"]
        counts = [str(depths.count(depth)) for depth in DEPTHS]
        rows.append([str(sample["number"]), str(sample["label"]), str(len(depths)), *counts])
    note = f"Number of words at each depth in two test texts of {run.corpus}, by the model of `{run.name}`."
    return Table("figure4", "Figure 4: depths in two texts", header, rows, note)


def draw_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw the figures for which there are enough runs and return their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    if sweep := find_sweep(runs):
        drawn.append(_draw_sweep(runs, sweep, folder / "figure3.png"))
    if run := sampled_run(runs):
        drawn.append(_draw_samples(run, folder / "figure4.png"))
    return drawn


def new_figure(width: float, height: float, **panels: Any) -> "tuple[Figure, list[Axes]]":
    """Create a figure with panels side by side, or as many ``nrows`` and ``ncols`` as given."""
    require("matplotlib", "plots")
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = list(figure.subplots(**panels).flat)
    for each in axes:
        each.spines[["top", "right"]].set_visible(False)
    return figure, axes


def save_figure(figure: "Figure", path: Path) -> Path:
    """Write a figure as PNG, without the version of matplotlib in its metadata."""
    figure.savefig(path, dpi=160, metadata={"Software": None})
    return path


def _draw_sweep(runs: Sequence[Run], sweep: Sweep, path: Path) -> Path:
    figure, (accuracy, speed) = new_figure(9, 3.8, ncols=2)
    colours = (COLOURS["fathomer"], OTHERS)
    for kind, colour, shift in zip(SELECTIONS, colours, (-0.1, 0.1), strict=True):
        shares = curve(runs, sweep, kind, "accuracy")
        accuracy.errorbar(
            [depth + shift for depth in shares],
            [100 * share for share in shares.values()],
            yerr=[_standard_error(share, runs, sweep) for share in shares.values()],
            marker="o", color=colour, elinewidth=1,
        )  # fmt: skip
        speeds = curve(runs, sweep, kind, "predict_words_per_second")
        thousands = [value / 1000 for value in speeds.values()]
        speed.plot(list(speeds), thousands, marker="o", color=colour, label=kind)
    accuracy.set(
        xlabel="maximum depth L", ylabel=f"accuracy on {sweep.corpus} (%) ± standard error"
    )
    speed.set(xlabel="maximum depth L", ylabel="thousand words per second", ylim=(0, None))
    speed.legend(frameon=False)
    for axes in (accuracy, speed):
        axes.set_xticks(DEPTHS)
    return save_figure(figure, path)


def _draw_samples(run: Run, path: Path) -> Path:
    figure, panels = new_figure(9, 3.4, ncols=2, sharex=True)
    for axes, sample in zip(panels, run.samples, strict=True):
        depths = sample["depths"]
        counts = [depths.count(depth) for depth in DEPTHS]
        axes.bar(list(DEPTHS), counts, color=COLOURS["fathomer"])
        title = f"{sample['label']} (text {sample['number']}, {len(depths)} words)"
        axes.set(title=title, xlabel="depth", ylabel="words")
        axes.set_xticks(DEPTHS)
    return save_figure(figure, path)
