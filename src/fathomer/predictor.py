"""The inference path: texts in, one answer per text out, in order.

Command line, estimator and server all go through :class:`Predictor`. It holds no state that a call
changes, so that threads may share it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.artifact import Artifact
from fathomer.data.batches import EncodedTexts
from fathomer.data.examples import Examples
from fathomer.nn.inference import classify
from fathomer.text.tokenizer import Words
from fathomer.training.metrics import Metrics, score
from fathomer.training.prepare import encode_examples

BATCH_WORDS = 4000
"""Words that the network reads at a time: enough for its matrix products, and bounded memory."""


class Word(NamedTuple):
    """Hold a word, its place in the text (``text[start:end]``) and how deep it was read."""

    text: str
    start: int
    end: int
    depth: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """Hold the answer for one text."""

    label: str
    probabilities: dict[str, float]
    words: tuple[Word, ...]
    truncated: bool
    """Whether the text was longer than the model reads; the words beyond had no part in this."""

    def to_dict(self, *, words: bool = False) -> dict[str, Any]:
        """Return the answer as plain values, on request with the words and their depths."""
        answer: dict[str, Any] = {
            "label": self.label,
            "probabilities": self.probabilities,
            "truncated": self.truncated,
        }
        if words:
            answer["words"] = [word._asdict() for word in self.words]
        return answer


class Predictor:
    """Answer with a trained model."""

    def __init__(self, artifact: Artifact) -> None:
        self.artifact = artifact

    @property
    def labels(self) -> tuple[str, ...]:
        """Name the labels, in the order of the probabilities."""
        return self.artifact.labels

    @property
    def max_depth(self) -> int:
        """Give the largest depth that the model can select."""
        return self.artifact.recipe.model.max_depth

    def predict(self, texts: Iterable[str], *, max_depth: int | None = None) -> list[Prediction]:
        """Answer each text; ``max_depth`` lets no word take more steps than that."""
        texts = checked_texts(texts)
        return self.predict_words(texts, self.split(texts), max_depth=max_depth)

    def split(self, texts: list[str]) -> list[Words]:
        """Split texts into the words that the model will read."""
        max_words = self.artifact.recipe.text.max_words
        return self.artifact.tokenizer.encode(texts, max_words=max_words)

    def predict_words(
        self, texts: list[str], words: list[Words], *, max_depth: int | None = None
    ) -> list[Prediction]:
        """Answer texts that :meth:`split` has split already."""
        max_chars = self.artifact.recipe.text.max_chars
        encoded = EncodedTexts.from_words(words, max_chars=max_chars)
        answers = classify(
            self.artifact.network, encoded, batch_words=BATCH_WORDS, max_depth=max_depth
        )
        probabilities = np.exp(answers.log_probabilities.astype(np.float64))
        probabilities /= probabilities.sum(1, keepdims=True)
        depths = np.split(answers.depths, encoded.starts[1:])[:-1]  # what follows the last is empty
        return [
            self._prediction(*parts)
            for parts in zip(texts, words, probabilities, depths, strict=True)
        ]

    def _prediction(
        self, text: str, words: Words, probabilities: NDArray[np.float64], depths: NDArray[np.int16]
    ) -> Prediction:
        return Prediction(
            label=self.labels[int(probabilities.argmax())],
            probabilities=dict(zip(self.labels, probabilities.tolist(), strict=True)),
            words=tuple(
                Word(text[start:end], start, end, depth)
                for (start, end), depth in zip(words.spans, depths.tolist(), strict=True)
            ),
            truncated=words.truncated,
        )

    def evaluate(self, examples: Examples, *, max_depth: int | None = None) -> Metrics:
        """Score the model on labelled texts."""
        artifact = self.artifact
        data = encode_examples(examples, artifact.tokenizer, self.labels, artifact.recipe.text)
        answers = classify(
            artifact.network, data.texts, batch_words=BATCH_WORDS, max_depth=max_depth
        )
        return score(answers, data.targets, self.labels)


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Take any strings, an iterator, an array or a column of a table; refuse all else."""
    if isinstance(texts, str):
        raise TypeError("a list of texts is needed; for a single one write [text]")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is of type {type(text).__name__}, not a string")
    return texts


def load(folder: str | Path) -> Predictor:
    """Load a model that was saved by training."""
    return Predictor(Artifact.load(Path(folder)))
