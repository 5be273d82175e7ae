"""The commands ``python -m benchmarks speed``, ``training``, ``scale`` and ``serving``."""

import json
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from fathomer.cli.options import Folder, Json
from fathomer.cli.output import messages_console, print_json, print_line
from fathomer.cli.runner import new_app, run_app
from fathomer.errors import MissingExtraError

if TYPE_CHECKING:
    from benchmarks.speed import Ratio

app = new_app("benchmarks")


@app.callback(invoke_without_command=True)
def benchmarks(context: typer.Context) -> None:
    """Measure the speed of Fathomer, of its training and of its HTTP service."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())


@app.command()
def speed(
    quick: Annotated[
        bool, typer.Option("--quick", help="Measure only the ratios, in under two minutes.")
    ] = False,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the results as JSON.")
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Also draw charts as PNG files.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare the speed of Fathomer with that of other encoders.

    Without --quick all rows are measured, which takes about twelve minutes. OMP_NUM_THREADS sets
    the number of threads.

    Example: python -m benchmarks speed --quick --out speed.json
    """
    from benchmarks.speed import COMPLETE, QUICK, measure_speed, ratios_of
    from fathomer.files import write_atomically

    _check_outputs(out, plot)  # before the measurement, not after it
    plan = QUICK if quick else COMPLETE
    messages, started = messages_console(), time.perf_counter()
    found = measure_speed(
        plan, report=lambda line: messages.print(f"{time.perf_counter() - started:6.1f} s  {line}")
    )
    if out:
        write_atomically(out, json.dumps(found, indent=1) + "\n")
    if plot:
        from benchmarks.charts import draw_charts

        for path in draw_charts(found["rows"], plot):
            messages.print(f"chart: {path}")
    if as_json:
        print_json(found)
        return
    _print_rows(found["rows"])
    _print_ratios(found["ratios"], ratios_of(plan))
    _print_machine(found["machine"])


def _check_outputs(out: Path | None, plot: Path | None) -> None:
    """Raise an error if a result could not be written."""
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


@app.command()
def training(
    quick: Annotated[
        bool, typer.Option("--quick", help="Take fewer steps, in about a minute.")
    ] = False,
    number: Annotated[
        int, typer.Option(metavar="N", min=2, max=512, help="Processes, and threads, to compare.")
    ] = 2,
    hidden_size: Annotated[
        int, typer.Option(metavar="N", min=2, help="Hidden size; the paper's is 400.")
    ] = 400,
    batch_words: Annotated[
        int, typer.Option(metavar="N", min=1, help="Words per batch, of all processes together.")
    ] = 2000,
    out: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write the results as JSON.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare training on several processes with one process and with several threads.

    Example: python -m benchmarks training --batch-words 8000 --out training.json
    """
    from benchmarks.training import COMPLETE, QUICK, measure_training
    from fathomer.files import write_atomically

    _check_outputs(out, None)
    plan = replace(QUICK if quick else COMPLETE, hidden_size=hidden_size, batch_words=batch_words)
    found = measure_training(plan, number=number, report=messages_console().print)
    if out:
        write_atomically(out, json.dumps(found, indent=1) + "\n")
    if as_json:
        print_json(found)
        return
    for row in found["rows"]:
        shape = f"processes {row['processes']}, threads {row['threads']}"
        print_line(f"{shape:<32}{row['words_per_second']:>9,.0f} words/s")
    for name, value in found["ratios"].items():
        print_line(f"{name:<32}{value:>9.2f}")
    _print_machine(found["machine"])


@app.command()
def scale(
    folder: Folder,
    texts: Annotated[
        int, typer.Option(metavar="N", min=1000, help="Texts to answer, of the demo's kind.")
    ] = 200_000,
    workers: Annotated[
        str, typer.Option(metavar="N,N,...", help="Numbers of Ray workers to compare.")
    ] = "1,2,4",
    kills: Annotated[
        int, typer.Option(metavar="N", min=0, help="Workers to kill during each run.")
    ] = 0,
    as_json: Json = False,
) -> None:
    """Measure answering on Ray, and compare the times with a cost model.

    The answers are compared with those of the plain path, row by row.

    Example: python -m benchmarks scale model --texts 200000 --workers 1,2,4
    """
    from benchmarks.scale import measure_scale
    from fathomer.cli.output import open_model
    from fathomer.errors import require

    require("ray", "scale")
    numbers = [int(each) for each in workers.split(",")]
    predictor = open_model(folder, "float32", "cpu")
    found = measure_scale(
        predictor, texts=texts, workers=numbers, kills=kills, report=messages_console().print
    )
    if as_json:
        print_json(found)
        return
    print_line(
        f"plain: {found['plain_texts_per_second']:,.0f} texts/s; overhead {found['overhead']:.1%}"
    )
    for row in found["rows"]:
        low, high = row["memory_mb"]
        print_line(
            f"workers {row['workers']}: start {row['start_seconds']:.1f} s, then {row['seconds']:.1f} s "
            f"(predicted {row['predicted_seconds']:.1f} s), {row['texts_per_second']:,.0f} texts/s, "
            f"{low:,.0f}-{high:,.0f} MB per worker" + f", {row['killed']} killed" * (kills > 0)
        )
    _print_machine(found["machine"])


@app.command()
def serving(
    folder: Folder,
    connections: Annotated[
        int, typer.Option(metavar="N", min=1, max=500, help="Connections at a time.")
    ] = 32,
    texts_per_request: Annotated[
        int, typer.Option(metavar="N", min=1, max=256, help="Texts in each request.")
    ] = 8,
    workers: Annotated[
        int, typer.Option(metavar="N", min=1, max=64, help="Worker processes of the service.")
    ] = 1,
    seconds: Annotated[
        float, typer.Option(metavar="S", min=0.1, max=3600, help="Duration of each phase.")
    ] = 10.0,
    as_json: Json = False,
) -> None:
    """Put a service with this model under load, and check all of its answers.

    Example: python -m benchmarks serving model --texts-per-request 8
    """
    if find_spec("locust") is None:
        raise MissingExtraError("the load test needs locust: pip install -e '.[dev]'")
    from benchmarks.serving import measure_serving

    found = measure_serving(
        folder,
        connections=connections,
        texts_per_request=texts_per_request,
        workers=workers,
        seconds=seconds,
        report=messages_console().print,
    )
    if as_json:
        print_json(found)
        return
    for name, values in found.items():
        lines = values.items() if isinstance(values, dict) else [("", values)]
        for key, value in lines:
            print_line(f"{name:<18}  {key:<28}  {value}")


if __name__ == "__main__":
    run_app(app, "python -m benchmarks")
