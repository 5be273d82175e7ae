"""What people would use instead of Fathomer: accuracy, training time, speed and size, side by side.

Sentence embeddings, and averaged static word vectors, have a logistic regression on top, whose ``C`` is
chosen on the held-out texts. All systems run on the same threads, one after another. Results are lines of
JSON in one file; what is already there is not repeated.
"""

import json
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import mean
from tempfile import TemporaryDirectory
from typing import TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from benchmarks.charts import COLOURS, REFERENCE_LINES
from experiments.compare_vectors import ENCODER
from experiments.figures import new_figure, save_figure
from experiments.groups import family_of
from experiments.runs import read_lines
from experiments.tables import Table
from fathomer.config import Recipe
from fathomer.data.examples import Examples, split_stratified
from fathomer.data.opening import Dataset
from fathomer.model.registry import find_model
from fathomer.predictor import load
from fathomer.text.distill import find_encoder, load_encoder
from fathomer.text.subwords import find_wordllama, subword_files, subword_vectors
from fathomer.text.tokenizer import split_words
from fathomer.train.automatic import DataSize, automatic_recipe
from fathomer.train.fit import fit

FATHOMER, BILSTM, TFIDF, FASTTEXT = "Fathomer", "BiLSTM", "TF-IDF", "fastText"
MINILM, STATIC = "MiniLM + regression", "wordllama + regression"
TIMED_SECONDS = 1.0
Answers = TypeVar("Answers")
MODELS = {FATHOMER: "fathomer", BILSTM: "bilstm", TFIDF: "tfidf", FASTTEXT: "fasttext"}
SYSTEMS = (*MODELS, MINILM, STATIC)
STRENGTHS = (0.1, 1.0, 10.0, 100.0)
"""Values of ``C`` of the logistic regression that are tried."""
LONGEST = 256
"""Subwords of a text that the sentence encoder reads, as its authors trained it."""
BATCH_TEXTS = 32

Embed = Callable[[Sequence[str]], NDArray[np.float32]]


@dataclass(frozen=True)
class Measured:
    """One system on one corpus."""

    corpus: str
    system: str
    accuracy: float
    train_seconds: float
    texts_per_second: float
    megabytes: float
    """Of everything that is needed to predict, except the program."""
    examples: int
    threads: int


def read_measured(path: Path) -> list[Measured]:
    """Read a file of results; there are none if it does not exist."""
    return read_lines(path, lambda line: Measured(**json.loads(line)))


def measure_systems(
    dataset: Dataset,
    out: Path,
    *,
    systems: Sequence[str],
    vectors: Path | None,
    assignments: Sequence[str] = (),
) -> Iterator[Measured]:
    """Measure the systems that are not in ``out`` yet on a corpus, and append them to it."""
    done = {(found.corpus, found.system) for found in read_measured(out)}
    for system in systems:
        if (dataset.name, system) in done:
            continue
        if system in MODELS:
            figures = _measure_model(dataset, system, vectors, assignments)
        else:
            embed, size = _minilm() if system == MINILM else _static()
            figures = _measure_embedding(dataset, embed, size)
        found = Measured(
            dataset.name, system, *figures, len(dataset.evaluation_set), torch.get_num_threads()
        )
        with out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(found)) + "\n")
        yield found


def _measure_model(
    dataset: Dataset, system: str, vectors: Path | None, assignments: Sequence[str]
) -> tuple[float, float, float, float]:
    """Return accuracy, training seconds, texts per second and megabytes of one of our models."""
    train, test = dataset.train, dataset.evaluation_set
    size = DataSize.of(train.texts, len(train), max_words=Recipe().text.max_words)
    recipe = automatic_recipe(size).updated({"model": {"name": MODELS[system]}})
    if system != FATHOMER:
        recipe = recipe.updated({"model": {"ngrams": False}})
    recipe = find_model(MODELS[system]).adapted(recipe).with_settings(list(assignments))
    began = time.perf_counter()
    artifact = fit(train, recipe, vectors=vectors).artifact
    seconds = time.perf_counter() - began
    with TemporaryDirectory() as folder:
        artifact.save(Path(folder, "model"))
        stored = sum(path.stat().st_size for path in Path(folder, "model").rglob("*"))
        predictor = load(Path(folder, "model"))
    texts = list(test.texts)
    predictor.predict(texts[:BATCH_TEXTS])
    answers, answered = _timed(lambda: predictor.predict(texts))
    right = [answer.label == label for answer, label in zip(answers, labels_of(test), strict=True)]
    return float(np.mean(right)), seconds, len(texts) / answered, stored / 1e6


def _measure_embedding(
    dataset: Dataset, embed: Embed, size: int
) -> tuple[float, float, float, float]:
    """Return the same figures of a logistic regression on embeddings."""
    from sklearn.linear_model import LogisticRegression

    train, test = dataset.train, dataset.evaluation_set
    began = time.perf_counter()
    part, held_out = split_stratified(train, fraction=0.1, seed=0)
    inputs, unseen = embed(list(part.texts)), embed(list(held_out.texts))

    def score(strength: float) -> float:
        found = LogisticRegression(C=strength, max_iter=2000).fit(inputs, labels_of(part))
        return float(found.score(unseen, labels_of(held_out)))

    model = LogisticRegression(C=max(STRENGTHS, key=score), max_iter=2000)
    model.fit(np.concatenate([inputs, unseen]), [*labels_of(part), *labels_of(held_out)])
    seconds = time.perf_counter() - began
    answers, answered = _timed(lambda: model.predict(embed(list(test.texts))))
    accuracy = float(np.mean(answers == np.array(labels_of(test))))
    return accuracy, seconds, len(test) / answered, (size + model.coef_.nbytes) / 1e6


