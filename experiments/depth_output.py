"""A depth analysis as text on the terminal and as a chart."""

from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING

from benchmarks.charts import COLOURS, REFERENCE_LINES
from experiments.depths import DepthAnalysis
from experiments.figures import new_figure, save_figure
from fathomer.cli.output import print_line, print_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def print_depths(found: DepthAnalysis) -> None:
    """Print the mean depths of all groups of words, and the accuracy at each depth."""
    print_line(f"{found.words:,} words, mean depth {found.mean_depth:.2f} of {found.max_depth}")
    for title in ("by_frequency", "by_length", "by_position", "by_vocabulary"):
        rows = [[r.name, f"{r.words:,}", f"{r.mean_depth:.2f}"] for r in getattr(found, title)]
        print_line("")
        print_table([title.replace("_", " "), "words", "mean depth"], rows)
    for title in ("deepest", "shallowest"):
        words = ", ".join(f"{r.name} {r.mean_depth:.1f}" for r in getattr(found, title))
        print_line(f"\n{title} frequent words: {words}")
    correlation = found.frequency_correlation
    shown = "-" if correlation is None else f"{correlation:+.3f}"
    print_line(f"\ncorrelation of frequency and mean depth (Spearman): {shown}\n")
    rows = [[str(depth), f"{accuracy:.4f}"] for depth, accuracy in found.forced]
    rows.append(["selected", f"{found.accuracy:.4f}"])
    rows.append(["selected, shuffled between words", f"{mean(found.shuffled):.4f}"])
    print_table(["every word at depth", "accuracy"], rows)


def draw_depths(found: DepthAnalysis, path: Path) -> None:
    """Draw the mean depth of each group of words, and the accuracy at each depth."""
    figure, (*panels, curve, unused) = new_figure(11, 6, nrows=2, ncols=3)
    unused.set_axis_off()
    groups = {
        "occurrences of the word": found.by_frequency,
        "length of the word": found.by_length,
        "position in the text": found.by_position,
        "in the vocabulary": found.by_vocabulary,
    }
    for axes, (title, rows) in zip(panels, groups.items(), strict=True):
        names, depths = [row.name for row in rows], [row.mean_depth for row in rows]
        axes.bar(names, depths, color=COLOURS["fathomer"])
        axes.axhline(found.mean_depth, color=REFERENCE_LINES, linewidth=1)
        axes.set(xlabel=title, ylabel="mean depth", ylim=(0, found.max_depth))
        axes.tick_params(axis="x", labelsize="small")  # room for the names of seven groups
    _draw_accuracies(found, curve)
    save_figure(figure, path)


def _draw_accuracies(found: DepthAnalysis, axes: "Axes") -> None:
    depths, accuracies = zip(*found.forced, strict=True)
    low, high = min(found.shuffled), max(found.shuffled)
    axes.plot(depths, accuracies, marker="o", color=COLOURS["fathomer"], label="forced")
    axes.axhline(found.accuracy, color=REFERENCE_LINES, linewidth=1, label="selected")
    axes.axhspan(low, high, color=REFERENCE_LINES, alpha=0.15, label="shuffled")
    shown = [found.accuracy, low, high, *accuracies]
    # A margin, so that tiny differences do not fill the panel.
    limits = (min(shown) - 0.02, max(shown) + 0.02)
    axes.set(xlabel="depth of every word", ylabel="accuracy", ylim=limits)
    axes.legend(frameon=False)
