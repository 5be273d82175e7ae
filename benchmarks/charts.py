"""Charts of the results: time against words, time against depth, and words per second."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathomer.errors import require

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = {"fathomer": "#0b6e99", "fathomer int8": "#3fa7d6"}
OTHERS = "#a7a9ac"
REFERENCE_LINES = "#55565a"

Rows = Sequence[dict[str, Any]]


def draw_charts(rows: Rows, folder: Path) -> list[Path]:
    """Draw all charts into a folder; return their paths."""
    require("matplotlib", "plots")
    return [
        _draw(time_against_words, rows, folder / "time-against-words.png"),
        _draw(time_against_depth, rows, folder / "time-against-depth.png"),
        _draw(words_per_second, rows, folder / "words-per-second.png"),
    ]


def _draw(chart: Any, rows: Rows, path: Path) -> Path:
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6.4, 4.0), layout="constrained")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    chart(rows, axes)
    figure.savefig(path, dpi=160)
    return path


def _select(rows: Rows, **wanted: Any) -> list[dict[str, Any]]:
    return [row for row in rows if all(row[name] == value for name, value in wanted.items())]


def _line(axes: "Axes", rows: Rows, xs: Sequence[float], label: str) -> None:
    """Draw medians with their spread, and a linear fit."""
    import numpy as np

    ys = [row["milliseconds"] for row in rows]
    spread = [
        [row["milliseconds"] - row["spread"]["min"] for row in rows],
        [row["spread"]["max"] - row["milliseconds"] for row in rows],
    ]
    colour = COLOURS[label]
    axes.yaxis.set_major_formatter("{x:,.0f}")
    axes.errorbar(xs, ys, spread, fmt="o", color=colour, capsize=3, label=label)
    if len(xs) > 1:
        slope, start = np.polyfit(xs, ys, 1)
        ends = np.array([0.0, max(xs)])
        axes.plot(ends, start + slope * ends, color=colour, linewidth=1, zorder=0)


def time_against_words(rows: Rows, axes: "Axes") -> None:
    """Show that the time is linear in the number of words."""
    found = _select(rows, name="fathomer", lengths="imdb", mean_depth=3, precision="float32")
    found = sorted((row for row in found if row["batch"] > 1), key=lambda row: row["words"])
    _line(axes, found, [row["words"] / 1000 for row in found], "fathomer")
    axes.set(title="Time against words (IMDB lengths, mean depth 3)")
    axes.set(xlabel="thousand words in a batch", ylabel="milliseconds", xlim=(0, None))
    axes.set_ylim(0, None)


def time_against_depth(rows: Rows, axes: "Axes") -> None:
    """Show that the time is linear in the mean depth, beside the times of other encoders."""
    at_32 = _select(rows, lengths="imdb", batch=32)
    for label, precision in (("fathomer", "float32"), ("fathomer int8", "int8")):
        found = _select(at_32, name="fathomer", precision=precision)
        found.sort(key=lambda row: row["mean_depth"])
        if found:
            _line(axes, found, [row["mean_depth"] for row in found], label)
    for name, style in (("bilstm", "--"), ("transformer", ":")):
        for row in _select(at_32, name=name):
            axes.axhline(
                row["milliseconds"], color=REFERENCE_LINES, linestyle=style, label=name, zorder=0
            )
    axes.set(title="Time against mean depth (IMDB lengths, batch of 32)")
    axes.set(xlabel="mean depth of the words", ylabel="milliseconds", xlim=(0, None))
    axes.set_ylim(0, None)
    axes.set_xticks(range(10))
    axes.legend(frameon=False, loc="upper left", bbox_to_anchor=(1, 1))  # beside the lines


def words_per_second(rows: Rows, axes: "Axes") -> None:
    """Compare the throughput of all systems on the same batch."""
    names = ("fathomer", "bilstm", "transformer", "transformer, one by one", "dense padded")
    found = [row for row in _select(rows, lengths="imdb", batch=32) if row["name"] in names]
    found.sort(key=lambda row: row["words_per_second"])
    labels = [_label(row) for row in found]
    speeds = [row["words_per_second"] / 1000 for row in found]
    colours = [COLOURS.get(label.partition(",")[0], OTHERS) for label in labels]
    bars = axes.barh(labels, speeds, color=colours)
    axes.bar_label(bars, [f"{speed:.1f}" for speed in speeds], padding=3)
    axes.set(
        title="Words per second (IMDB lengths, batch of 32)", xlabel="thousand words per second"
    )
    axes.tick_params(axis="y", length=0)


def _label(row: dict[str, Any]) -> str:
    if row["name"] != "fathomer":
        return str(row["name"])
    int8 = " int8" if row["precision"] == "int8" else ""
    return f"fathomer{int8}, depth {row['mean_depth']:g}"
