"""The command ``fathomer threshold``."""

from typing import Annotated

import typer

from fathomer.cli.options import (
    Data,
    DataDir,
    Encoding,
    Fold,
    Folder,
    Folds,
    Json,
    LabelColumn,
    TextColumn,
)
from fathomer.cli.output import print_json, print_line
from fathomer.cli.scored import open_scored


def threshold(
    folder: Folder,
    data: Data,
    precision: Annotated[
        float | None, typer.Option(metavar="P", help="Part of the given answers that is right.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(metavar="R", help="Part of all texts to be answered right.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="X", help="Look at the answers of one label only.")
    ] = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Find the probability below which answers should not be given.

    Precision and recall are those that predict --abstain-below reaches; it gives a label X only to
    texts whose best label is X. Where a text may have several labels, each label is a decision.

    Example: fathomer threshold model test.csv --precision 0.95
    """
    from fathomer.data.reading import ReadOptions
    from fathomer.evaluate.threshold import choose_threshold
    from fathomer.predictor import load

    predictor = load(folder)
    options = ReadOptions(text_column, label_column, encoding)
    source = open_scored(predictor, data, options, fold=fold, folds=folds, data_dir=data_dir)
    found = choose_threshold(
        predictor, source.evaluation_set, precision=precision, recall=recall, label=label
    )
    if as_json:
        print_json({**found.to_dict(), "label": label} | source.describe())
        return
    print_line(
        f"{found.threshold:.4f}: precision {found.precision:.4f}, recall {found.recall:.4f}, "
        f"{found.answered:,} of {found.examples:,} {found.unit}"
    )
