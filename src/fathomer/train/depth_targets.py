"""Target depths for ``depth="supervised"``: how deep each word of the training texts should be read.

A target scores the words, by type or in context. The words are then ranked by score, and a truncated
geometric distribution turns ranks into depths: many words are shallow, few are deep, and the average
over all running words is the target depth.

    N running words of the training texts, T word types: the vocabulary, then the unknown words
"""

import copy
from collections import deque
from dataclasses import replace
from functools import partial

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
"""A score for each word type, or for each running word; words with higher scores are read deeper."""

PRIOR_TEXTS = 10
"""Pseudo-count: every word is counted as if it had occurred in this many more texts, with the overall
frequencies of the labels. Without it, a word that occurs three times, always with the same label, is
deeper than most, and the network learns to trust it: without the BiLSTM, MR falls from 77.4 to 68.5 %
(docs/log.md)."""
_BISECTIONS = 60
_BLOCK = 10_000
"""Texts whose words are counted at a time, to bound memory."""


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
    data = prepared.train
    deal = partial(depths_by_rank, mean=config.target_depth, max_depth=max_depth)
    if config.depth_target == "oracle":
        depths = deal(oracle(prepared))
    else:
        types, num_types = types_of(data.texts)
        scores = type_scores(data, config.depth_target, seed=config.seed)
        depths = deal(scores, counts=np.bincount(types, minlength=num_types))[types]
    return replace(prepared, train=replace(data, depths=depths))


# Scores


def type_scores(data: LabelledTexts, target: DepthTarget, *, seed: int) -> Scores:
    """Return the scores of the word types."""
    if target == "mi":
        return mutual_information(data, prior=PRIOR_TEXTS)
    return rarity(data) if target == "frequency" else random_scores(data, seed=seed)


def types_of(texts: EncodedTexts) -> tuple[NDArray[np.int32], int]:
    """Return the type of each running word, and the number of types."""
    ids = np.asarray(texts.ids)
    known = int(ids.max(initial=-1)) + 1
    return np.where(ids >= 0, ids, known - 1 - ids), known + len(texts.unknown)


def mutual_information(data: LabelledTexts, *, prior: float = 0) -> Scores:
    """Return the mutual information, in nats, of the presence of each word's type with the label.

    If texts have several labels, each is a variable of its own, and the information is their sum.
    ``prior`` is the number of texts by which the frequencies of labels, with a word and without it,
    are drawn towards the overall ones.
    """
    types, num_types = types_of(data.texts)
    variables = data.targets[:, None] if data.targets.ndim == 1 else data.targets
    information = np.zeros(num_types)
    for labels in variables.T:
        information += _information(types, data.texts.starts, labels, num_types, prior)
    return information


def _information(
    types: NDArray[np.int32],
    starts: NDArray[np.int64],
    labels: NDArray[np.int64],
    num_types: int,
    prior: float,
) -> Scores:
    """Return how far the labels of texts with and without each type differ from those of all texts.

    That is the mean Kullback-Leibler divergence, computed for labels that occur with a type (``rows``
    and ``columns``) and, at once, for all others.
    """
    from scipy.special import xlogy

    num_texts, num_labels = max(1, len(labels)), int(labels.max(initial=0)) + 1
    rows, columns, counts = _joint_counts(types, starts, labels, num_labels)
    of_label = (np.bincount(labels, minlength=num_labels) / num_texts)[columns]
    share_of_others = 1 - np.bincount(rows, of_label, num_types)
    with_type = np.bincount(rows, counts, num_types)
    information = np.zeros(num_types)
    for texts, count, other_texts in (
        (with_type, counts, 0),
        (num_texts - with_type, num_texts * of_label - counts, num_texts),
    ):
        total = np.maximum(texts + prior, 1)
        ratio = (count + prior * of_label) / (total[rows] * of_label)
        ratio_of_others = (other_texts + prior) / total
        of_others = share_of_others * xlogy(ratio_of_others, ratio_of_others)
        divergence = np.bincount(rows, of_label * xlogy(ratio, ratio), num_types) + of_others
        information += texts / num_texts * divergence
    return np.maximum(information, 0)


def _joint_counts(
    types: NDArray[np.int32],
    starts: NDArray[np.int64],
    labels: NDArray[np.int64],
    num_labels: int,
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return type, label and number of texts, for every type and label that occur together."""
    keys, counts = np.zeros(0, np.int64), np.zeros(0, np.int64)
    num_types = int(types.max(initial=0)) + 1
    for first in range(0, len(labels), _BLOCK):
        bounds = starts[first : first + _BLOCK + 1]
        text_of = np.repeat(np.arange(first, first + len(bounds) - 1), np.diff(bounds))
        pairs = np.unique(text_of * num_types + types[bounds[0] : bounds[-1]])  # once per text
        texts, present = np.divmod(pairs, num_types)
        found, number = np.unique(present * num_labels + labels[texts], return_counts=True)
        keys, places = np.unique(np.concatenate([keys, found]), return_inverse=True)
        counts = np.bincount(places, np.concatenate([counts, number])).astype(np.int64)
    return *np.divmod(keys, num_labels), counts


def rarity(data: LabelledTexts) -> Scores:
    """Return minus the number of occurrences of each word type: rare words are read deeper."""
    types, num_types = types_of(data.texts)
    found: Scores = -np.bincount(types, minlength=num_types).astype(np.float64)
    return found


def random_scores(data: LabelledTexts, *, seed: int) -> Scores:
    """Return a random number for each word type; the control of all other targets."""
    num_types = types_of(data.texts)[1]
    return np.random.default_rng([seed, num_types]).random(num_types)


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


def depths_by_rank(
    scores: Scores,
    *,
    mean: float,
    max_depth: int,
    counts: NDArray[np.integer] | None = None,
) -> NDArray[np.int16]:
    """Return a depth in 1..max_depth for each score: the higher, the deeper.

    ``counts`` are the running words with each score, over which ``mean`` is the average. Equal
    scores have equal depths, so it can only be met as well as the largest counts allow.
    """
    weights = np.ones(len(scores)) if counts is None else counts
    if not weights.sum():
        return np.ones(len(scores), dtype=np.int16)
    _, group = np.unique(scores, return_inverse=True)
    sizes = np.bincount(group, weights)
    shares = sizes / sizes.sum()
    ranks = np.cumsum(shares) - shares / 2  # the middle of each group, from 0 to 1

    def depths_at(log_ratio: float) -> NDArray[np.int64]:
        below = np.cumsum(truncated_geometric(float(np.exp(log_ratio)), max_depth))[:-1]
        found: NDArray[np.int64] = 1 + np.searchsorted(below, ranks, side="right")
        return found

    low, high = -50.0, 50.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if depths_at(middle) @ shares < mean:
            low = middle
        else:
            high = middle
    best = min(map(depths_at, (low, high)), key=lambda depths: abs(depths @ shares - mean))
    return best[group].astype(np.int16)
