"""The command ``pretrain-qt`` of ``python -m experiments``."""

from pathlib import Path
from typing import Annotated

import typer

from fathomer.cli.options import DataDir, Encoding, Fold, Json, TextColumn, Vectors
from fathomer.cli.output import messages_console, print_json, print_line


def pretrain_qt(
    texts: Annotated[
        list[str],
        typer.Argument(metavar="TEXTS...", help="Files of texts, or names of corpora."),
    ],
    out: Annotated[Path, typer.Option(metavar="FILE", help="File to write.")] = Path(
        "qt.safetensors"
    ),
    vectors: Vectors = None,
    size: Annotated[
        int, typer.Option(metavar="N", help="Numbers per sentence and encoder.", min=2)
    ] = 400,
    epochs: Annotated[int, typer.Option(metavar="N", help="Passes over the texts.", min=1)] = 5,
    seed: Annotated[int, typer.Option(metavar="N", help="Seed of the training.", min=0)] = 0,
    fold: Fold = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Pretrain sentence encoders for the model multi-qt on texts of several sentences each.

    They learn which sentences are neighbours (quick thoughts). A corpus is read without its test set
    and with its unlabelled part. With --vectors, a second pair of encoders reads these.

    Example: python -m experiments pretrain-qt amazon16 --out qt.safetensors
    """
    from experiments.pretrain_qt import pretrain_encoders
    from fathomer.data.datasets import find_vectors
    from fathomer.data.reading import ReadOptions
    from fathomer.data.unlabelled import gather_texts
    from fathomer.files import check_writable

    check_writable(out)
    options = ReadOptions(text_column, None, encoding)
    gathered = gather_texts(texts, options, data_dir=data_dir, fold=fold)
    messages = messages_console()
    found = pretrain_encoders(
        gathered, out, names=texts, size=size, epochs=epochs, seed=seed, log=messages.print,
        vectors=find_vectors(vectors, data_dir) if vectors else None,
    )  # fmt: skip
    messages.print(gathered.summary())
    if as_json:
        print_json({"out": str(out), **found})
        return
    print_line(f"{out}: {found['sentences']:,} sentences, {found['words']:,} words")
    print_line(
        f"Use it: FATHOMER_QT={out} python -m experiments train DATA --model multi-qt --out DIR"
    )
