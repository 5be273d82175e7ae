"""The command ``fathomer threshold``."""

from typing import Annotated

import typer

from fathomer.cli.options import (
    Data,
    DataDir,
    Encoding,
    Folder,
    Json,
    LabelColumn,
    TextColumn,
)
from fathomer.cli.output import messages_console, print_json, print_line


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
        str | None, typer.Option(metavar="X", help="Look at one label, not at every answer.")
    ] = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Find the probability below which answers should not be given.

    Example: fathomer threshold model test.csv --precision 0.95
    """
    from fathomer.data.corpora import open_source
    from fathomer.predictor import load
    from fathomer.threshold import choose_threshold

    predictor = load(folder)
    source = open_source(
        data, text_column=text_column, label_column=label_column, encoding=encoding,
        data_dir=data_dir, only="test", multi_label=predictor.multi_label,
    )  # fmt: skip
    texts = source.to_score_on
    for note in source.left_out():
        messages_console().print(note)
    found = choose_threshold(predictor, texts, precision=precision, recall=recall, label=label)
    if as_json:
        print_json({**found.to_dict(), "label": label})
        return
    print_line(
        f"{found.threshold:.4f}: precision {found.precision:.4f}, recall {found.recall:.4f}, "
        f"{found.answered:,} of {found.examples:,} texts"
    )
