"""The command ``fathomer evaluate``."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

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
    MaxDepth,
    TextColumn,
)
from fathomer.cli.output import messages_console, print_json, print_line, print_scores

if TYPE_CHECKING:
    from fathomer.data.corpora import Source
    from fathomer.data.examples import Examples
    from fathomer.predictor import Predictor


def evaluate(
    folder: Folder,
    data: Data,
    reliability: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw how far probabilities can be trusted."),
    ] = None,
    max_depth: MaxDepth = None,
    fold: Fold = None,
    folds: Folds = None,
    data_dir: DataDir = None,
    text_column: TextColumn = "text",
    label_column: LabelColumn = "label",
    encoding: Encoding = "utf-8",
    as_json: Json = False,
) -> None:
    """Score a model on labelled texts.

    Example: fathomer evaluate model test.csv
    """
    from fathomer.data.corpora import describe, open_source
    from fathomer.predictor import load

    predictor = load(folder)
    trained = predictor.artifact.metrics
    if trained.get("data_name") == data:  # by default, the very fold that training left out
        fold = trained.get("fold") if fold is None else fold
        folds = trained.get("folds") if folds is None else folds
    source = open_source(
        data,
        text_column=text_column,
        label_column=label_column,
        encoding=encoding,
        data_dir=data_dir,
        fold=fold,
        folds=folds,
        only="test",
        multi_label=predictor.multi_label,
    )
    messages = messages_console()
    for note in [*source.notes, *_leak(trained, source)]:
        messages.print(note, highlight=False)
    texts = source.train if source.test is None else source.test
    metrics = predictor.evaluate(texts, max_depth=max_depth).to_dict()
    metrics |= describe(source)
    if reliability:
        _draw_reliability(predictor, texts, reliability)
    if as_json:
        print_json(metrics)
        return
    print_scores({data: metrics})
    if predictor.multi_label:
        print_line(f"micro F1 {metrics['micro_f1']:.4f}; accuracy: all labels of a text are right")
    _print_labels(metrics["per_label"])


def _draw_reliability(predictor: "Predictor", texts: "Examples", path: Path) -> None:
    from fathomer.training.reliability import certainties, draw_reliability
    from fathomer.training.reliability import reliability as reliability_of

    data, answers = predictor.answer(texts)
    draw_reliability(reliability_of(certainties(answers, data.targets)), path)


def _leak(trained: dict[str, Any], source: "Source") -> Iterator[str]:
    """Warn of test texts that the model was trained on."""
    if source.fold and trained.get("data_name") == source.name:
        fold, folds = trained.get("fold"), trained.get("folds")
        if (fold, folds) != (source.fold.number, source.fold.of):
            trained_on = f"for fold {fold} of {folds}" if fold else "on all of them"
            yield (
                f"warning: the model was trained {trained_on}, "
                "so it has seen texts of this test part"
            )
    elif source.checksum and trained.get("data_checksum") == source.checksum:
        yield "warning: the model was trained on this very file; the scores say little"


def _print_labels(per_label: dict[str, dict[str, Any]]) -> None:
    width = max([len("label"), *map(len, per_label)])
    print_line(f"\n{'label':<{width}}  precision  recall      F1  support")
    for label, scores in per_label.items():
        print_line(
            f"{label:<{width}}  {scores['precision']:>9.4f}  {scores['recall']:>6.4f}  "
            f"{scores['f1']:>6.4f}  {scores['support']:>7,}"
        )
