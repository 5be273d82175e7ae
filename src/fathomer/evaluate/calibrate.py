"""Calibration after training, on the held-out part: temperature, share of n-grams, thresholds.

The logits are divided by the temperature (Guo et al., 2017, "On Calibration of Modern Neural
Networks"). It changes no answer, only its probability. It is not applied if there are too few texts,
or if it does not lower the loss in a cross validation on the held-out part. If TF-IDF is mixed into
a network, its share is chosen here. With multi-label data, each label also gets the threshold with
the best F1.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from fathomer.evaluate.metrics import Metrics, log_complement, score
from fathomer.evaluate.reliability import Certainties
from fathomer.evaluate.threshold import best_f1_threshold
from fathomer.model.inference import classify
from fathomer.model.interface import Network
from fathomer.text.encode import EncodedTexts

MIN_TEMPERATURE, MAX_TEMPERATURE = 0.05, 20.0
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
"""Shares of the n-grams to choose from."""
MIN_TEXTS = 50
"""With fewer held-out texts, the temperature would be a guess and stays at 1."""
FOLDS = 5
MIN_SUPPORT = 5
"""Texts a label needs before its threshold is tuned: with fewer, a single text decides it."""


class Calibration(NamedTuple):
    """A temperature, the thresholds, and the scores before and after."""

    temperature: float
    thresholds: tuple[float, ...] | None
    before: Metrics
    after: Metrics
    reason: str | None = None
    """Why the temperature is not applied and stays at 1, or None if it is applied."""

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {
            "temperature": self.temperature,
            "applied": self.reason is None,
            "reason": self.reason,
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
    otherwise: float = 1.0,
) -> Calibration | None:
    """Calibrate a trained network; return None if all held-out texts have the same label.

    If calibration is of no use, the temperature is ``otherwise``.
    """
    if len(np.unique(targets)) < 2:
        return None
    network.eval()
    before = classify(network, texts, batch_words=batch_words)
    reason = reason_against(before.log_probabilities, targets)
    temperature = otherwise if reason else fit_temperature(before.log_probabilities, targets)
    after = classify(network, texts, batch_words=batch_words, temperature=temperature)
    multi_label = targets.ndim == 2
    thresholds = tune_thresholds(after.probabilities, targets) if multi_label else None
    return Calibration(
        temperature,
        thresholds,
        score(before, targets, labels),
        score(after, targets, labels, thresholds=thresholds),
        reason,
    )


def reason_against(
    log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]
) -> str | None:
    """Return why calibration is of no use, or None if it lowers the loss of texts it was not fitted on."""
    texts = len(targets)
    if texts < MIN_TEXTS:
        return f"only {texts} held-out texts, {MIN_TEXTS} are needed"
    folds = np.random.default_rng(0).permutation(texts) % FOLDS
    before = after = 0.0
    for fold in range(FOLDS):
        rest, part = folds != fold, folds == fold
        temperature = fit_temperature(log_probabilities[rest], targets[rest])
        logits = _as_logits(log_probabilities[part], multi_label=targets.ndim == 2)
        loss = _loss(logits, targets[part].ravel(), smoothed=False)
        before += loss(1.0) * part.sum() / texts
        after += loss(temperature) * part.sum() / texts
    if after < before:
        return None
    return f"it would not help (loss {before:.4f}, with calibration {after:.4f})"


def tune_share(
    network: Network,
    texts: EncodedTexts,
    targets: NDArray[np.int64],
    *,
    batch_words: int,
) -> float:
    """Choose how much the n-grams of a network count: the share with the smallest held-out loss.

    Every share is judged at its own best temperature.
    """
    assert network.ngrams is not None, "a network without n-grams has no share to choose"
    network.eval()
    logits = []
    for only in (0.0, 1.0):  # the network, then the n-grams
        network.ngrams.share.fill_(only)
        found = classify(network, texts, batch_words=batch_words).log_probabilities
        logits.append(_as_logits(found, multi_label=targets.ndim == 2))
    mixtures = [(1 - share) * logits[0] + share * logits[1] for share in SHARES]
    losses = [_best_temperature(mixed, targets.ravel())[1] for mixed in mixtures]
    best = SHARES[int(np.argmin(losses))]
    network.ngrams.share.fill_(best)
    return best


def fit_temperature(log_probabilities: NDArray[np.float32], targets: NDArray[np.int64]) -> float:
    """Return the temperature with the smallest loss on texts that were not trained on.

    As in Platt scaling, the targets are smoothed as if there were one more text with all labels
    equally likely, so a few right answers do not make the model certain of everything.
    """
    logits = _as_logits(log_probabilities, multi_label=targets.ndim == 2)
    return _best_temperature(logits, targets.ravel())[0]


def _as_logits(log_probabilities: NDArray[np.float32], *, multi_label: bool) -> NDArray[np.float64]:
    """Return logits of a single decision per row; each of several labels is a decision of its own."""
    logits = log_probabilities.astype(np.float64)
    if multi_label:
        logits = np.stack([log_complement(logits).ravel(), logits.ravel()], axis=1)
    return logits


def _best_temperature(
    logits: NDArray[np.float64], targets: NDArray[np.int64]
) -> tuple[float, float]:
    """Return the best temperature and its loss."""
    from scipy.optimize import minimize_scalar

    loss = _loss(logits, targets, smoothed=True)
    bounds = np.log(MIN_TEMPERATURE), np.log(MAX_TEMPERATURE)
    found = minimize_scalar(lambda log: loss(np.exp(log)), bounds=bounds, method="bounded")
    return float(np.exp(found.x)), float(found.fun)


def _loss(
    logits: NDArray[np.float64], targets: NDArray[np.int64], *, smoothed: bool
) -> Callable[[float], float]:
    """Return the loss as a function of the temperature."""
    from scipy.special import log_softmax

    texts, labels = logits.shape
    truth = np.full((texts, labels), smoothed / labels / (texts + smoothed))
    truth[np.arange(texts), targets] += texts / (texts + smoothed)

    def loss(temperature: float) -> float:
        scaled = log_softmax(logits / temperature, axis=1)
        return -float(np.mean(np.sum(truth * scaled, axis=1)))

    return loss


def tune_thresholds(
    probabilities: NDArray[np.float64], targets: NDArray[np.int64]
) -> tuple[float, ...]:
    """Return the threshold with the best F1 for each label; rare labels keep 0.5."""
    columns = zip(probabilities.T, targets.T == 1, strict=True)
    return tuple(
        best_f1_threshold(Certainties(column, true)) if true.sum() >= MIN_SUPPORT else 0.5
        for column, true in columns
    )
