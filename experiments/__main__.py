"""The commands of ``python -m experiments``, each a thin layer over this package."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from experiments.compare_commands import (
    Plot,
    alternatives,
    compare_vectors,
    curves,
    interruptible,
    students,
)
from experiments.pretrain_commands import pretrain_qt, teacher
from fathomer.cli.evaluation_data import open_evaluation_data
from fathomer.cli.models import models
from fathomer.cli.options import Data, DataDir, Fold, Folder, Folds, Json, Vectors
from fathomer.cli.output import messages_console, print_json, print_line
from fathomer.cli.runner import new_app, run_app
from fathomer.cli.train import train

PROGRAM = "python -m experiments"
RESULTS, WORK = Path("experiments/results"), Path("build/experiments")

ExperimentName = Annotated[
    str, typer.Argument(metavar="NAME|E.toml", help="An experiment: table2 and so on, or a file.")
]
RunFile = Annotated[
    Path, typer.Argument(metavar="RUN.json", help="A run in experiments/results/runs.")
]
Results = Annotated[Path, typer.Option(metavar="DIR", help="Folder of results.")]
Work = Annotated[Path, typer.Option(metavar="DIR", help="Folder for checkpoints of runs.")]
Jobs = Annotated[int, typer.Option(metavar="N", help="Number of processes; they share the cores.")]
Only = Annotated[str | None, typer.Option(metavar="GLOB", help="Only runs with a matching name.")]
Limit = Annotated[int | None, typer.Option(min=0, help="At most this many runs.")]
Keep = Annotated[
    Path | None, typer.Option(metavar="DIR", help="Also keep the trained models, in this folder.")
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only list the runs that are left.")]
Out = Annotated[Path, typer.Option(metavar="FILE", help="The page to write.")]

app = new_app("experiments")


@app.callback(invoke_without_command=True)
def experiments(context: typer.Context) -> None:
    """Rerun the paper's tables and figures, and train the systems it compares with."""
    if context.invoked_subcommand is None:
        print_line(context.get_help())
        return
    import experiments.rivals  # noqa: F401 (registers the models)


app.command(
    help="Train any model, including the systems that only the paper's comparison needs.\n\n"
    f"Example: {PROGRAM} train trec --model text-cnn --out text-cnn"
)(train)
app.command(
    help=f"List all models with their sizes and papers.\n\nExample: {PROGRAM} models --json"
)(models)
app.command("vectors")(compare_vectors)
app.command()(curves)
app.command()(alternatives)
app.command()(teacher)
app.command()(students)
app.command("pretrain-qt")(pretrain_qt)


@app.command()
def run(
    experiment: ExperimentName,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    results: Results = RESULTS,
    work: Work = WORK,
    jobs: Jobs = 1,
    only: Only = None,
    limit: Limit = None,
    keep: Keep = None,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Carry out the runs of an experiment that are left; each becomes a small JSON file.

    After an interruption, the same command continues.

    Example: python -m experiments run table3 --data-dir data --jobs 2
    """
    from experiments.job import Job, find_plan_vectors
    from experiments.parallel import ParallelJobs, threads_per_process
    from experiments.plan import Experiment, Plan, find_experiment, select_plans
    from experiments.runs import read_runs

    path = find_experiment(experiment)
    planned = Experiment.from_toml(path)
    plans = select_plans(planned.plans(vectors=vectors), only)
    left = [plan for plan in plans if not plan.find(results)][:limit]
    messages, threads = messages_console(), threads_per_process(jobs)
    messages.print(
        f"{planned.title or path.name}: {len(plans)} runs, {len(left)} of them to do; {threads} threads each"
    )
    if dry_run:
        _print_names(len(plans), [plan.name for plan in left], as_json=as_json)
        return
    options = ["--vectors", vectors] if vectors else []
    command = shlex.join([*PROGRAM.split(), "run", experiment, *options, "--only"])
    todo = [
        Job(
            plan=plan, results=results, work=work, data_dir=data_dir, keep=keep,
            vectors=find_plan_vectors(plan, vectors, data_dir), command=f"{command} {plan.name}",
        )
        for plan in left
    ]  # fmt: skip
    seconds = {Plan.from_run(each).duration_key: each.wall_seconds for each in read_runs(results)}
    with interruptible():
        ParallelJobs(todo, threads, jobs, messages.print, seconds).run()
    done = {plan.name: str(file) for plan in plans if (file := plan.find(results))}
    if as_json:
        print_json({"runs": len(plans), "done": done})
    else:
        print_line(f"{len(done)} of {len(plans)} runs are in {results}")


@app.command()
def repeat(
    file: RunFile,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    work: Work = WORK,
    as_json: Json = False,
) -> None:
    """Repeat a run from its JSON file, with as many threads, and compare the results.

    The exit code is 1 if the accuracy differs.

    Example: python -m experiments repeat experiments/results/runs/trec-tfidf-seed0-1b0c3a55.json
    """
    from experiments.repeat import repeat_run
    from experiments.runs import read_run

    messages = messages_console()
    with interruptible():
        found = repeat_run(
            read_run(file), work=work, vectors=vectors, data_dir=data_dir, log=messages.print
        )
    for line in found.differences():
        messages.print(line)
    before, now, same = found.before.accuracy, found.now.accuracy, found.same_answers
    if as_json:
        print_json({"before": before, "now": now, "same_answers": same})
    else:
        print_line(f"before {before:.4f}, now {now:.4f}")
        print_line("the same test texts are correct" if same else "other test texts are correct")
    if now != before:
        raise typer.Exit(1)


@app.command()
def report(
    results: Results = RESULTS, out: Out = Path("RESULTS.md"), as_json: Json = False
) -> None:
    """Write all tables and figures next to the published ones, and what was reproduced.

    Example: python -m experiments report
    """
    from experiments.report import judge_results, write_results
    from experiments.runs import read_runs
    from fathomer.errors import MissingFileError

    if not read_runs(results):
        raise MissingFileError(f"{results}: there are no runs in this folder")
    written = write_results(results, out)
    claims = judge_results(results)
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
    plot: Plot = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    as_json: Json = False,
) -> None:
    """Show which words a model reads deeply, and its accuracy with every word at one depth.

    Example: python -m experiments depths model trec --plot depths.png
    """
    from experiments.depth_output import draw_depths, print_depths
    from experiments.depths import analyse_depths
    from fathomer.errors import require
    from fathomer.files import check_writable
    from fathomer.predictor import load

    if plot:  # fail before the analysis, not after it
        require("matplotlib", "plots")
        check_writable(plot)
    predictor = load(folder)
    source = open_evaluation_data(predictor, data, fold=fold, folds=folds, data_dir=data_dir)
    found = analyse_depths(predictor, source.evaluation_set)
    if plot:
        draw_depths(found, plot)
    if as_json:
        model = predictor.artifact.metrics.get("command")
        print_json({"model": model, **source.describe(), **found.to_dict()})
    else:
        print_depths(found)


def _print_names(runs: int, left: list[str], *, as_json: bool) -> None:
    if as_json:
        print_json({"runs": runs, "left": left})
        return
    for name in left:
        print_line(name)


def main() -> None:
    """Run the command line."""
    run_app(app, PROGRAM)


if __name__ == "__main__":
    main()
