"""What is fitted after training, on the held-out part: a temperature that all logits are divided by.

Where a text may have several labels, also the probability from which on each of them is given.

Guo et al., 2017, "On Calibration of Modern Neural Networks". A temperature changes no answer, only
how certain it is.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.evaluate.metrics import Metrics, log_of_rest, score
from fathomer.model.inference import classify
from fathomer.model.interface import Network
from fathomer.text.encode import EncodedTexts

COLDEST, HOTTEST = 0.05, 20.0
FEWEST = 5
"""Texts of a label from which a threshold can be learned; one text could drag it anywhere."""


class Calibration(NamedTuple):
    """Hold the temperature, and what it has changed."""

    temperature: float
    thresholds: tuple[float, ...] | None
    before: Metrics
    after: Metrics

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "temperature": self.temperature,
            "examples": self.before.examples,
            "error_before": self.before.calibration_error,
            "error_after": self.after.calibration_error,
            "loss_before": self.before.loss,
            "loss_after": self.after.loss,
        }


def calibrate(
    network: Network,
    texts: EncodedTexts,
    targets: NDArray[np.int64],
    labels: Sequence[str],
    *,
    batch_words: int,
) -> Calibration | None:
    """Fit the temperature of a trained network; ``None`` if the held-out texts share one label."""
    if len(np.unique(targets)) < 2:
        return None
    network.eval()
    before = classify(network, texts, batch_words=batch_words)
    temperature = fit_temperature(before.log_probabilities, targets)
    after = classify(network, texts, batch_words=batch_words, temperature=temperature)
    multi_label = targets.ndim == 2
    thresholds = tune_thresholds(after.log_probabilities, targets) if multi_label else None
    return Calibration(
        temperature,
        thresholds,
        score(before, targets, labels),
        score(after, targets, labels, thresholds=thresholds),
    )


def fit_temperature(log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    """Find the temperature with the smallest loss on answers that were not trained on.

    As in Platt's scaling, the loss counts one text more, of which nothing is known: few texts that
    are all answered right do not make a model certain of everything.
    """
    from scipy.optimize import minimize_scalar
    from scipy.special import log_softmax

    logits = log_probabilities.astype(np.float64)
    if targets.ndim == 2:  # each label is a choice of its own, between yes and no
        logits = np.stack([log_of_rest(logits).ravel(), logits.ravel()], axis=1)
        targets = targets.ravel()
    texts, labels = logits.shape
    truth = np.full((texts, labels), 1 / labels / (texts + 1))
    truth[np.arange(texts), targets] += texts / (texts + 1)

    def loss(log_temperature: float) -> float:
        scaled = log_softmax(logits / np.exp(log_temperature), axis=1)
        return -float(np.mean(np.sum(truth * scaled, axis=1)))

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(found.x))


def tune_thresholds(
    log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]
) -> tuple[float, ...]:
    """Find for each label the threshold of the best F1; a label that hardly occurs keeps 0.5."""
    columns = zip(np.exp(log_probabilities.astype(np.float64)).T, targets.T, strict=True)
    return tuple(_best_threshold(probabilities, true) for probabilities, true in columns)


def _best_threshold(probabilities: NDArray[np.float64], true: NDArray[np.int64]) -> float:
    if true.sum() < FEWEST:
        return 0.5
    order = np.argsort(-probabilities, kind="stable")
    falling = np.append(probabilities[order], 0.0)
    cuts = np.flatnonzero(falling[:-1] > falling[1:])
    f1 = 2 * np.cumsum(true[order])[cuts] / (cuts + 1 + true.sum())
    middles = (falling[cuts] + falling[cuts + 1]) / 2
    best = np.flatnonzero(f1 == f1.max())
    nearest = best[np.argmin(np.abs(middles[best] - 0.5))]  # of equally good ones the plainest
    return float(middles[nearest])
