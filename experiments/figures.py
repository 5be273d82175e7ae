"""The paper's figures as PNG: accuracy and speed against the largest depth; depths of two texts."""

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

DEPTHS = range(1, 10)
KINDS = {"adaptive": "gumbel", "full": "full"}
Points = dict[int, float]


class Sweep(NamedTuple):
    """Name runs that differ in the largest depth."""

    corpus: str
    hidden_size: int

    def __str__(self) -> str:
        return f"{self.corpus}, hidden size {self.hidden_size}"


def find_sweep(runs: Sequence[Run]) -> Sweep | None:
    """Choose the corpus and size with which most largest depths were tried, if there were several."""
    ours = [run for run in runs if run.model == "fathomer"]
    sweeps = sorted({Sweep(run.corpus, run.recipe.model.hidden_size) for run in ours})
    counts = {sweep: len(curve(runs, sweep, "adaptive", "accuracy")) for sweep in sweeps}
    best = max(sweeps, key=counts.__getitem__, default=None)
    return best if best and counts[best] > 1 else None


def curve(runs: Sequence[Run], sweep: Sweep, kind: str, name: str) -> Points:
    """Give a figure of merit by largest depth, for adaptive or full depth."""
    corpus, size = sweep
    settings: dict[str, Any] = {"hidden_size": size, "depth": KINDS[kind]}
    groups = {
        depth: find_group(runs, corpus, "fathomer", max_depth=depth, **settings) for depth in DEPTHS
    }
    return {depth: group.mean(name) for depth, group in groups.items() if group}


def sampled_run(runs: Sequence[Run]) -> Run | None:
    """Choose the run whose two texts are shown: on reviews, if there is one, and long ones."""
    groups = [find_group(runs, corpus, "fathomer") for corpus in sorted({r.corpus for r in runs})]
    chosen = [run for group in groups if group for run in group.runs if len(run.samples) == 2]
    return max(
        chosen,
        key=lambda run: (run.corpus == "imdb", sum(len(s["depths"]) for s in run.samples)),
        default=None,
    )


def figure_tables(runs: Sequence[Run]) -> list[Table]:
    """Give the numbers behind the figures that the runs suffice for."""
    sweep, run = find_sweep(runs), sampled_run(runs)
    return [
        *([_sweep_table(runs, sweep)] if sweep else []),
        *([_samples_table(run)] if run else []),
    ]


def _sweep_table(runs: Sequence[Run], sweep: Sweep) -> Table:
    names = ("accuracy", "predict_words_per_second", "mean_depth")
    found = {(kind, name): curve(runs, sweep, kind, name) for kind in KINDS for name in names}
    depths = sorted({depth for points in found.values() for depth in points})
    rows = []
    for depth in depths:
        cells = [str(depth)]
        for kind in KINDS:
            for name, form in zip(names, ("{:.2%}", "{:,.0f}", "{:.2f}"), strict=True):
                points = found[kind, name]
                cells.append(form.format(points[depth]) if depth in points else NOTHING)
        rows.append(cells)
    parts = ("accuracy", "words/s", "depth")
    header = ["L", *(f"{kind}, {part}" for kind in KINDS for part in parts)]
    error = _standard_error(max(found["adaptive", "accuracy"].values()), runs, sweep)
    texts = _texts(runs, sweep)
    note = (
        f"One run each. Chance alone moves an accuracy on {texts:,} texts by {error:.1f} points (standard "
        "error). The runs were timed at different hours on shared machines."
    )
    return Table("figure3", f"Figure 3: the largest depth ({sweep})", header, rows, note)


def _texts(runs: Sequence[Run], sweep: Sweep) -> int:
    """Count the test texts."""
    return max(run.examples for run in runs if run.corpus == sweep.corpus)


def _standard_error(share: float, runs: Sequence[Run], sweep: Sweep) -> float:
    """Say by how many points an accuracy on so many texts differs by chance."""
    return float(100 * (share * (1 - share) / _texts(runs, sweep)) ** 0.5)


def _samples_table(run: Run) -> Table:
    header = ["text", "label", "words", *(f"depth {depth}" for depth in DEPTHS)]
    rows = []
    for sample in run.samples:
        depths = sample["depths"]
        counts = [str(depths.count(depth)) for depth in DEPTHS]
        rows.append([str(sample["number"]), str(sample["label"]), str(len(depths)), *counts])
    note = f"Two test texts of {run.corpus}, read by the model of `{run.name}`; words by depth."
    return Table("figure4", "Figure 4: depths in two texts", header, rows, note)


def draw_figures(runs: Sequence[Run], folder: Path) -> list[Path]:
    """Draw what the runs suffice for; give the paths."""
    require("matplotlib", "plots")
    folder.mkdir(parents=True, exist_ok=True)
    drawn = []
    sweep = find_sweep(runs)
    if sweep:
        drawn.append(_draw_sweep(runs, sweep, folder / "figure3.png"))
    run = sampled_run(runs)
    if run:
        drawn.append(_draw_samples(run, folder / "figure4.png"))
    return drawn


def _draw_sweep(runs: Sequence[Run], sweep: Sweep, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.8), layout="constrained")
    accuracy, speed = figure.subplots(1, 2)
    for kind, colour, shift in zip(KINDS, (COLOURS["fathomer"], OTHERS), (-0.1, 0.1), strict=True):
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
        xlabel="largest depth L", ylabel=f"accuracy on {sweep.corpus} (%) ± standard error"
    )
    speed.set(xlabel="largest depth L", ylabel="thousand words per second", ylim=(0, None))
    speed.legend(frameon=False)
    for axes in (accuracy, speed):
        axes.set_xticks(DEPTHS)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160, metadata={"Software": None})
    return path


def _draw_samples(run: Run, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 3.4), layout="constrained")
    panels: list[Axes] = list(figure.subplots(1, 2, sharex=True))
    for axes, sample in zip(panels, run.samples, strict=True):
        depths = sample["depths"]
        counts = [depths.count(depth) for depth in DEPTHS]
        axes.bar(list(DEPTHS), counts, color=COLOURS["fathomer"])
        title = f"{sample['label']} (text {sample['number']}, {len(depths)} words)"
        axes.set(title=title, xlabel="depth", ylabel="words")
        axes.set_xticks(DEPTHS)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=160, metadata={"Software": None})
    return path
