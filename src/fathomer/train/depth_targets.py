"""Target depths for ``depth="supervised"``: how deep each word of the training texts is to be read.

A target scores the words, by type or in context. The words are then ranked by score, and a truncated
geometric distribution turns ranks into depths: many words are shallow, few are deep, and the average
over all running words is the target depth.

    N running words of the training texts, T word types: the vocabulary, then the unknown words
"""

import copy
from collections import deque
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from jaxtyping import Float
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from fathomer.config import DepthTarget
from fathomer.data.labelled import LabelledTexts
from fathomer.errors import ConfigError
from fathomer.model.fast.engine import sharing
from fathomer.model.graph import DepthOrder, WordBatch
from fathomer.model.model import SLSTM, DepthAdaptiveNetwork, States
from fathomer.text.encode import EncodedTexts, plan_batches
from fathomer.train.checkpoint import TrainingState
from fathomer.train.loop import train
from fathomer.train.prepare import Prepared

Scores = NDArray[np.float64]
"""A score for each running word; words with higher scores are read deeper."""

_BISECTIONS = 60


def with_depth_targets(prepared: Prepared) -> Prepared:
    """Add the target depths to the training texts, if the depth of the network is supervised."""
    network, config = prepared.network, prepared.recipe.train
    if not isinstance(network, DepthAdaptiveNetwork) or network.config.depth != "supervised":
        return prepared
    max_depth = network.config.max_depth
    if config.target_depth > max_depth:
        raise ConfigError(
            f"target_depth {config.target_depth:g} is above model.max_depth; use 1 to {max_depth}, "
            "or raise model.max_depth"
        )
    scores = SCORES[config.depth_target](prepared)
    depths = depths_by_rank(scores, mean=config.target_depth, max_depth=max_depth)
    return replace(prepared, train=replace(prepared.train, depths=depths))


# Scores


def types_of(texts: EncodedTexts) -> tuple[NDArray[np.int64], int]:
    """Return the type of each running word, and the number of types."""
    ids = texts.ids.astype(np.int64)
    known = int(ids.max(initial=-1)) + 1
    return np.where(ids >= 0, ids, known - 1 - ids), known + len(texts.unknown)


def mutual_information(data: LabelledTexts) -> Scores:
    """Return the mutual information, in nats, of the presence of each word's type with the label.

    If texts have several labels, each is a variable of its own, and the information is their sum.
    """
    types, num_types = types_of(data.texts)
    text_of = np.repeat(np.arange(len(data)), data.texts.lengths)
    pairs = np.unique(text_of * num_types + types)  # a word counts once per text
    texts_with, present = np.divmod(pairs, max(1, num_types))
    variables = data.targets[:, None] if data.targets.ndim == 1 else data.targets
    information = np.zeros(num_types)
    for labels in variables.T:
        information += _information(present, labels[texts_with], labels, num_types)
    return information[types]


def _information(
    types: NDArray[np.int64],
    labels_there: NDArray[np.int64],
    labels: NDArray[np.int64],
    num_types: int,
) -> Scores:
    """Return H(label) - H(label | presence) of each type.

    ``types`` are the distinct types of all texts, and ``labels_there`` the labels of their texts;
    ``labels`` has one label per text.
    """
    from scipy.special import xlogy

    num_texts, num_labels = max(1, len(labels)), int(labels.max(initial=0)) + 1
    of_label = np.bincount(labels, minlength=num_labels) / num_texts
    of_type = np.bincount(types, minlength=num_types) / num_texts
    found, counts = np.unique(types * num_labels + labels_there, return_counts=True)
    rows, columns = np.divmod(found, num_labels)
    present = counts / num_texts
    absent = of_label[columns] - present
    # A label that never occurs with a type adds the same to both entropies: only the others differ.
    differences = xlogy(present, present) + xlogy(absent, absent)
    differences -= xlogy(of_label[columns], of_label[columns])
    gained = np.bincount(rows, weights=differences, minlength=num_types)
    entropy = -xlogy(of_type, of_type) - xlogy(1 - of_type, 1 - of_type)
    information: Scores = np.maximum(gained + entropy, 0)
    return information


def rarity(data: LabelledTexts) -> Scores:
    """Return minus the frequency of each word's type: rare words are read deeper."""
    types, num_types = types_of(data.texts)
    found: Scores = -np.bincount(types, minlength=num_types)[types].astype(np.float64)
    return found


def random_scores(data: LabelledTexts, *, seed: int) -> Scores:
    """Return a random number for each word type; the control of all other targets."""
    types, num_types = types_of(data.texts)
    return np.random.default_rng([seed, num_types]).random(num_types)[types]


