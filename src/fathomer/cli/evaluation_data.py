"""The labelled texts that a model is evaluated on."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathomer.cli.output import messages_console

if TYPE_CHECKING:
    from fathomer.data.opening import Dataset
    from fathomer.data.reading import ReadOptions
    from fathomer.predictor import Predictor


def open_evaluation_data(
    predictor: "Predictor",
    data: str,
    options: "ReadOptions | None" = None,
    *,
    fold: int | None,
    folds: int | None,
    data_dir: Path | None,
) -> "Dataset":
    """Open the texts to evaluate a model on, and print notes and warnings about them."""
    from fathomer.data.labelled import known_only
    from fathomer.data.opening import held_out_fold, open_dataset
    from fathomer.data.reading import DEFAULT_OPTIONS

    trained = predictor.artifact.metrics
    fold, folds = held_out_fold(trained, data, fold, folds)
    options = replace(options or DEFAULT_OPTIONS, multi_label=predictor.multi_label)
    source = open_dataset(data, options, data_dir=data_dir, fold=fold, folds=folds, only="test")
    known = known_only(source.evaluation_set, predictor.labels)
    source = replace(source, train=known) if source.test is None else replace(source, test=known)
    for note in [*source.notes, *_skipped(source), *_leak_warnings(trained, source)]:
        messages_console().print(note)
    return source


def _skipped(source: "Dataset") -> Iterator[str]:
    if source.evaluation_set.skipped:
        yield f"{source.name}: {source.evaluation_set.summary()}"


def _leak_warnings(trained: Mapping[str, Any], source: "Dataset") -> Iterator[str]:
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
