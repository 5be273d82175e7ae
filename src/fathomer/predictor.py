"""The inference path: texts in, one answer per text out, in order.

Command line, estimator and server all go through :class:`Predictor`. It holds no state that a call
changes, so that threads may share it.
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
from fathomer.data.labelled import LabelledTexts, encode_examples
from fathomer.errors import ConfigError, DataError, did_you_mean
from fathomer.evaluate.metrics import Metrics, score
from fathomer.model.fast import fast_network, int8_available
from fathomer.model.inference import Classified, classify
from fathomer.model.interface import Network, find_device
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Words

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

    label: str | None
    """Nothing if the answer is less probable than was asked for."""
    probabilities: dict[str, float]
    """Of each label; they add up to 1, unless the model may give several labels."""
    words: tuple[Word, ...]
    """The words that were read, in their order."""
    truncated: bool
    """Whether the text was longer than the model reads; the words beyond had no part in this."""
    labels: tuple[str, ...] | None = None
    """All labels of the text, if the model may give several; ``label`` is the most probable one."""

    @property
    def best(self) -> str:
        """Name the most probable label, however improbable it is."""
        return max(self.probabilities, key=self.probabilities.__getitem__)

    def to_dict(self, *, words: bool = False) -> dict[str, Any]:
        """Return the answer as plain values, on request with the words and their depths."""
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


class Answered(NamedTuple):
    """Hold labelled texts together with the network's answers to them."""

    data: LabelledTexts
    answers: Classified


class Predictor:
    """Answer with a trained model."""

    def __init__(
        self, artifact: Artifact, *, precision: PredictPrecision = "float32", device: str = "cpu"
    ) -> None:
        self.artifact = artifact
        self.network = artifact.network.to(find_device(device)).eval()
        if precision == "int8":
            precision = _checked_int8(self.network)
        self.network = fast_network(self.network, precision=precision)

    @property
    def labels(self) -> tuple[str, ...]:
        """Name the labels, in the order of the probabilities."""
        return self.artifact.labels

    @property
    def multi_label(self) -> bool:
        """Say whether a text may have several labels, or none."""
        return self.artifact.recipe.model.multi_label

    @property
    def max_depth(self) -> int:
        """Give the largest depth that the model can select."""
        return self.artifact.recipe.model.max_depth

    @property
    def knows_depth(self) -> bool:
        """Say whether the depths of the words mean something; there are models without them."""
        return self.artifact.network.knows_depth

    def predict(
        self,
        texts: Iterable[str],
        *,
        max_depth: int | None = None,
        abstain_below: float = 0.0,
    ) -> list[Prediction]:
        """Answer each text; ``max_depth`` lets no word take more steps than that.

        A label whose probability is smaller than ``abstain_below`` is not given.
        """
        texts = checked_texts(texts)
        return self.predict_words(
            texts, self.split(texts), max_depth=max_depth, abstain_below=abstain_below
        )

    def split(self, texts: list[str]) -> list[Words]:
        """Split texts into the words that the model will read."""
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
        """Answer texts that :meth:`split` has split already."""
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"abstain_below is a probability, not {abstain_below}")
        max_chars = self.artifact.recipe.text.max_chars
        encoded = EncodedTexts.from_words(words, max_chars=max_chars)
        answers = self.classify(encoded, max_depth)
        probabilities = answers.probabilities
        if not self.multi_label:
            probabilities /= probabilities.sum(1, keepdims=True)
        depths = np.split(answers.depths, encoded.starts[1:])[:-1]  # what follows the last is empty
        return [
            self._prediction(*parts, abstain_below)
            for parts in zip(texts, words, probabilities, depths, strict=True)
        ]

    def classify(self, texts: EncodedTexts, max_depth: int | None) -> Classified:
        """Run the network; all probabilities that anybody sees come from here."""
        return classify(
            self.network,
            texts,
            batch_words=BATCH_WORDS,
            max_depth=max_depth,
            temperature=self.artifact.temperature,
        )

    def _prediction(
        self,
        text: str,
        words: Words,
        probabilities: NDArray[np.float64],
        depths: NDArray[np.int16],
        abstain_below: float,
    ) -> Prediction:
        given = self._given(probabilities, abstain_below)
        return Prediction(
            label=self.labels[max(given, key=probabilities.__getitem__)] if given else None,
            probabilities=dict(zip(self.labels, probabilities.tolist(), strict=True)),
            words=tuple(
                Word(text[start:end], start, end, depth)
                for (start, end), depth in zip(words.spans, depths.tolist(), strict=True)
            ),
            truncated=words.truncated,
            labels=tuple(self.labels[number] for number in given) if self.multi_label else None,
        )

    def _given(self, probabilities: NDArray[np.float64], abstain_below: float) -> list[int]:
        """Choose the labels to give, by their numbers: the best one, or all over their thresholds."""
        chosen = [int(probabilities.argmax())]
        if self.multi_label:
            limits = self.artifact.thresholds or [0.5] * len(self.labels)
            chosen = np.flatnonzero(probabilities >= np.asarray(limits)).tolist()
        return [number for number in chosen if probabilities[number] >= abstain_below]

    def evaluate(self, examples: Examples, *, max_depth: int | None = None) -> Metrics:
        """Score the model on labelled texts.

        They are ``Examples([Example("a lovely film", "positive"), ...])``, or what ``read_examples``
        reads from a file; see :mod:`fathomer.data`.
        """
        return self.score(self.answer(examples, max_depth=max_depth))

    def score(self, answered: Answered) -> Metrics:
        """Score answers to labelled texts."""
        thresholds = self.artifact.thresholds
        return score(answered.answers, answered.data.targets, self.labels, thresholds=thresholds)

    def answer(self, examples: Examples, *, max_depth: int | None = None) -> Answered:
        """Answer labelled texts, for whoever wants to score or to look into the answers."""
        artifact = self.artifact
        if examples.multi_label != self.multi_label:
            number = "several labels" if self.multi_label else "one label"
            raise DataError(f"the model gives {number} per text; the examples do not fit")
        data = encode_examples(examples, artifact.tokenizer, self.labels, artifact.recipe.text)
        return Answered(data, self.classify(data.texts, max_depth))


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Take any strings, an iterator, an array or a column of a table; refuse all else."""
    if isinstance(texts, str):
        raise TypeError("a list of texts is needed; for a single one write [text]")
    if isinstance(texts, Mapping) or getattr(texts, "ndim", 1) != 1:  # iterating would give names
        kind = type(texts).__name__
        raise TypeError(f"a list or one column of texts is needed, not a {kind}")
    texts = list(texts)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise TypeError(f"text {number} is of type {type(text).__name__}, not a string")
    return texts


def _checked_int8(network: Network) -> PredictPrecision:
    """Return ``"int8"`` where the network and the processor support it, else ``"float32"``."""
    if not isinstance(network, DepthAdaptiveNetwork):
        raise ConfigError(f"the model {network.config.name} has no int8 precision; use float32")
    if network.device.type == "cpu" and int8_available():
        return "int8"
    warnings.warn("int8 needs a CPU with VNNI; float32 is used instead", stacklevel=3)
    return "float32"


def load(
    folder: str | Path, *, precision: PredictPrecision = "float32", device: str = "cpu"
) -> Predictor:
    """Load a model that was saved by training."""
    if precision not in get_args(PredictPrecision):
        known = get_args(PredictPrecision)
        raise ConfigError(f"unknown precision {precision!r}; {did_you_mean(precision, known)}")
    return Predictor(Artifact.load(Path(folder)), precision=precision, device=device)