class GatedSLSTM(SLSTM):
    """An S-LSTM whose updates can be turned off smoothly, to differentiate by them."""

    gates: list[Tensor]

    def word_transition(
        self,
        states: States,
        sums: Float[Tensor, "k gates"],
        from_node: Float[Tensor, "B gates"],
        graph: DepthOrder,
    ) -> tuple[Float[Tensor, "k H"], Float[Tensor, "k H"]]:
        """Return the next ``h`` and ``c``, mixed with the previous ones by a gate that is 1."""
        gate = sums.new_ones(len(sums), 1, requires_grad=True)
        self.gates.append(gate)
        h, c = super().word_transition(states, sums, from_node, graph)
        before = states.h[: len(sums)], states.c[: len(sums)]
        return torch.lerp(before[0], h, gate), torch.lerp(before[1], c, gate)


def step_importance(
    network: DepthAdaptiveNetwork, texts: EncodedTexts, *, batch_words: int
) -> Scores:
    """Return how much the answer depends on each word's steps after the first, in context.

    The estimate is of first order: the change of the log-probability of the full-depth answer if a
    step is left out, summed over the steps of a word.
    """
    network = sharing(network.eval(), DepthAdaptiveNetwork)
    network.slstm = gated = sharing(network.slstm, GatedSLSTM)
    found = np.zeros(len(texts.ids))
    for indices in plan_batches(texts.lengths, budget=batch_words):
        batch = WordBatch.from_packed(texts.pack(indices)).to(network.device)
        gated.gates = []
        depths = torch.full_like(batch.words, network.config.max_depth)
        logits = network(batch, depths=depths).logits
        several = network.config.multi_label
        answers = functional.logsigmoid(logits.abs()) if several else logits.log_softmax(1).amax(1)
        if steps := gated.gates[1:]:
            changes = torch.autograd.grad(answers.sum(), steps)
            summed = torch.cat(changes, 1).abs().sum(1)
            texts.scatter(indices, summed.cpu().numpy(), found)
    return found


def oracle(prepared: Prepared) -> Scores:
    """Return the step importance in a model of full depth, trained here with the same settings."""
    network, recipe = prepared.network, prepared.recipe.updated({"model": {"depth": "full"}})
    teacher = copy.deepcopy(network)
    teacher.config = replace(network.config, depth="full")
    assert isinstance(teacher, DepthAdaptiveNetwork)
    state = TrainingState.start(teacher)
    deque(train(state, replace(prepared, network=teacher, recipe=recipe)), maxlen=0)
    return step_importance(teacher, prepared.train.texts, batch_words=recipe.train.batch_words)


SCORES: dict[DepthTarget, Callable[[Prepared], Scores]] = {
    "mi": lambda prepared: mutual_information(prepared.train),
    "frequency": lambda prepared: rarity(prepared.train),
    "random": lambda prepared: random_scores(prepared.train, seed=prepared.recipe.train.seed),
    "oracle": oracle,
}


# From scores to depths


def truncated_geometric(ratio: float, max_depth: int) -> NDArray[np.float64]:
    """Return probabilities of the depths 1..max_depth, each ``ratio`` times the one before.

    >>> truncated_geometric(0.5, 3).round(3).tolist()
    [0.571, 0.286, 0.143]
    """
    logs = np.arange(max_depth) * np.log(ratio)
    weights = np.exp(logs - logs.max())
    found: NDArray[np.float64] = weights / weights.sum()
    return found


def depths_by_rank(scores: Scores, *, mean: float, max_depth: int) -> NDArray[np.int16]:
    """Return a depth in 1..max_depth for each running word: the higher its score, the deeper.

    Words with equal scores have equal depths, so the average can only be met as well as the number
    of words with the same score allows.
    """
    if not len(scores):
        return np.zeros(0, dtype=np.int16)
    _, group, counts = np.unique(scores, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - counts / 2) / len(scores)  # the middle of each group, from 0 to 1

    def depths_at(log_ratio: float) -> NDArray[np.int64]:
        below = np.cumsum(truncated_geometric(float(np.exp(log_ratio)), max_depth))[:-1]
        found: NDArray[np.int64] = 1 + np.searchsorted(below, ranks, side="right")
        return found

    low, high = -50.0, 50.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if depths_at(middle) @ counts / len(scores) < mean:
            low = middle
        else:
            high = middle
    return _closest(depths_at(low), depths_at(high), counts, mean)[group].astype(np.int16)


def _closest(
    one: NDArray[np.int64], other: NDArray[np.int64], counts: NDArray[np.int64], mean: float
) -> NDArray[np.int64]:
    """Return the depths whose average over running words is closer to ``mean``."""
    average = one @ counts / counts.sum(), other @ counts / counts.sum()
    return one if abs(average[0] - mean) <= abs(average[1] - mean) else other
