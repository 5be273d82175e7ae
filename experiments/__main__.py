"""The commands ``python -m experiments run``, ``repeat``, ``report`` and ``depths``."""

import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from fathomer.cli.evaluation_data import open_evaluation_data
from fathomer.cli.options import Data, DataDir, Fold, Folder, Folds, Json, Vectors
from fathomer.cli.output import messages_console, print_json, print_line
from fathomer.cli.runner import new_app, run_app
from fathomer.cli.train import train
from fathomer.errors import MissingFileError

if TYPE_CHECKING:
    from experiments.depths import Depths
    from experiments.plan import Plan

app = new_app("experiments")

Results = Annotated[Path, typer.Option(metavar="DIR", help="Folder of results.")]
Work = Annotated[
    Path, typer.Option(metavar="DIR", help="Folder for what interrupted runs go on from.")
]

ExperimentName = Annotated[
    str, typer.Argument(metavar="E.toml", help="An experiment: a file or a shipped name.")
]
Jobs = Annotated[int, typer.Option(metavar="N", help="Processes; they share the cores.")]
Only = Annotated[str | None, typer.Option(metavar="GLOB", help="Only runs with such a name.")]
Limit = Annotated[int | None, typer.Option(min=0, help="At most so many runs.")]
Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Also keep the trained models there.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list what is left.")]


app.command()(train)


@app.callback(invoke_without_command=True)
def experiments(context: typer.Context) -> None:
    """Rerun the paper's tables and figures."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())
        return
    import experiments.rivals  # noqa: F401 (registers the models)


@app.command()
def run(
    recipe: ExperimentName,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    results: Results = Path("experiments/results"),
    work: Work = Path("build/experiments"),
    jobs: Jobs = 1,
    only: Only = None,
    limit: Limit = None,
    keep: Keep = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Carry out the runs of an experiment that are not there yet, each into a small JSON file.

    What was stopped, by Ctrl-C or worse, is continued by the same command.

    Example: python -m experiments run experiments/recipes/table3.toml --data-dir data --jobs 2
    """
    from experiments.parallel import Crew, threads_of
    from experiments.plan import Experiment, Plan, find_experiment
    from experiments.run import Job
    from experiments.runs import read_runs

    path = find_experiment(recipe)
    experiment = Experiment.from_toml(path)
    plans = _chosen(experiment.plans(vectors=vectors), only)
    left = [plan for plan in plans if not plan.find(results)][:limit]
    messages, threads = messages_console(), threads_of(jobs)
    messages.print(
        f"{experiment.title or path.name}: {len(plans)} runs, {len(left)} of them to do; {threads} threads each"
    )
    if dry_run and as_json:
        print_json({"runs": len(plans), "left": [plan.name for plan in left]})
        return
    if dry_run:
        for plan in left:
            print_line(plan.name)
        return
    other = f" --vectors {shlex.quote(vectors)}" if vectors else ""
    command = f"python -m experiments run experiments/recipes/{path.name}{other} --only"
    todo = [
        Job(
            plan=plan, results=results, work=work, data_dir=data_dir, keep=keep,
            vectors=_vectors_file(plan, vectors, data_dir), command=f"{command} {plan.name}",
        )
        for plan in left
    ]  # fmt: skip
    known = {Plan.of(each).kind: each.wall_seconds for each in read_runs(results)}
    with _continued():
        Crew(todo, threads, jobs, messages.print, known).work()
    done = {plan.name: str(plan.find(results)) for plan in plans if plan.find(results)}
    if as_json:
        print_json({"runs": len(plans), "done": done})
    else:
        print_line(f"{len(done)} of {len(plans)} runs are in {results}")


