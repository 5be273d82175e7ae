"""The labelled texts that a model is evaluated on."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathomer.cli.output import messages_console

if TYPE_CHECKING:
    from fathomer.data.corpora import Source
    from fathomer.predictor import Predictor


def open_evaluation_data(
    predictor: "Predictor",
    data: str,
    *,
    fold: int | None,
    folds: int | None,
    data_dir: Path | None,
    text_column: str = "text",
    label_column: str = "label",
    encoding: str = "utf-8",
) -> "Source":
    """Open the texts to evaluate a model on, and print notes and warnings about them."""
    from fathomer.data.corpora import fold_left_out, open_source

    trained = predictor.artifact.metrics
    fold, folds = fold_left_out(trained, data, fold, folds)
    source = open_source(
        data, text_column=text_column, label_column=label_column, encoding=encoding,
        data_dir=data_dir, fold=fold, folds=folds, only="test", multi_label=predictor.multi_label,
    )  # fmt: skip
    for note in [*source.notes, *source.left_out(), *_leak_warnings(trained, source)]:
        messages_console().print(note)
    return source


def _leak_warnings(trained: Mapping[str, Any], source: "Source") -> Iterator[str]:
    """Warn if the model was trained on texts of the test set."""
    if source.fold and trained.get("data_name") == source.name:
        fold, folds = trained.get("fold"), trained.get("folds")
        if (fold, folds) != (source.fold.number, source.fold.of):
            trained_on = f"for fold {fold} of {folds}" if fold else "on all folds"
            yield (
                f"warning: the model was trained {trained_on}, "
                "so it has seen texts of this test set"
            )
        elif trained.get("data_checksum") != source.checksum:
            yield (
                f"warning: {source.name} is not the file that the model was trained on, "
                "so it may have seen texts of this fold"
            )
    elif source.checksum and trained.get("data_checksum") == source.checksum:
        yield "warning: the model was trained on this file, so the scores mean little"
