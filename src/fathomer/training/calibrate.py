"""What is fitted after training, on the held-out part: a temperature that all logits are divided by.

Guo et al., 2017, "On Calibration of Modern Neural Networks". A temperature changes no answer, only
how certain it is.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.nn.inference import classify
from fathomer.training.metrics import Metrics, score
from fathomer.training.prepare import Prepared

COLDEST, HOTTEST = 0.05, 20.0


class Calibration(NamedTuple):
    """Hold the temperature, and what it has changed."""

    temperature: float
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


def calibrate(prepared: Prepared) -> Calibration | None:
    """Fit the temperature of a trained network; nothing if the held-out part has one label only."""
    data = prepared.held_out
    if data is None or len(np.unique(data.targets)) < 2:
        return None
    budget = prepared.recipe.train.batch_words
    network = prepared.network.eval()
    answers = classify(network, data.texts, batch_words=budget)
    temperature = fit_temperature(answers.log_probabilities, data.targets)
    cooled = classify(network, data.texts, batch_words=budget, temperature=temperature)
    return Calibration(
        temperature,
        score(answers, data.targets, prepared.labels),
        score(cooled, data.targets, prepared.labels),
    )


def fit_temperature(log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    """Find the temperature with the smallest loss on answers that were not trained on.

    As in Platt's scaling, the loss counts one text more, of which nothing is known: few texts that
    are all answered right do not make a model certain of everything.
    """
    from scipy.optimize import minimize_scalar

    logits = log_probabilities.astype(np.float64)
    texts, labels = logits.shape
    truth = np.full((texts, labels), 1 / labels / (texts + 1))
    truth[np.arange(texts), targets] += texts / (texts + 1)

    def loss(log_temperature: float) -> float:
        scaled = logits / np.exp(log_temperature)
        top = scaled.max(1, keepdims=True)
        sums = top + np.log(np.exp(scaled - top).sum(1, keepdims=True))
        return float(np.mean(np.sum(truth * (sums - scaled), axis=1)))

    found = minimize_scalar(loss, bounds=(np.log(COLDEST), np.log(HOTTEST)), method="bounded")
    return float(np.exp(found.x))
