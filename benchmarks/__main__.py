"""The command ``fathomer bench``."""

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from benchmarks.serving_command import bench_serve
from fathomer.cli.options import Json
from fathomer.cli.output import messages_console, print_json, print_line
from fathomer.cli.runner import new_app, run_app

if TYPE_CHECKING:
    from benchmarks.speed import Ratio

app = new_app("benchmarks")
app.command("serving")(bench_serve)


@app.callback(invoke_without_command=True)
def benchmarks(context: typer.Context) -> None:
    """Measure how fast Fathomer is."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())


@app.command()
def speed(
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure what the ratios need, in under two minutes.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the figures as JSON.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Also draw charts as PNG files.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Measure Fathomer's speed beside that of other encoders.

    Without --quick, all rows are measured, which takes far longer. OMP_NUM_THREADS says how many
    threads are used.

    Example: python -m benchmarks speed --quick --out speed.json
    """
    from benchmarks.speed import COMPLETE, QUICK, ratios_of
    from benchmarks.speed import bench as measure
    from fathomer.files import write_atomically

    _check_places(out, plot)  # before the work, not after it
    plan = QUICK if quick else COMPLETE
    messages, started = messages_console(), time.perf_counter()
    found = measure(
        plan, tell=lambda line: messages.print(f"{time.perf_counter() - started:6.1f} s  {line}")
    )
    if out:
        write_atomically(out, json.dumps(found, indent=1) + "\n")
    if plot:
        from benchmarks.charts import draw_charts

        for path in draw_charts(found["rows"], plot):
            messages.print(f"drawn: {path}")
    if as_json:
        print_json(found)
        return
    _print_rows(found["rows"])
    _print_ratios(found["ratios"], ratios_of(plan))
    _print_machine(found["machine"])


def _check_places(out: Path | None, plot: Path | None) -> None:
    """Refuse what could not be written."""
    from fathomer.errors import require
    from fathomer.files import check_writable

    if out:
        check_writable(out)
    if plot:
        require("matplotlib", "plots")
        plot.mkdir(parents=True, exist_ok=True)


_LINE = "{:<22}{:>9}  {:<6}{:>6}{:>7}{:>12}{:>12}{:>22}{:>9}"


def _print_rows(rows: list[dict[str, Any]]) -> None:
    print_line(
        _LINE.format(
            "name", "precision", "texts", "batch", "depth", "words/s", "ms", "quartiles", "MB"
        )
    )
    for row in rows:
        spread = row["spread"]
        print_line(
            _LINE.format(
                row["name"],
                row["precision"] or "-",
                row["lengths"],
                row["batch"],
                "-" if row["mean_depth"] is None else f"{row['mean_depth']:g}",
                f"{row['words_per_second']:,.0f}",
                f"{row['milliseconds']:,.2f}",
                f"{spread['q1']:,.2f}–{spread['q3']:,.2f}",
                "-" if row["peak_mb"] is None else f"{row['peak_mb']:,.0f}",
            )
        )


def _print_ratios(found: dict[str, float | None], ratios: "dict[str, Ratio]") -> None:
    print_line("")
    for name, value in found.items():
        goal = f"{'at most' if ratios[name].at_most else 'at least'} {ratios[name].goal:g}"
        print_line(f"{name:<32}{'-' if value is None else f'{value:.2f}':>7}  ({goal})")


def _print_machine(machine: dict[str, Any]) -> None:
    print_line(
        f"\n{machine['processor']}, {' '.join(machine['instruction_set'])}; "
        f"{machine['threads']} threads on {machine['cores']} cores; "
        f"torch {machine['torch']}, Python {machine['python']}, Fathomer {machine['fathomer']}"
    )


if __name__ == "__main__":
    run_app(app, "python -m benchmarks")
