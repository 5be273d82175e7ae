"""The training loop, as a ladder of small functions (section 4.2 of the paper).

:func:`train` is a generator: it does a piece of work, then tells its caller what happened. Whoever
stops listening, or presses Ctrl-C, loses nothing: the best weights so far stand in the state.
"""

import math
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from fathomer.config import TrainConfig
from fathomer.errors import TrainingError
from fathomer.evaluate.metrics import Metrics, score
from fathomer.model.graph import WordBatch
from fathomer.model.inference import classify
from fathomer.model.interface import DirectNetwork, Network
from fathomer.text.encode import plan_batches
from fathomer.train.checkpoint import TrainingState, trained_weights
from fathomer.train.events import EpochDone, Event, RolledBack, StepDone
from fathomer.train.prepare import LabelledTexts, Prepared
from fathomer.train.schedule import learning_rate

MAX_ROLLBACKS = 3


def train(
    state: TrainingState,
    prepared: Prepared,
    *,
    checkpoint: Path | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Generator[Event, None, None]:
    """Train until the epochs are done or patience is at its end; the best weights stay.

    With ``checkpoint`` the state is written there after every epoch, together with the ``settings``
    that a resumed training must share.
    """
    config = prepared.recipe.train
    if isinstance(prepared.network, DirectNetwork):
        yield learn_at_once(state, prepared, prepared.network)
        return
    while len(state.history) < config.epochs and not _out_of_patience(state, config.patience):
        record = yield from train_epoch(state, prepared)
        state.history.append(record)
        if record.best:
            state.keep_best(record.epoch)
        if checkpoint is not None:
            state.save(checkpoint, settings or {})
        yield record
    state.restore_best()


def learn_at_once(state: TrainingState, prepared: Prepared, network: DirectNetwork) -> EpochDone:
    """Let a model that takes no steps learn from all texts; there is nothing to resume."""
    data = prepared.train
    seed = prepared.recipe.train.seed
    network.learn(data.texts, data.targets, seed=seed, weights=data.weights)
    found = evaluate(network, data, prepared)
    held_out = prepared.held_out and evaluate(network, prepared.held_out, prepared)
    record = EpochDone(
        epoch=1,
        loss=found.loss,
        accuracy=found.accuracy,
        mean_depth=0.0,
        words=len(data.texts.ids),
        learning_rate=0.0,
        held_out=held_out.to_dict() if held_out else None,
        best=True,
    )
    state.history.append(record)
    state.keep_best(1)
    return record


def _out_of_patience(state: TrainingState, patience: int) -> bool:
    return 0 < patience <= len(state.history) - state.best_epoch


def train_epoch(state: TrainingState, prepared: Prepared) -> Generator[Event, None, EpochDone]:
    """Pass over the training texts once; after a loss that is not finite, again and slower."""
    last_good = {name: tensor.clone() for name, tensor in state.tensors().items()}
    while True:
        steps: list[StepDone] = []
        for step in _steps(state, prepared):
            if not math.isfinite(step.loss):
                break
            steps.append(step)
            yield step
        else:
            return _record(state, prepared, steps)
        state.load_tensors(last_good)
        rate = _rate(state, prepared.recipe.train, 0.0)
        if state.rollbacks == MAX_ROLLBACKS:
            raise TrainingError(
                f"the loss is not finite, even at a learning rate of {rate:.2g}; "
                "lower train.learning_rate"
            )
        state.rollbacks += 1
        yield RolledBack(step.epoch, step.step, rate / 2)


def _steps(state: TrainingState, prepared: Prepared) -> Generator[StepDone, None, None]:
    """Take the steps of one epoch; their randomness follows from their numbers."""
    config, data = prepared.recipe.train, prepared.train
    epoch = len(state.history) + 1
    shuffle = np.random.default_rng([config.seed, epoch, state.rollbacks])
    plan = list(plan_batches(data.texts.lengths, budget=config.batch_words, shuffle=shuffle))
    for step, indices in enumerate(plan):
        rate = _rate(state, config, step / len(plan))
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(int(shuffle.integers(2**63)))
            loss, correct, depth_sum, words = train_step(state, data, indices, rate, config)
        yield StepDone(epoch, step + 1, len(plan), len(indices), words, loss, correct, depth_sum)


def train_step(
    state: TrainingState,
    data: LabelledTexts,
    indices: Sequence[int],
    rate: float,
    config: TrainConfig,
) -> tuple[float, int, int, int]:
    """Take one step; give the loss, the right answers, the sum of depths and the words.

    A loss or gradient that is not finite is given back as such, and changes nothing.
    """
    network, optimiser = state.network.train(), state.optimiser
    device = network.device
    batch = WordBatch.from_packed(data.texts.pack(indices)).to(device)
    targets = torch.from_numpy(data.targets[indices]).to(device)
    half = torch.autocast(device.type, torch.bfloat16, enabled=config.precision == "bfloat16")
    with half:
        output = network(batch)
    losses = losses_of(output.logits.float(), targets, config.label_smoothing)
    if data.weights is not None:
        losses = losses * torch.from_numpy(data.weights[indices]).to(device)
    loss = losses.mean()
    optimiser.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(
        trained_weights(network).values(), config.clip or math.inf
    )
    if not math.isfinite(loss.item() + norm.item()):
        return math.nan, 0, 0, batch.num_words
    for group in optimiser.param_groups:
        group["lr"] = rate
    optimiser.step()
    if network.config.multi_label:
        correct = int(((output.logits > 0) == targets).all(1).sum())
    else:
        correct = int((output.logits.argmax(1) == targets).sum())
    return loss.item(), correct, int(output.depths.sum()), batch.num_words


def losses_of(logits: Tensor, targets: Tensor, smoothing: float) -> Tensor:
    """Give the loss of each text: cross entropy, or of each label by itself where there is a row."""
    if targets.dim() == 1:
        return functional.cross_entropy(  # Eq. (17)
            logits, targets, label_smoothing=smoothing, reduction="none"
        )
    truth = targets * (1 - smoothing) + smoothing / 2
    return functional.binary_cross_entropy_with_logits(logits, truth, reduction="none").mean(1)


def _rate(state: TrainingState, config: TrainConfig, part_of_epoch: float) -> float:
    """Give the learning rate; each rollback has halved it."""
    progress = (len(state.history) + part_of_epoch) / config.epochs
    return learning_rate(progress, config) * 0.5**state.rollbacks


def _record(state: TrainingState, prepared: Prepared, steps: Sequence[StepDone]) -> EpochDone:
    """Sum up an epoch and look at the held-out part."""
    texts, words = sum(step.texts for step in steps), sum(step.words for step in steps)
    held_out = None
    if prepared.held_out is not None:
        held_out = evaluate(state.network, prepared.held_out, prepared)
    return EpochDone(
        epoch=steps[-1].epoch,
        loss=sum(step.loss * step.texts for step in steps) / texts,
        accuracy=sum(step.correct for step in steps) / texts,
        mean_depth=sum(step.depth_sum for step in steps) / max(1, words),
        words=words,
        learning_rate=_rate(state, prepared.recipe.train, 1.0),
        held_out=held_out.to_dict() if held_out else None,
        best=held_out is None or _better(held_out, state),
    )


def evaluate(network: Network, data: LabelledTexts, prepared: Prepared) -> Metrics:
    """Score a network on encoded examples."""
    budget = prepared.recipe.train.batch_words
    answers = classify(network.eval(), data.texts, batch_words=budget)
    return score(answers, data.targets, prepared.labels)


def _better(held_out: Metrics, state: TrainingState) -> bool:
    """Compare by accuracy (of several labels, micro F1), and by loss where that is equal."""
    if not state.best_epoch:
        return True
    best = state.history[state.best_epoch - 1].held_out
    assert best is not None, "the held-out part does not come and go"
    return (held_out.micro_f1, -held_out.loss) > (best["micro_f1"], -best["loss"])