@app.command()
def repeat(
    file: Annotated[
        Path, typer.Argument(metavar="RUN.json", help="A run in experiments/results/runs.")
    ],
    vectors: Vectors = None,
    data_dir: DataDir = None,
    work: Work = Path("build/experiments"),
    as_json: Json = False,
) -> None:
    """Repeat a run from its JSON, with as many threads, and compare.

    The exit code is 1 if another accuracy comes out.

    Example: python -m experiments repeat experiments/results/runs/trec-tfidf-seed0-1b0c3a55.json
    """
    from tempfile import TemporaryDirectory

    from experiments.parallel import Crew
    from experiments.plan import Plan
    from experiments.run import Job
    from experiments.runs import read_run, read_runs

    before = read_run(file)
    plan = Plan.of(before)
    found = _vectors_file(plan, vectors, data_dir)
    with TemporaryDirectory() as results:
        job = Job(
            plan=plan, results=Path(results), work=work / "repeated", vectors=found,
            data_dir=data_dir, command=before.command,
        )  # fmt: skip
        with _continued():
            Crew([job], before.machine["threads"], 1, messages_console().print).work()
        (now,) = read_runs(Path(results))
    same = now.correct == before.correct
    if now.checksums != before.checksums:
        messages_console().print("The texts or vectors are not those of the run.")
    if now.machine["processor"] != before.machine.get("processor"):
        messages_console().print(
            f"The run was made on another processor ({before.machine.get('processor')})."
        )
    if as_json:
        print_json({"before": before.accuracy, "now": now.accuracy, "same_answers": same})
    else:
        print_line(f"before {before.accuracy:.4f}, now {now.accuracy:.4f}")
        print_line("every test text is answered alike" if same else "the answers differ")
    if now.accuracy != before.accuracy:
        raise typer.Exit(1)


@app.command()
def report(
    results: Results = Path("experiments/results"),
    out: Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")] = Path(
        "RESULTS.md"
    ),
    as_json: Json = False,
) -> None:
    """Write all tables and figures, ours beside the published, and what was reproduced.

    Example: python -m experiments report --results results --out RESULTS.md
    """
    from experiments.report import judged, write_results
    from experiments.runs import read_runs

    if not read_runs(results):
        raise MissingFileError(f"{results}: holds no runs")
    written = write_results(results, out)
    claims = judged(results)
    if as_json:
        print_json(
            {"claims": {c.claim: c.verdict for c in claims}, "files": list(map(str, written))}
        )
        return
    for claim in claims:
        print_line(f"{claim.verdict:<14}{claim.claim}")
    print_line(f"the whole report is in {out}")


@app.command()
def depths(
    folder: Folder,
    data: Data,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Also draw all of it.")
    ] = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show which words a model reads deeply, and its accuracy with every word at one depth.

    Example: python -m experiments depths model trec --plot depths.png
    """
    from experiments.depths import analyse_depths, draw_depths
    from fathomer.data.corpora import describe
    from fathomer.errors import require_matplotlib
    from fathomer.files import check_writable
    from fathomer.predictor import load

    if plot:  # before the work, not after it
        require_matplotlib()
        check_writable(plot)
    predictor = load(folder)
    source = open_evaluation_data(predictor, data, fold=fold, folds=folds, data_dir=data_dir)
    found = analyse_depths(predictor, source.to_score_on)
    if plot:
        draw_depths(found, plot)
    if as_json:
        model = predictor.artifact.metrics.get("command")
        print_json({"model": model, **describe(source), **found.to_dict()})
    else:
        _print_depths(found)


def _print_depths(found: "Depths") -> None:
    from fathomer.cli.output import print_table

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
    dealt = sum(found.dealt) / len(found.dealt)
    rows += [["selected", f"{found.accuracy:.4f}"], ["selected, dealt at random", f"{dealt:.4f}"]]
    print_table(["every word at depth", "accuracy"], rows)


@contextmanager
def _continued() -> Iterator[None]:
    """Say that Ctrl-C has lost no more than the epochs that were under way."""
    try:
        yield
    except KeyboardInterrupt:
        messages_console().print(
            "Stopped: epochs and runs that were done are kept; the same command continues."
        )
        raise typer.Exit(130) from None


def _chosen(plans: "list[Plan]", only: str | None) -> "list[Plan]":
    """Choose the runs whose name looks as asked."""
    from fnmatch import fnmatch

    from fathomer.errors import ConfigError

    chosen = [plan for plan in plans if only is None or fnmatch(plan.name, only)]
    if not chosen:
        names = f"no run is called {only}; " if only else ""
        example = f"there is for example {plans[0].name}" if plans else "there are no runs"
        raise ConfigError(f"{names}{example}")
    return chosen


def _vectors_file(plan: "Plan", vectors: str | None, data_dir: Path | None) -> Path | None:
    from fathomer.data.pretrained import find_vectors

    name = vectors or plan.vectors
    return find_vectors(name, data_dir) if name else None


if __name__ == "__main__":
    run_app(app, "python -m experiments")
