"""Test of a trained model: its scores, depths and speed as the record of a run."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.machine import describe_machine
from experiments.clock import StoredClock, classify_timed
from experiments.job import Job
from experiments.runs import Run, pack_bits
from fathomer.artifact import Artifact, versions
from fathomer.data.examples import Examples
from fathomer.data.labelled import LabelledTexts, encode_examples
from fathomer.data.opening import Dataset, training_texts
from fathomer.evaluate.metrics import score
from fathomer.evaluate.report import score_unseen
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor
from fathomer.text.compact import SUFFIX, describe_compact
from fathomer.text.sources import checksum_of

TRAIN_TEXTS = 2000
"""About how many training texts a trained model is tested on."""
SAMPLE_WORDS = 100
"""Preferred minimum length of a sample text."""


def measure(
    job: Job, source: Dataset, artifact: Artifact, clock: StoredClock, *, commit: str | None
) -> Run:
    """Score a model on the test texts and record everything about its run."""
    assert source.test is not None
    plan, predictor, metrics = job.plan, Predictor(artifact), artifact.metrics
    test = source.test.completed(artifact.network.completion())
    data = encode_examples(test, artifact.tokenizer, artifact.labels, artifact.recipe.text)
    answers, speed = classify_timed(predictor, data)
    scores = score(answers, data.targets, artifact.labels)
    is_correct = answers.labels == data.targets
    seen = training_texts(source, data_dir=job.data_dir) or ()
    unseen = score_unseen(is_correct, source.test, seen)
    held_out = metrics["held_out"]
    return Run(
        name=plan.name,
        corpus=plan.corpus,
        model=artifact.recipe.model.name,
        variant=plan.variant,
        seed=artifact.recipe.train.seed,
        fold=plan.fold,
        folds=plan.folds,
        settings=plan.settings,
        match_parameters=plan.match_parameters,
        vectors=plan.vectors,
        notes=source.notes,
        accuracy=scores.accuracy,
        macro_f1=scores.macro_f1,
        loss=scores.loss,
        examples=scores.examples,
        correct=pack_bits(is_correct),
        accuracy_unseen=unseen.accuracy,
        examples_unseen=unseen.examples,
        held_out_accuracy=held_out["accuracy"] if held_out else None,
        train_accuracy=_train_accuracy(predictor, source.train),
        mean_depth=scores.mean_depth,
        mean_depth_sampled=metrics["mean_depth_sampled"],
        depths=_histogram(predictor, answers),
        forced=_force_depths(predictor, data, plan.forced_depths),
        samples=_sample_texts(predictor, data, answers),
        parameters=metrics["parameters"],
        hidden_size=artifact.recipe.model.hidden_size,
        epochs=metrics["epochs"],
        best_epoch=metrics["best_epoch"],
        curve=tuple(map(_curve_point, metrics["history"])),
        train_words_per_second=round(clock.words_per_second, 1),
        predict_words_per_second=round(speed, 1),
        words=len(data.texts.ids),
        command=job.command,
        commit=commit,
        versions=versions(),
        checksums=_checksums(source.train, source.test, job.vectors),
        vectors_made=_made(job.vectors),
        wall_seconds=round(clock.wall, 1),
        machine=describe_machine(),
    )


def _train_accuracy(predictor: Predictor, train: Examples) -> float:
    """Return the accuracy on training texts: all of them, or every n-th."""
    part = train.take(range(0, len(train), 1 + len(train) // TRAIN_TEXTS))
    artifact = predictor.artifact
    data = encode_examples(part, artifact.tokenizer, artifact.labels, artifact.recipe.text)
    found = predictor.classify(data.texts, None)
    return round(float(np.mean(found.labels == data.targets)), 5)


def _histogram(predictor: Predictor, answers: Classified) -> tuple[int, ...]:
    """Count the words at each depth, from depth 1."""
    if not predictor.knows_depth:
        return ()
    return tuple(np.bincount(answers.depths, minlength=predictor.max_depth + 1)[1:].tolist())


def _force_depths(
    predictor: Predictor, data: LabelledTexts, depths: Iterable[int]
) -> tuple[dict[str, float], ...]:
    """Measure accuracy and speed with every word at the same depth, for each of some depths."""
    rows = []
    for depth in depths:
        if predictor.knows_depth and depth <= predictor.max_depth:
            answers, speed = classify_timed(predictor, data, np.full(len(data.texts.ids), depth))
            accuracy = float(np.mean(answers.labels == data.targets))
            rows.append({"depth": depth, "accuracy": accuracy, "words_per_second": round(speed, 1)})
    return tuple(rows)


def _sample_texts(
    predictor: Predictor, data: LabelledTexts, answers: Classified
) -> tuple[dict[str, Any], ...]:
    """Return the word depths of the first long text of the last label, then of the first label."""
    if not predictor.knows_depth:
        return ()
    samples = []
    for target in (len(predictor.labels) - 1, 0):
        texts = np.flatnonzero(data.targets == target)
        if not len(texts):
            continue
        lengths = data.texts.lengths[texts]
        long_enough = min(SAMPLE_WORDS, int(lengths.max()))
        index = int(texts[np.argmax(lengths >= long_enough)])
        words = slice(data.texts.starts[index], data.texts.starts[index + 1])
        depths = answers.depths[words].tolist()
        samples.append({"number": index + 1, "label": predictor.labels[target], "depths": depths})
    return tuple(samples)


def _curve_point(epoch: dict[str, Any]) -> dict[str, float | None]:
    """Return the figures of an epoch that a learning curve shows."""
    held_out = epoch["held_out"] or {}
    return {
        "loss": round(epoch["loss"], 5),
        "accuracy": round(epoch["accuracy"], 5),
        "mean_depth": round(epoch["mean_depth"], 3),
        "held_out_accuracy": held_out.get("accuracy"),
        "held_out_mean_depth": held_out.get("mean_depth"),
    }


def _checksums(train: Examples, test: Examples, vectors: Path | None) -> dict[str, str]:
    """Hash the examples rather than their files, which may be in another format elsewhere."""
    sums = {"train": train.checksum(), "test": test.checksum()}
    return {**sums, "vectors": checksum_of(vectors)} if vectors else sums


def _made(vectors: Path | None) -> dict[str, Any] | None:
    """Return how vectors were made, if their file says so."""
    if vectors is None or vectors.suffix != SUFFIX:
        return None
    found: dict[str, Any] = describe_compact(vectors)["made"]
    return found
