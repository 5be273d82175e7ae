"""The training loop, from the outside in: run, epoch, step, loss (section 4.2 of the paper).

:func:`train` is a generator that yields an event after every step and every epoch. The caller may
stop iterating, or be interrupted by Ctrl-C, at any point: the state holds the best weights so far.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from fathomer.config import TrainConfig
from fathomer.data.labelled import LabelledTexts
from fathomer.errors import TrainingError
from fathomer.evaluate.metrics import Metrics, score
from fathomer.model.graph import WordBatch
from fathomer.model.inference import classify
from fathomer.model.interface import DirectNetwork, Network
from fathomer.model.products import mixed_precision
from fathomer.text.encode import plan_batches
from fathomer.train.checkpoint import EpochDone, TrainingState, trained_weights
from fathomer.train.losses import (
    DEPTH_WEIGHT,
    count_correct,
    depth_loss,
    mixed_losses,
    text_losses,
    with_noise,
)
from fathomer.train.prepare import Prepared, VectorsFound, learn_directly
from fathomer.train.processes import ALONE, Processes

MAX_ROLLBACKS = 3


@dataclass(frozen=True)
class StepDone:
    """The result of one optimiser step."""

    epoch: int
    step: int
    steps: int
    """Number of steps in this epoch."""
    texts: int
    words: int
    loss: float
    correct: int
    depth_sum: int
    """Sum of the depths of all words in the batch, as sampled in training."""


@dataclass(frozen=True)
class RolledBack:
    """A loss that was not finite: the epoch restarts from the last good state."""

    epoch: int
    step: int
    learning_rate: float
    """The reduced rate at which training continues."""


Event = VectorsFound | StepDone | EpochDone | RolledBack


class BatchSums(NamedTuple):
    """What one step measured on its batch; ``loss`` is nan if no update was made."""

    loss: float
    correct: int
    depths: int


def train(
    state: TrainingState,
    prepared: Prepared,
    *,
    checkpoint: Path | None = None,
    settings: Mapping[str, Any] | None = None,
    processes: Processes = ALONE,
) -> Generator[Event, None, None]:
    """Train for the configured epochs or until patience runs out, and restore the best weights.

    With ``checkpoint``, the state is saved there after every epoch, together with the ``settings``
    that a resumed run must share.
    """
    config = prepared.recipe.train
    if isinstance(prepared.network, DirectNetwork):
        yield fit_directly(state, prepared, prepared.network)
        return
    while len(state.history) < config.epochs:
        if processes.decide(lambda: _is_over(state, config)):
            break
        record = yield from train_epoch(state, prepared, processes)
        state.history.append(record)
        if record.best:
            state.keep_best(record.epoch)
        if checkpoint is not None:
            state.save(checkpoint, settings or {})
        yield record
    state.restore_best()


def _is_over(state: TrainingState, config: TrainConfig) -> bool:
    """Whether patience has run out, or the time would before the end of another epoch."""
    done = len(state.history)
    if 0 < config.patience <= done - state.best_epoch:
        return True
    return done > 0 and 0 < 60 * config.minutes < state.seconds * (done + 1) / done


def fit_directly(state: TrainingState, prepared: Prepared, network: DirectNetwork) -> EpochDone:
    """Fit a model that is trained in one go, such as TF-IDF; no checkpoint is written."""
    data = prepared.train
    learn_directly(network, data, prepared.held_out, seed=prepared.recipe.train.seed)
    found = score_network(network, data, prepared)
    scores = prepared.held_out and score_network(network, prepared.held_out, prepared)
    record = EpochDone(
        epoch=1,
        loss=found.loss,
        accuracy=found.accuracy,
        mean_depth=0.0,
        words=len(data.texts.ids),
        learning_rate=0.0,
        held_out=scores.to_dict() if scores else None,
        best=True,
    )
    state.history.append(record)
    state.keep_best(1)
    return record


def train_epoch(
    state: TrainingState, prepared: Prepared, processes: Processes = ALONE
) -> Generator[Event, None, EpochDone]:
    """Train for one epoch; if the loss diverges, restart it at half the learning rate."""
    last_good = {name: tensor.clone() for name, tensor in state.tensors().items()}
    while True:
        steps: list[StepDone] = []
        for step in train_steps(state, prepared, processes):
            if not math.isfinite(step.loss):
                break
            steps.append(step)
            yield step
        else:
            found = processes.decide(lambda: summarise_epoch(state, prepared, steps).to_dict())  # noqa: B023
            return EpochDone(**found)
        state.load_tensors(last_good)
        rate = current_rate(state, prepared.recipe.train, 0.0)
        if state.rollbacks == MAX_ROLLBACKS:
            raise TrainingError(
                f"the loss or its gradient is not finite, even at a learning rate of {rate:.2g}; "
                "lower train.learning_rate"
            )
        state.rollbacks += 1
        yield RolledBack(step.epoch, step.step, rate / 2)


def train_steps(
    state: TrainingState, prepared: Prepared, processes: Processes = ALONE
) -> Generator[StepDone, None, None]:
    """Take the steps of one epoch.

    All randomness derives from the seed, the epoch, the number of rollbacks and the step. Batches also
    depend on the number of processes, dropout and sampled depths on the process.
    """
    config, data = prepared.recipe.train, prepared.train
    epoch = len(state.history) + 1
    shuffle = np.random.default_rng([config.seed, epoch, state.rollbacks])
    lengths = data.texts.lengths
    budget, parts = config.batch_words, processes.count
    plan = list(plan_batches(lengths, budget=budget, shuffle=shuffle, parts=parts))
    mean_texts = len(data) / len(plan)
    for step, indices in enumerate(plan):
        rate = current_rate(state, config, step / len(plan))
        share = processes.share(indices, lengths)
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(shuffle.integers(2**63)) + processes.rank)
            sums = add_gradients(state, data, share, config, mean_texts=mean_texts)
        result = update(state, processes, sums, config, rate=rate)
        texts, words = len(indices), int(lengths[indices].sum())
        yield StepDone(epoch, step + 1, len(plan), texts, words, result.loss / texts, *result[1:])
        if config.minutes and processes.decide(lambda: 60 * config.minutes < state.seconds):
            return


def add_gradients(
    state: TrainingState,
    data: LabelledTexts,
    indices: Sequence[int],
    config: TrainConfig,
    *,
    mean_texts: float,
) -> Float[Tensor, "3"]:
    """Compute the gradients on some texts; return their losses, correct answers and depths, summed.

    Batches have a fixed number of words, so their number of texts differs. The sum of the losses is
    divided by ``mean_texts``, the average over all batches, so that every text counts the same.
    """
    network = state.network.train()
    device = network.device
    state.optimiser.zero_grad()
    if not indices:  # a batch with fewer texts than processes
        return torch.zeros(3, device=device)
    batch = WordBatch.from_packed(data.texts.pack(indices)).to(device)
    targets = torch.from_numpy(data.targets[indices]).to(device)
    wanted = None  # the target depths, if depth is supervised
    if data.depths is not None:
        wanted = torch.from_numpy(data.texts.gather(indices, data.depths)).long().to(device)
    taken = None if wanted is None else with_noise(wanted, network.config.max_depth)
    with mixed_precision(config.precision):
        output = network(batch, depths=taken)
    losses = text_losses(output.logits.float(), targets, config.label_smoothing)
    if data.soft is not None and data.given is not None:
        soft, given = (torch.from_numpy(a[indices]).to(device) for a in (data.soft, data.given))
        losses = mixed_losses(losses, output.logits.float(), soft, given, config)
    if data.weights is not None:
        losses = losses * torch.from_numpy(data.weights[indices]).to(device)
    loss = losses.sum() / mean_texts
    if wanted is not None and output.depth_logits is not None:
        mean_words = mean_texts * len(data.texts.ids) / len(data)
        loss = loss + DEPTH_WEIGHT * depth_loss(output.depth_logits.float(), wanted) / mean_words
    loss.backward()  # type: ignore[no-untyped-call]
    correct = count_correct(output.logits, targets)
    return torch.stack([losses.detach().sum(), correct.float(), output.depths.sum().float()])


def update(
    state: TrainingState, processes: Processes, sums: Tensor, config: TrainConfig, *, rate: float
) -> BatchSums:
    """Update the weights by the gradients of all processes, unless they are not finite."""
    weights = list(trained_weights(state.network).values())
    loss, correct, depths = processes.add_up(weights, sums).tolist()
    norm = torch.nn.utils.clip_grad_norm_(weights, config.clip or math.inf)
    if not math.isfinite(loss + norm.item()):
        return BatchSums(math.nan, 0, 0)
    for group in state.optimiser.param_groups:
        group["lr"] = rate
    state.optimiser.step()
    return BatchSums(loss, int(correct), int(depths))


def learning_rate(progress: float, config: TrainConfig) -> float:
    """Return the learning rate at ``progress`` (0 to 1): it decays linearly.

    >>> config = TrainConfig(learning_rate=1.0, decay_to=0.5)
    >>> [learning_rate(progress, config) for progress in (0.0, 0.5, 1.0)]
    [1.0, 0.75, 0.5]
    """
    return config.learning_rate * (1 - progress * (1 - config.decay_to))


def current_rate(state: TrainingState, config: TrainConfig, epoch_fraction: float) -> float:
    """Return the learning rate inside the current epoch, halved by every rollback."""
    progress = (len(state.history) + epoch_fraction) / config.epochs
    return learning_rate(progress, config) * 0.5**state.rollbacks


def summarise_epoch(
    state: TrainingState, prepared: Prepared, steps: Sequence[StepDone]
) -> EpochDone:
    """Average the steps of an epoch and score the network on the held-out part."""
    texts, words = sum(step.texts for step in steps), sum(step.words for step in steps)
    held_out = None
    if prepared.held_out is not None:
        held_out = score_network(state.network, prepared.held_out, prepared)
    return EpochDone(
        epoch=steps[-1].epoch,
        loss=sum(step.loss * step.texts for step in steps) / texts,
        accuracy=sum(step.correct for step in steps) / texts,
        mean_depth=sum(step.depth_sum for step in steps) / max(1, words),
        words=words,
        learning_rate=current_rate(state, prepared.recipe.train, 1.0),
        held_out=held_out.to_dict() if held_out else None,
        best=_is_kept(held_out, state, prepared.recipe.train),
    )


def score_network(network: Network, data: LabelledTexts, prepared: Prepared) -> Metrics:
    """Score a network on encoded texts."""
    budget = prepared.recipe.train.batch_words
    answers = classify(network.eval(), data.texts, batch_words=budget)
    return score(answers, data.targets, prepared.labels)


def _is_kept(held_out: Metrics | None, state: TrainingState, config: TrainConfig) -> bool:
    """Whether this epoch replaces the one kept so far: by micro F1, then by loss.

    With one label per text, the micro F1 is the accuracy.
    """
    if held_out is None or config.keep == "last" or not state.best_epoch:
        return True
    best = state.history[state.best_epoch - 1].held_out
    assert best is not None, "every epoch is scored on the same held-out part"
    return (held_out.micro_f1, -held_out.loss) > (best["micro_f1"], -best["loss"])
