"""The command ``fathomer evaluate``."""

from typing import Any

from fathomer.cli.options import Data, Encoding, Folder, Json, LabelColumn, MaxDepth, TextColumn
from fathomer.cli.output import print_json, print_line, print_scores


def evaluate(
    folder: Folder,
    data: Data,
    max_depth: MaxDepth = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Score a model on labelled texts.

    Example: fathomer evaluate model test.csv
    """
    from fathomer.data.corpora import open_source
    from fathomer.predictor import load

    predictor = load(folder)
    source = open_source(
        data, text_column=text_column, label_column=label_column, encoding=encoding
    )
    metrics = predictor.evaluate(source.test or source.train, max_depth=max_depth).to_dict()
    if as_json:
        print_json(metrics)
        return
    print_scores({data: metrics})
    _print_labels(metrics["per_label"])


def _print_labels(per_label: dict[str, dict[str, Any]]) -> None:
    width = max([len("label"), *map(len, per_label)])
    print_line(f"\n{'label':<{width}}  precision  recall      F1  support")
    for label, scores in per_label.items():
        print_line(
            f"{label:<{width}}  {scores['precision']:>9.4f}  {scores['recall']:>6.4f}  "
            f"{scores['f1']:>6.4f}  {scores['support']:>7,}"
        )
