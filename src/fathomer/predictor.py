"""Inference: texts in, one answer per text out, in the same order.

The command line, the estimator and the server all use :class:`Predictor`. No call changes its
state, so threads can share one.
"""

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from fathomer.artifact import Artifact
from fathomer.config import PredictPrecision
from fathomer.data.examples import Examples
from fathomer.data.labelled import encode_examples
from fathomer.dataset import TableOptions, map_dataset
from fathomer.errors import ConfigError, DataError, did_you_mean
from fathomer.evaluate.metrics import Answered, Metrics, score
from fathomer.model.fast import fast_network, int8_available
from fathomer.model.inference import Classified, classify
from fathomer.model.interface import Network, find_device
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Words

BATCH_WORDS = 4000
"""Words per batch: enough for efficient matrix products, few enough to bound the memory."""


class Word(NamedTuple):
    """A word of a text and the depth at which it was read."""

    text: str
    """The word as it stands in the text: ``text[start:end]``."""
    start: int
    """Position of its first character."""
    end: int
    """Position after its last character."""
    depth: int
    """Number of steps the word took, from 1 to ``max_depth``; 0 in models without depths."""


@dataclass(frozen=True, slots=True)
class Prediction:
    """The answer for one text."""

    label: str | None
    """Most probable label; None if it is less probable than ``abstain_below``."""
    probabilities: dict[str, float]
    """Probability of each label. They sum to 1, except in a multi-label model."""
    words: tuple[Word, ...]
    """Words the model read, in order."""
    truncated: bool
    """Whether the text had more words than the model reads; the rest was ignored."""
    labels: tuple[str, ...] | None = None
    """All predicted labels of a multi-label model; None in other models."""

    @property
    def best(self) -> str:
        """Most probable label, even if ``label`` is None."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    @property
    def mean_depth(self) -> float | None:
        """Mean depth of the words; None if the text has no words."""
        if not self.words:
            return None
        return sum(word.depth for word in self.words) / len(self.words)

    def to_dict(self, *, words: bool = False) -> dict[str, Any]:
        """Return the answer as JSON-compatible values; ``words=True`` includes words and depths."""
        answer: dict[str, Any] = {
            "label": self.label,
            "probabilities": self.probabilities,
            "truncated": self.truncated,
        }
        if self.labels is not None:
            answer["labels"] = list(self.labels)
        if words:
            answer["words"] = [word._asdict() for word in self.words]
        return answer


class Predictor:
    """A trained model that classifies texts. Create one with :func:`fathomer.load`."""

    def __init__(
        self, artifact: Artifact, *, precision: PredictPrecision = "float32", device: str = "cpu"
    ) -> None:
        self.artifact = artifact
        self.network = artifact.network.to(find_device(device)).eval()
        if precision == "int8":
            precision = _checked_int8(self.network)
        self.precision = precision
        self.network = fast_network(self.network, precision=precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """Names of the labels, in the order of the probabilities."""
        return self.artifact.labels

    @property
    def multi_label(self) -> bool:
        """Whether a text can have several labels, or none."""
        return self.artifact.recipe.model.multi_label

    @property
    def max_depth(self) -> int:
        """Largest depth the model can select."""
        return self.artifact.recipe.model.max_depth

    @property
    def knows_depth(self) -> bool:
        """Whether the model selects a depth for each word; some baselines do not."""
        return self.artifact.network.knows_depth

    def predict(
        self,
        texts: Iterable[str],
        *,
        max_depth: int | None = None,
        abstain_below: float = 0.0,
    ) -> list[Prediction]:
        """Classify texts; return one prediction per text, in the same order.

        ``max_depth`` caps the number of steps of every word. A label that is less probable than
        ``abstain_below`` is not predicted.
        """
        texts = checked_texts(texts)
        return self.predict_words(
            texts, self.split(texts), max_depth=max_depth, abstain_below=abstain_below
        )

    def split(self, texts: list[str]) -> list[Words]:
        """Split texts into the words that the model reads."""
        max_words = self.artifact.recipe.text.max_words
        return self.artifact.tokenizer.encode(texts, max_words=max_words)

    def predict_words(
        self,
        texts: list[str],
        words: list[Words],
        *,
        max_depth: int | None = None,
        abstain_below: float = 0.0,
    ) -> list[Prediction]:
        """Classify texts that :meth:`split` has already split into words."""
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"abstain_below is a probability, not {abstain_below}")
        max_chars = self.artifact.recipe.text.max_chars
        encoded = EncodedTexts.from_words(words, max_chars=max_chars)
        answers = self.classify(encoded, max_depth)
        probabilities = answers.probabilities
        if not self.multi_label:
            probabilities /= probabilities.sum(1, keepdims=True)
        chosen = self._chosen(answers) & (probabilities >= abstain_below)
        depths = np.split(answers.depths, encoded.starts[1:])[:-1]  # the part after the last text
        return [
            self._prediction(*parts)
            for parts in zip(texts, words, probabilities, chosen, depths, strict=True)
        ]

    def classify(self, texts: EncodedTexts, max_depth: int | None) -> Classified:
        """Run the network on encoded texts; every probability of this class comes from here."""
        return classify(
            self.network,
            texts,
            batch_words=BATCH_WORDS,
            max_depth=max_depth,
            temperature=self.artifact.temperature,
        )

    def _chosen(self, answers: Classified) -> NDArray[np.bool_]:
        """Mark the most probable label of each text, or all labels that reach their threshold."""
        if self.multi_label:
            return answers.given(self.artifact.thresholds)
        chosen: NDArray[np.bool_] = answers.labels[:, None] == np.arange(len(self.labels))
        return chosen

    def _prediction(
        self,
        text: str,
        words: Words,
        probabilities: NDArray[np.float64],
        chosen: NDArray[np.bool_],
        depths: NDArray[np.int16],
    ) -> Prediction:
        numbers = np.flatnonzero(chosen).tolist()
        return Prediction(
            label=self.labels[max(numbers, key=probabilities.__getitem__)] if numbers else None,
            probabilities=dict(zip(self.labels, probabilities.tolist(), strict=True)),
            words=tuple(
                Word(text[start:end], start, end, depth)
                for (start, end), depth in zip(words.spans, depths.tolist(), strict=True)
            ),
            truncated=words.truncated,
            labels=tuple(self.labels[number] for number in numbers) if self.multi_label else None,
        )

    def map_dataset(
        self,
        dataset: Any,
        *,
        text_column: str = "text",
        depths: bool = False,
        max_depth: int | None = None,
        abstain_below: float = 0.0,
        workers: int | None = None,
    ) -> Any:
        """Return a Ray dataset with the columns of ``dataset`` and an answer for every row.

        The new columns are ``label``, ``probability`` and ``error`` (why a row has no label), and
        ``mean_depth`` if ``depths`` are asked for. Each of the ``workers``, by default up to one
        per core, is an actor with a copy of the model and one thread.
        """
        options = TableOptions(text_column, depths, max_depth, abstain_below)
        return map_dataset(self, dataset, load, options, workers)

    def evaluate(self, examples: Examples, *, max_depth: int | None = None) -> Metrics:
        """Score the model on labelled texts.

        ``examples`` is ``Examples([Example("a lovely film", "positive"), ...])``, or a file read
        by ``read_examples``; see :mod:`fathomer.data`.
        """
        return self.score(self.answer(examples, max_depth=max_depth))

    def answer(self, examples: Examples, *, max_depth: int | None = None) -> Answered:
        """Classify labelled texts and return the raw answers, to be scored or analysed."""
        artifact = self.artifact
        if examples.multi_label != self.multi_label:
            number = "several labels" if self.multi_label else "one label"
            raise DataError(f"the model gives {number} per text; the examples do not fit")
        data = encode_examples(examples, artifact.tokenizer, self.labels, artifact.recipe.text)
        answers = self.classify(data.texts, max_depth)
        return Answered(data, answers, self.labels, artifact.thresholds)

    def score(self, answered: Answered) -> Metrics:
        """Score the result of :meth:`answer`."""
        return score(
            answered.answers,
            answered.data.targets,
            self.labels,
            thresholds=self.artifact.thresholds,
        )


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return any iterable of strings as a list; raise TypeError for anything else."""
    if isinstance(texts, str):
        raise TypeError("expected a list of texts; for a single text, pass [text]")
    # Iterating over a mapping or a data frame would yield column names.
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:
        kind = type(texts).__name__
        raise TypeError(f"expected a list or a single column of texts, not a {kind}")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} has type {type(text).__name__}; expected a string")
    return texts


def _checked_int8(network: Network) -> PredictPrecision:
    """Return ``"int8"`` where the network and the processor support it, else ``"float32"``."""
    if not isinstance(network, DepthAdaptiveNetwork):
        raise ConfigError(f"the model {network.config.name} has no int8 precision; use float32")
    if network.device.type == "cpu" and int8_available():
        return "int8"
    warnings.warn("int8 needs a CPU with VNNI; using float32 instead", stacklevel=3)
    return "float32"


def load(
    folder: str | Path, *, precision: PredictPrecision = "float32", device: str = "cpu"
) -> Predictor:
    """Load a trained model from the folder written by ``fathomer train`` or ``save``.

    ``precision="int8"`` is faster on CPUs with VNNI. ``device`` is a PyTorch device such as
    ``"cpu"`` or ``"cuda"``.
    """
    if precision not in get_args(PredictPrecision):
        known = get_args(PredictPrecision)
        raise ConfigError(f"unknown precision {precision!r}; {did_you_mean(precision, known)}")
    return Predictor(Artifact.load(Path(folder)), precision=precision, device=device)
