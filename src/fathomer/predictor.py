"""Inference: texts in, one answer per text out, in the same order.

The command line, the estimator and the server all use :class:`Predictor`. No call changes its
state, so threads can share one. In a forked process it computes with one thread.
"""

import math
import os
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any, get_args

import numpy as np
import torch
from numpy.typing import NDArray

from fathomer.artifact import Artifact
from fathomer.columns import checked_texts
from fathomer.config import PredictPrecision
from fathomer.contributions import find_contributions
from fathomer.data.examples import Examples
from fathomer.data.labelled import encode_examples
from fathomer.dataset import TableOptions, map_dataset
from fathomer.errors import ArtifactError, ConfigError, DataError, DepthError, did_you_mean
from fathomer.evaluate.budget import CurvePoint, measure_curve
from fathomer.evaluate.metrics import Answered, Metrics, score
from fathomer.model.depth_shift import shift_depths
from fathomer.model.fast import fast_network, int8_available
from fathomer.model.inference import Classified, classify
from fathomer.model.interface import Network, find_device
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.prediction import Prediction, make_predictions
from fathomer.text.encode import EncodedTexts
from fathomer.text.tokenizer import Words

BATCH_WORDS = 6000
"""Words per batch: enough for efficient matrix products, few enough to bound the memory."""


class Predictor:
    """A trained model that classifies texts. Create one with :func:`fathomer.load`."""

    def __init__(
        self, artifact: Artifact, *, precision: PredictPrecision = "float32", device: str = "cpu"
    ) -> None:
        self.artifact = artifact
        self._made_by = os.getpid()
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
        depth_budget: float | None = None,
        abstain_below: float = 0.0,
        contributions: bool = False,
    ) -> list[Prediction]:
        """Classify texts; return one prediction per text, in the same order.

        ``texts`` is a list, an array, or a column of pandas, polars, Arrow or Hugging Face.
        ``max_depth`` caps the number of steps of every word; ``depth_budget`` sets their average,
        in a model with supervised depth. A label that is less probable than ``abstain_below`` is not
        predicted. With ``contributions``, each word shows how much it supports the answer; the
        model then also reads every text without each of its words.
        """
        texts = checked_texts(texts)
        if complete := self.artifact.network.completion():
            texts = list(map(complete, texts))
        return self.predict_words(
            texts,
            self.split(texts),
            max_depth=max_depth,
            depth_budget=depth_budget,
            abstain_below=abstain_below,
            contributions=contributions,
        )

    def warm_up(self) -> None:
        """Answer one text, so that a model that cannot answer is found before the first request."""
        [answer] = self.predict(["one text"])
        if not all(map(math.isfinite, answer.probabilities.values())):
            raise ArtifactError("the model answers with probabilities that are not finite")

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
        depth_budget: float | None = None,
        abstain_below: float = 0.0,
        contributions: bool = False,
    ) -> list[Prediction]:
        """Classify texts that :meth:`split` has already split into words."""
        if not 0 <= abstain_below <= 1:
            raise ConfigError(f"abstain_below is a probability, not {abstain_below}")
        max_chars = self.artifact.recipe.text.max_chars
        encoded = EncodedTexts.from_words(words, max_chars=max_chars)
        answers = self.classify(encoded, max_depth, depth_budget)
        probabilities = answers.probabilities
        if not self.multi_label:
            probabilities /= probabilities.sum(1, keepdims=True)
        chosen = self._chosen(answers) & (probabilities >= abstain_below)
        effects = None
        if contributions:
            effects = find_contributions(
                encoded,
                answers,
                lambda shortened: self.classify(shortened, max_depth, depth_budget),
                multi_label=self.multi_label,
            )
        return make_predictions(
            texts,
            words,
            probabilities,
            chosen,
            answers.depths,
            labels=self.labels,
            multi_label=self.multi_label,
            spans=self.artifact.tokenizer.spans,
            contributions=effects,
        )

    def depth_shift(self, budget: float | None) -> float:
        """Return how far the depths must be shifted for an average depth; raise an error if they cannot."""
        if budget is None:
            return 0.0
        if not self.knows_depth:
            name = self.artifact.recipe.model.name
            raise DepthError(f"words have no depth in the model {name}; leave the depth budget out")
        if self.artifact.depth_budgets is None:
            raise DepthError(
                "the model has no table of depth budgets; train it with --target-depth, "
                "or limit the depths with max_depth"
            )
        return self.artifact.depth_budgets.shift(budget)

    def classify(
        self, texts: EncodedTexts, max_depth: int | None, depth_budget: float | None = None
    ) -> Classified:
        """Run the network on encoded texts; every probability of this class comes from here."""
        if os.getpid() != self._made_by:
            # After a fork, torch would wait for threads that exist only in the parent.
            torch.set_num_threads(1)
            self._made_by = os.getpid()
        network = self.network
        if (shift := self.depth_shift(depth_budget)) and isinstance(network, DepthAdaptiveNetwork):
            network = shift_depths(network, shift)
        return classify(
            network,
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

    def map_dataset(
        self,
        dataset: Any,
        *,
        text_column: str = "text",
        depths: bool = False,
        max_depth: int | None = None,
        depth_budget: float | None = None,
        abstain_below: float = 0.0,
        workers: int | None = None,
    ) -> Any:
        """Return a Ray dataset with the columns of ``dataset`` and an answer for every row.

        The new columns are ``label``, ``probability`` and ``error`` (why a row has no label), and
        ``mean_depth`` if ``depths`` are asked for. Each of the ``workers``, by default up to one
        per core, is an actor with a copy of the model and one thread.
        """
        options = TableOptions(text_column, depths, max_depth, abstain_below, depth_budget)
        return map_dataset(self, dataset, load, options, workers)

    def evaluate(
        self,
        examples: Examples,
        *,
        max_depth: int | None = None,
        depth_budget: float | None = None,
    ) -> Metrics:
        """Score the model on labelled texts.

        ``examples`` is ``Examples([Example("a lovely film", "positive"), ...])``, or a file read
        by ``read_examples``; see :mod:`fathomer.data`.
        """
        return self.score(self.answer(examples, max_depth=max_depth, depth_budget=depth_budget))

    def answer(
        self,
        examples: Examples,
        *,
        max_depth: int | None = None,
        depth_budget: float | None = None,
    ) -> Answered:
        """Classify labelled texts and return the raw answers, to be scored or analysed."""
        artifact = self.artifact
        if examples.multi_label != self.multi_label:
            number = "several labels" if self.multi_label else "one label"
            raise DataError(f"the model gives {number} per text; the examples do not fit")
        examples = examples.completed(artifact.network.completion())
        data = encode_examples(examples, artifact.tokenizer, self.labels, artifact.recipe.text)
        answers = self.classify(data.texts, max_depth, depth_budget)
        return Answered(data, answers, self.labels, artifact.thresholds)

    def depth_curve(self, answered: Answered) -> list[CurvePoint]:
        """Measure accuracy and speed at several depth budgets; empty if the model has no budgets."""
        budgets = self.artifact.depth_budgets
        if budgets is None or not isinstance(self.network, DepthAdaptiveNetwork):
            return []
        return measure_curve(
            self.network,
            answered.data,
            self.labels,
            budgets,
            batch_words=BATCH_WORDS,
            thresholds=self.artifact.thresholds,
        )

    def score(self, answered: Answered) -> Metrics:
        """Score the result of :meth:`answer`."""
        return score(
            answered.answers,
            answered.data.targets,
            self.labels,
            thresholds=self.artifact.thresholds,
        )


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
