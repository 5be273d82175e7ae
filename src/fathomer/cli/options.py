"""Arguments and options shared by several commands."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str,
    typer.Argument(
        metavar="DATA",
        help="Name of a corpus, or a csv, tsv, jsonl, xlsx, parquet or fastText file.",
    ),
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a trained model.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object to standard output.")]
TextColumn = Annotated[str, typer.Option(metavar="NAME", help="Column or JSON key of the texts.")]
LabelColumn = Annotated[str, typer.Option(metavar="NAME", help="Column or JSON key of the labels.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Change a setting, such as train.epochs=5."),
]
MultiLabel = Annotated[
    bool, typer.Option("--multi-label", help="Read several labels per text: JSON lists, or a|b.")
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of the file.")]
MaxDepth = Annotated[
    int | None, typer.Option(metavar="N", help="Limit every word to this many steps.")
]
DepthBudget = Annotated[
    float | None,
    typer.Option(metavar="X", help="Average depth to read at; needs a model trained to a depth."),
]
Precision = Annotated[
    str, typer.Option(metavar="P", help="float32, or int8 (faster on CPUs with VNNI).")
]
Device = Annotated[str, typer.Option(metavar="D", help="Device: cpu, cuda, cuda:1, ...")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="D",
        help="Folder of corpora and vectors; default: $FATHOMER_DATA, else the user's cache.",
    ),
]
Test = Annotated[
    str | None, typer.Option(metavar="FILE", help="Labelled texts to score the model on.")
]
HeldOut = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Labelled texts to score epochs and calibrate on."),
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write a self-contained HTML page.")
]
Fold = Annotated[
    int | None, typer.Option(metavar="K", help="Fold of the cross validation to test on.")
]
Folds = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of folds; default: 10 for corpora without a test set."),
]
Vectors = Annotated[
    str | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Pretrained word vectors: wordllama, a name, a file, or a Model2Vec folder.",
    ),
]
JoinedVectors = Annotated[
    list[str] | None,
    typer.Option(
        metavar="NAME|FILE",
        help="Pretrained word vectors: wordllama, a name, a file, or a Model2Vec folder. "
        "Given several times, they are joined.",
    ),
]