def _timed(answer: Callable[[], Answers]) -> tuple[Answers, float]:
    """Return what a function returns and its seconds, the least of several calls if it is fast."""
    ended = time.perf_counter() + TIMED_SECONDS
    least = math.inf
    while True:
        began = time.perf_counter()
        found = answer()
        now = time.perf_counter()
        least = min(least, now - began)
        if now > ended:
            return found, least


def labels_of(examples: Examples) -> list[str]:
    """Return the label of each text."""
    return [example.label for example in examples]


def _minilm() -> tuple[Embed, int]:
    """Return a function that encodes texts with the sentence encoder, and the encoder's bytes."""
    folder = find_encoder(ENCODER)
    tokenizer, encoder = load_encoder(folder)

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        found = np.zeros((len(texts), encoder.config.hidden_size), dtype=np.float32)
        order = sorted(range(len(texts)), key=lambda row: len(texts[row]))
        for start in range(0, len(order), BATCH_TEXTS):
            rows = order[start : start + BATCH_TEXTS]
            batch = tokenizer(
                [texts[row] for row in rows], truncation=True, max_length=LONGEST, padding=True,
                return_tensors="pt",
            )  # fmt: skip
            with torch.inference_mode():
                states = encoder(**batch).last_hidden_state
            present = batch["attention_mask"][..., None]
            pooled = (states * present).sum(1) / present.sum(1)
            found[rows] = torch.nn.functional.normalize(pooled).numpy()
        return found

    return embed, sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def _static() -> tuple[Embed, int]:
    """Return a function that averages the word vectors of texts, and the bytes of the vectors."""
    folder = find_wordllama()

    def embed(texts: Sequence[str]) -> NDArray[np.float32]:
        words = list(split_words(texts))
        known = sorted({word for each in words for word in each})
        vectors = subword_vectors(folder, known)
        row_of = {word: row for row, word in enumerate(vectors.words)}
        found = np.zeros((len(texts), vectors.size), dtype=np.float32)
        for number, each in enumerate(words):
            rows = [row_of[word] for word in each if word in row_of]
            if rows:
                found[number] = vectors.matrix[rows].mean(0)
        return found

    return embed, sum(path.stat().st_size for path in subword_files(folder))


def alternatives_table(measured: Sequence[Measured]) -> Table:
    """Return the table of RESULTS.md."""
    header, rows = table_of(measured)
    threads = " and ".join(sorted({str(found.threads) for found in measured}))
    note = (
        "Each system as one would use it: Fathomer and the BiLSTM (three layers, no n-grams) with the settings "
        "that follow from the data and `wordllama` vectors, TF-IDF and the regressions with a `C` chosen on "
        f"held-out texts, fastText with fixed settings. Threads: {threads}. Training includes reading the "
        "vectors; MB is what is stored, with the encoder or the vectors where they are needed to answer. "
        "Other programs ran on the machine while the slower systems were measured."
    )
    return Table("alternatives", "What one would use instead", header, rows, note)


def table_of(measured: Sequence[Measured]) -> tuple[list[str], list[list[str]]]:
    """Return the header and the rows of the table, as text."""
    header = ["corpus", "system", "accuracy", "training, s", "texts/s", "MB"]
    body = [
        [
            found.corpus,
            found.system,
            f"{100 * found.accuracy:.1f}",
            f"{found.train_seconds:,.1f}",
            f"{found.texts_per_second:,.0f}",
            f"{found.megabytes:,.1f}",
        ]
        for found in measured
    ]
    return header, body


def draw(measured: Sequence[Measured], path: Path) -> Path:
    """Draw mean accuracy against training seconds and texts per second, where all systems were run."""
    of_system = [{m.corpus for m in measured if m.system == system} for system in SYSTEMS]
    corpora = set.intersection(*(found for found in of_system if found))
    figure, panels = new_figure(9, 3.6, ncols=2, sharey=True)
    for system in SYSTEMS:
        rows = [found for found in measured if found.system == system and found.corpus in corpora]
        if not rows:
            continue
        accuracy = 100 * mean(row.accuracy for row in rows)
        colour = COLOURS["fathomer"] if system == FATHOMER else REFERENCE_LINES
        for axes, name in zip(panels, ("train_seconds", "texts_per_second"), strict=True):
            place = float(np.exp(np.mean(np.log([getattr(row, name) for row in rows]))))
            axes.scatter(place, accuracy, color=colour, zorder=2)
            axes.annotate(
                system, (place, accuracy), xytext=(0, 6), textcoords="offset points",
                ha="center", fontsize="small", color=colour,
            )  # fmt: skip
    for axes, label in zip(panels, ("seconds to train", "texts per second"), strict=True):
        axes.set(xscale="log", xlabel=label)
        axes.margins(0.3, 0.2)
    names = ", ".join(sorted({family_of(corpus) for corpus in corpora}))
    panels[0].set(ylabel=f"accuracy, % ({names})")
    return save_figure(figure, path)
