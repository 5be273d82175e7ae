"""Invented runs, for tests of what is computed from runs."""

import itertools

import numpy as np

from experiments.runs import Run, pack_bits

NUMBERS = itertools.count()
DEEP = ({"depth": 9, "accuracy": 0.7, "words_per_second": 100.0},)
"""Result of a model of maximum depth 9 with every word at depth 9."""


def fake(corpus="trec", model="fathomer", *, seed=0, right=90, speed=100.0, **others):
    """Return a run on 100 texts that classifies the first ``right`` of them correctly."""
    correct = np.arange(100) < right
    settings = {"train.seed": seed} | ({"model.name": model} if model != "fathomer" else {})
    deep = model == "fathomer"
    values = dict(  # noqa: C408
        name=f"{corpus}-{model}-{seed}-{next(NUMBERS)}".replace("/", "-"), corpus=corpus,
        model=model, variant=None, seed=seed, fold=None, folds=None,
        settings=settings | others.pop("settings", {}), match_parameters=False,
        vectors="mixed.300d", notes=(), accuracy=right / 100, macro_f1=0.5, loss=1.0, examples=100,
        correct=pack_bits(correct), accuracy_unseen=0.8, examples_unseen=50, held_out_accuracy=0.9,
        mean_depth=4.0 if deep else 0.0, mean_depth_sampled=5.0, depths=(1, 2) if deep else (),
        forced=({"depth": 1, "accuracy": 0.7, "words_per_second": 9.0},) if deep else (),
        samples=tuple({"number": n, "label": "x", "depths": [n, 9]} for n in (1, 2)) if deep else (),
        parameters=1, hidden_size=400, epochs=1, best_epoch=1, curve=(), train_words_per_second=1.0,
        predict_words_per_second=speed, words=3, command="", commit=None, versions={},
        checksums={"test": corpus}, wall_seconds=1.0, machine={"threads": 1},
    )  # fmt: skip
    return Run(**(values | others))
