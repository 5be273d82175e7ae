"""What a teacher is worth: students with and without one beside the teacher itself.

Every system answers the same test texts in one run, on the same number of threads. The students have the
settings that ``fathomer train`` chooses, unless changed, and differ only in what they learn from.
"""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import torch

from experiments.teacher import fine_tune
from fathomer.artifact import Artifact
from fathomer.config import Recipe
from fathomer.data.examples import Examples, split_stratified
from fathomer.data.opening import Dataset
from fathomer.data.reading import ReadOptions
from fathomer.data.soft_labels import add_guessed, with_soft_labels
from fathomer.data.unlabelled import OWN, unlabelled_texts
from fathomer.predictor import Predictor
from fathomer.text.sources import Sources
from fathomer.train.automatic import DataSize, automatic_recipe
from fathomer.train.fit import fit
from fathomer.train.teacher import Teacher

ROUNDS = 3
"""Each system answers the test texts this often, in turns; the fastest round counts."""

Answer = Callable[[list[str]], Sequence[str | None]]
"""A function from texts to their labels."""


class Scored(NamedTuple):
    """Accuracy and speed of one system on one corpus."""

    corpus: str
    system: str
    held_out: float
    test: float
    texts_per_second: float


def compare_students(
    dataset: Dataset,
    work: Path,
    *,
    encoder: str,
    epochs: int,
    vectors: Sources = None,
    assignments: Sequence[str] = (),
    data_dir: Path | None = None,
    log: Callable[[str], None],
) -> list[Scored]:
    """Fine-tune a teacher in the folder ``work``, unless it is there, train students, and score all."""
    assert dataset.test is not None, "the corpus has a test set"
    whole, test = dataset.train, dataset.test
    size = DataSize.of(whole.texts, len(whole), max_words=Recipe().text.max_words)
    recipe = automatic_recipe(size).with_settings(list(assignments))
    share, seed = recipe.train.held_out, recipe.train.seed
    train, held_out = split_stratified(whole, fraction=share, seed=seed)
    folder = work / "teacher"
    if not folder.exists():
        new = work / "teacher.part"
        fine_tune(encoder, whole, None, new, epochs=epochs, held_out=share, seed=seed, log=log)
        new.rename(folder)
    labels = list(whole.label_counts)
    teacher = Teacher(folder, labels)
    more = unlabelled_texts([OWN], dataset.name, ReadOptions(), data_dir=data_dir)
    for part in (held_out, test):
        more.exclude(part.texts)
    systems: dict[str, Answer] = {"teacher": _answers_of_teacher(teacher, labels, work)}
    for name, examples in _lessons(teacher, train, list(more), work).items():
        artifact = fit(examples, recipe, held_out=held_out, vectors=vectors).artifact
        systems[name] = _answers_of(artifact)
        log(f"{dataset.name}: trained {name}")
    return list(_scores(dataset.name, systems, held_out, test))


def _lessons(
    teacher: Teacher, train: Examples, more: list[str], work: Path
) -> Mapping[str, Examples]:
    """Return what each student learns from."""
    answers = teacher.answer([*train.texts, *more], work / "answers.jsonl")
    taught = with_soft_labels(train, answers[: len(train)])
    labels = list(train.label_counts)
    return {
        "no teacher": train,
        "teacher, training texts": taught,
        "teacher, unlabelled texts too": add_guessed(taught, more, answers[len(train) :], labels),
    }


def _answers_of_teacher(teacher: Teacher, labels: Sequence[str], work: Path) -> Answer:
    def answer(texts: list[str]) -> list[str]:
        cache = work / "scored.jsonl"
        cache.unlink(missing_ok=True)  # so that it is asked, and timed
        return [labels[best] for best in teacher.answer(texts, cache).argmax(1)]

    return answer


def _answers_of(artifact: Artifact) -> Answer:
    predictor = Predictor(artifact)
    return lambda texts: [found.label for found in predictor.predict(texts)]


def _scores(
    corpus: str, systems: Mapping[str, Answer], held_out: Examples, test: Examples
) -> Iterator[Scored]:
    """Score systems that answer the test texts in turns."""
    seconds = dict.fromkeys(systems, float("inf"))
    unseen = {name: _accuracy(answer, held_out) for name, answer in systems.items()}
    accuracies: dict[str, float] = {}
    for _ in range(ROUNDS):
        for name, answer in systems.items():
            began = time.perf_counter()
            accuracies[name] = _accuracy(answer, test)
            seconds[name] = min(seconds[name], time.perf_counter() - began)
    for name in systems:
        yield Scored(corpus, name, unseen[name], accuracies[name], len(test) / seconds[name])


def _accuracy(answer: Answer, examples: Examples) -> float:
    found = answer(list(examples.texts))
    correct = [label == example.label for label, example in zip(found, examples, strict=True)]
    return sum(correct) / len(correct)


def table(scores: Sequence[Scored]) -> str:
    """Return the scores as a table in Markdown."""
    threads = torch.get_num_threads()
    speed = f"texts per second, {threads} thread{'s' * (threads > 1)}"
    lines = [f"| corpus | system | held out | test | {speed} |", "|---|---|---:|---:|---:|"]
    lines += [
        f"| {s.corpus} | {s.system} | {s.held_out:.1%} | {s.test:.1%} | {s.texts_per_second:,.0f} |"
        for s in scores
    ]
    return "\n".join(lines)
