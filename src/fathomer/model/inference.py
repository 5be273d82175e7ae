"""Inference over many texts: encoded texts in, probabilities and depths out."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn import functional

from fathomer.model.fast import fast_network
from fathomer.model.graph import WordBatch
from fathomer.model.interface import Network
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.text.encode import EncodedTexts, plan_batches


class Classified(NamedTuple):
    """The answers for many texts, in order."""

    log_probabilities: NDArray[np.float32]
    """One row per text, one column per label; with several labels per text, they are independent."""
    depths: NDArray[np.int16]
    """Depth of each word, one text after another."""

    @property
    def labels(self) -> NDArray[np.int64]:
        """Index of the most probable label of each text."""
        best: NDArray[np.int64] = self.log_probabilities.argmax(1)
        return best

    @property
    def probabilities(self) -> NDArray[np.float64]:
        """Probability of each label of each text."""
        found: NDArray[np.float64] = np.exp(self.log_probabilities.astype(np.float64))
        return found

    def given(self, thresholds: Sequence[float] | None) -> NDArray[np.bool_]:
        """Whether each label of a multi-label model reaches its threshold."""
        limits = np.full(self.log_probabilities.shape[1], 0.5) if thresholds is None else thresholds
        found: NDArray[np.bool_] = self.probabilities >= np.asarray(limits)
        return found


def classify(
    network: Network,
    texts: EncodedTexts,
    *,
    batch_words: int,
    max_depth: int | None = None,
    depths: NDArray[np.integer] | None = None,
    temperature: float = 1.0,
) -> Classified:
    """Run a network in evaluation mode over texts, in batches of similar length.

    ``max_depth`` caps the depths, ``depths`` forces them. Logits are divided by the temperature;
    one above 1 makes the probabilities less certain.
    """
    assert not network.training, "call network.eval() first"
    network = fast_network(network)
    log_probabilities = np.zeros((len(texts), network.config.num_labels), dtype=np.float32)
    taken = np.zeros(len(texts.ids), dtype=np.int16)
    for indices in plan_batches(texts.lengths, budget=batch_words):
        with torch.inference_mode():
            batch = WordBatch.from_packed(texts.pack(indices)).to(network.device)
            forced = None
            if depths is not None:
                found = texts.gather(indices, depths).astype(np.int64)
                forced = torch.from_numpy(found).to(network.device)
            output = network(batch, depths=forced, max_depth=max_depth)
            logits = output.logits.float() / temperature
            several = network.config.multi_label
            logs = functional.logsigmoid(logits) if several else logits.log_softmax(1)
            log_probabilities[indices] = logs.cpu().numpy()
            texts.scatter(indices, output.depths.cpu().numpy(), taken)
    return Classified(log_probabilities, taken)


def depth_logits(
    network: DepthAdaptiveNetwork, texts: EncodedTexts, *, batch_words: int
) -> NDArray[np.float32]:
    """Return the logits of the depths of each word, Eq. (6), one text after another."""
    engine = fast_network(network)
    found = np.zeros((len(texts.ids), network.config.max_depth), dtype=np.float32)
    for indices in plan_batches(texts.lengths, budget=batch_words):
        with torch.inference_mode():
            batch = WordBatch.from_packed(texts.pack(indices)).to(engine.device)
            output = engine(batch, max_depth=1)  # how deep the words are read does not matter
            assert output.depth_logits is not None
            texts.scatter(indices, output.depth_logits.float().cpu().numpy(), found)
    return found
