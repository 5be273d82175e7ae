"""The command ``fathomer threshold``."""

from typing import Annotated

import typer

from fathomer.cli.evaluation_data import open_evaluation_data
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


def threshold(
    folder: Folder,
    data: Data,
    precision: Annotated[
        float | None, typer.Option(metavar="P", help="Wanted precision, up to 1.")
    ] = None,
    recall: Annotated[
        float | None, typer.Option(metavar="R", help="Wanted recall, up to 1.")
    ] = None,
    label: Annotated[
        str | None, typer.Option(metavar="X", help="Consider only this label.")
    ] = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Find the threshold for a wanted precision or recall.

    The threshold is a probability, for predict --abstain-below. Precision is the share of correct answers
    among the answers given, recall the share of all texts that are answered correctly. In a
    multi-label model, every pair of text and label counts as one decision.

    Example: fathomer threshold model test.csv --precision 0.95
    """
    from fathomer.data.reading import ReadOptions
    from fathomer.evaluate.threshold import choose_threshold
    from fathomer.predictor import load

    predictor = load(folder)
    options = ReadOptions(text_column, label_column, encoding)
    source = open_evaluation_data(
        predictor, data, options, fold=fold, folds=folds, data_dir=data_dir
    )
    answered = predictor.answer(source.evaluation_set)
    found = choose_threshold(answered, precision=precision, recall=recall, label=label)
    if as_json:
        print_json({**found.to_dict(), "label": label} | source.describe())
        return
    print_line(
        f"{found.threshold:.4f}: precision {found.precision:.4f}, recall {found.recall:.4f}, "
        f"{found.answered:,} of {found.examples:,} {found.unit}"
    )
