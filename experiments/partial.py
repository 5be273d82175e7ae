"""Corpora of which only a part of the training texts is at hand."""

from dataclasses import replace
from pathlib import Path

from fathomer.data.datasets import CORPORA, data_folder
from fathomer.data.layouts import is_present
from fathomer.data.opening import Dataset, open_corpus, open_dataset, select_fold

PARTIAL = "train_partial_25k.csv"
"""25,013 of the 120,000 training texts of AG's News; its official test file is complete."""


def open_corpus_or_part(
    name: str, *, data_dir: Path | None = None, fold: int | None = None, folds: int | None = None
) -> Dataset:
    """Open a corpus; if its training file is missing, read the partial one instead.

    A note marks the results of a partial corpus, so that they are never compared unmarked with
    published ones.
    """
    corpus, folder = CORPORA.get(name), data_folder(data_dir)
    if (
        corpus is None
        or is_present(corpus, folder)
        or not (folder / corpus.folder / PARTIAL).is_file()
    ):
        return open_dataset(name, data_dir=data_dir, fold=fold, folds=folds)
    files = tuple(
        replace(file, name=PARTIAL) if file.split == "train" else file for file in corpus.files
    )
    part = open_corpus(replace(corpus, files=files), folder)
    note = f"partial training file: {len(part.train):,} of {corpus.sizes.train:,}"
    return select_fold(replace(part, notes=(note,)), fold, folds or 0)
