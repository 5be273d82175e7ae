"""Arguments and options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

Data = Annotated[
    str, typer.Argument(metavar="DATA", help="Corpus name, or a csv, tsv, jsonl or fastText file.")
]
Folder = Annotated[Path, typer.Argument(metavar="DIR", help="Folder that training has written.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")]
TextColumn = Annotated[str, typer.Option(metavar="NAME", help="Column or key of the texts.")]
LabelColumn = Annotated[str, typer.Option(metavar="NAME", help="Column or key of the labels.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="Change a setting.")
]
MultiLabel = Annotated[
    bool, typer.Option("--multi-label", help="Texts have several labels: lists, or a|b.")
]
Encoding = Annotated[str, typer.Option(metavar="NAME", help="Encoding of the file.")]
MaxDepth = Annotated[
    int | None, typer.Option(metavar="N", help="Let no word take more steps than this.")
]
Precision = Annotated[
    str, typer.Option(metavar="P", help="float32, or int8: faster on processors with VNNI.")
]
Device = Annotated[str, typer.Option(metavar="D", help="cpu, cuda, cuda:1, ...")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="D", help="Folder of corpora and vectors; else FATHOMER_DATA, or a cache."
    ),
]
Test = Annotated[str | None, typer.Option(metavar="FILE", help="Texts to score the result on.")]
HeldOut = Annotated[
    str | None, typer.Option(metavar="FILE", help="Texts to choose the best epoch by.")
]
Html = Annotated[
    Path | None, typer.Option(metavar="FILE", help="Also write a self-contained page.")
]
Fold = Annotated[
    int | None, typer.Option(metavar="K", help="Which fold of a cross validation is the test part.")
]
Folds = Annotated[
    int | None,
    typer.Option(metavar="N", help="Number of folds; 10 for corpora without a test part."),
]
Vectors = Annotated[
    str | None,
    typer.Option(metavar="NAME|FILE", help="Word vectors: a name, or GloVe .txt[.gz], .zip, .bin."),
]
