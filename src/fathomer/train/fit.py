"""From labelled texts to a trained model: the path shared by the command line and the estimator."""

import time
from collections.abc import Callable, Iterable
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import torch

from fathomer.artifact import HISTORY, Artifact, json_lines, versions
from fathomer.config import Recipe
from fathomer.data.examples import Examples
from fathomer.errors import ConfigError
from fathomer.evaluate.budget import DepthBudgets, calibrate_depth, measure_curve
from fathomer.evaluate.calibrate import Calibration, calibrate, tune_share
from fathomer.files import write_atomically
from fathomer.model.interface import DirectNetwork, find_device, trainable_parameters
from fathomer.model.model import DepthAdaptiveNetwork
from fathomer.model.ngrams import NgramRegression
from fathomer.model.registry import find_model
from fathomer.text.sources import Sources
from fathomer.train.checkpoint import EpochDone, TrainingState
from fathomer.train.depth_targets import with_depth_targets
from fathomer.train.folder import CHECKPOINT, created
from fathomer.train.follow import send_run
from fathomer.train.loop import Event, score_network, train
from fathomer.train.prepare import Prepared, prepare, run_settings
from fathomer.train.processes import ALONE, Processes, ProcessGroup

Watch = Callable[[Iterable[Event]], Iterable[Event]]
"""A function that passes events on, and may show or log them on the way."""


class Fitted(NamedTuple):
    """A trained model, and whether Ctrl-C ended its training early."""

    artifact: Artifact
    interrupted: bool


def fit(
    examples: Examples,
    recipe: Recipe,
    *,
    held_out: Examples | None = None,
    vectors: Sources = None,
    start: Artifact | None = None,
    match_parameters: bool = False,
    folder: Path | None = None,
    resume: bool = False,
    device: str = "cpu",
    processes: Processes = ALONE,
    watch: Watch = iter,
) -> Fitted:
    """Train a model, with checkpoints in ``folder``; ``watch`` sees every training event.

    With ``start``, training continues from that model's weights, vocabulary and labels. Ctrl-C ends
    training early and keeps the model so far; before the end of the first epoch there is
    nothing to keep, and KeyboardInterrupt is raised.
    """
    began, name = time.perf_counter(), recipe.model.name
    model = find_model(name).network
    if processes.count > 1 and model.sizes_are_free:
        in_one_go = issubclass(model, DirectNetwork)
        reason = "is fitted in one go" if in_one_go else "takes its sizes from the data"
        raise ConfigError(f"the model {name} {reason}; train it on one process")
    prepared = prepare(
        examples,
        recipe,
        held_out=held_out,
        vectors=vectors,
        match_parameters=match_parameters,
        start=start,
    )
    prepared.network.to(find_device(processes.device(device)))
    prepared = with_depth_targets(prepared)
    settings = run_settings(prepared)
    checkpoint = folder / CHECKPOINT if folder else None
    if resume and checkpoint:
        state = TrainingState.resume(prepared.network, checkpoint, settings)
    else:
        state = TrainingState.start(prepared.network)
    state.began = began  # preparation counts as training time
    if isinstance(processes, ProcessGroup):
        processes.connect()
        send_run(processes, prepared, state)
    found = [prepared.vectors_found] if prepared.vectors_found else []
    run = train(state, prepared, checkpoint=checkpoint, settings=settings, processes=processes)
    events = chain(found, run)
    with created(folder):
        interrupted = _run(watch(events), state, folder)
    metrics = {**_metrics(state, settings), "processes": processes.count}
    budgets = _calibrated_depth(prepared, metrics)
    if prepared.vectors_found:
        metrics["vectors"] = prepared.vectors_found.to_dict()
    if prepared.network.ngrams is not None:
        metrics |= _tuned_ngrams(prepared, prepared.network.ngrams)
    return Fitted(_calibrated_artifact(prepared, metrics, budgets, start), interrupted)


def _run(events: Iterable[Event], state: TrainingState, folder: Path | None) -> bool:
    """Train, logging every epoch to ``folder``; return whether Ctrl-C ended training early."""
    try:
        for event in events:
            if folder and isinstance(event, EpochDone):
                records = [epoch.to_dict() for epoch in state.history]
                write_atomically(folder / HISTORY, json_lines(records))
    except KeyboardInterrupt:
        if not state.best_epoch:
            raise
        interrupted = True
    else:
        interrupted = False
    state.restore_best()  # needed here too: a watcher may have stopped the loop early
    return interrupted


def _metrics(state: TrainingState, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the content of ``metrics.json``."""
    best = state.history[state.best_epoch - 1]
    return {
        "best_epoch": state.best_epoch,
        "epochs": len(state.history),
        "parameters": trainable_parameters(state.network),
        "held_out": best.held_out,
        "mean_depth_sampled": best.mean_depth,
        "rollbacks": state.rollbacks,
        "history": [epoch.to_dict() for epoch in state.history],
        "data": settings["data"],
        "seed": settings["train.seed"],
        "versions": versions(),
        "threads": torch.get_num_threads(),
        "wall_seconds": round(state.seconds, 1),
    }


def _calibrated_depth(prepared: Prepared, metrics: dict[str, Any]) -> DepthBudgets | None:
    """Move the average depth to its target, on the held-out part if there is one."""
    network, config, data = prepared.network, prepared.recipe.train, prepared.held_out
    if not isinstance(network, DepthAdaptiveNetwork) or network.config.depth != "supervised":
        return None
    texts = (data or prepared.train).texts
    budgets = calibrate_depth(
        network, texts, target=config.target_depth, batch_words=config.batch_words
    )
    if data:
        metrics["held_out"] = score_network(network, data, prepared).to_dict()
    return budgets


def _calibrated_artifact(
    prepared: Prepared,
    metrics: dict[str, Any],
    budgets: DepthBudgets | None,
    start: Artifact | None,
) -> Artifact:
    """Calibrate the model; one that continues another keeps its calibration if there is none."""
    temperature, thresholds = (start.temperature, start.thresholds) if start else (1.0, None)
    calibration = _calibrate(prepared, metrics, otherwise=temperature)
    if calibration:
        temperature, thresholds = calibration.temperature, calibration.thresholds
    if budgets and prepared.held_out and isinstance(prepared.network, DepthAdaptiveNetwork):
        curve = measure_curve(
            prepared.network,
            prepared.held_out,
            prepared.labels,
            budgets,
            batch_words=prepared.recipe.train.batch_words,
            thresholds=thresholds,
        )
        metrics["depth_curve"] = [point.to_dict() for point in curve]
    return Artifact(
        recipe=prepared.recipe,
        labels=prepared.labels,
        tokenizer=prepared.tokenizer,
        network=prepared.network,
        metrics=metrics,
        temperature=temperature,
        thresholds=thresholds,
        depth_budgets=budgets,
    )


def _tuned_ngrams(prepared: Prepared, ngrams: NgramRegression) -> dict[str, Any]:
    """Choose the share of the n-grams on the held-out part; return it and the new scores."""
    metrics: dict[str, Any] = {}
    data = prepared.held_out
    if data and len(ngrams.keys):
        budget = prepared.recipe.train.batch_words
        tune_share(prepared.network, data.texts, data.targets, batch_words=budget)
        metrics["held_out"] = score_network(prepared.network, data, prepared).to_dict()
    return metrics | {"ngrams": {"share": float(ngrams.share), "count": len(ngrams.keys)}}


def _calibrate(
    prepared: Prepared, metrics: dict[str, Any], *, otherwise: float
) -> Calibration | None:
    """Calibrate on the held-out part, and add the effect to the metrics."""
    if not (prepared.recipe.train.calibrate and prepared.held_out):
        return None
    data = prepared.held_out
    calibration = calibrate(
        prepared.network,
        data.texts,
        data.targets,
        prepared.labels,
        batch_words=prepared.recipe.train.batch_words,
        otherwise=otherwise,
    )
    metrics["calibration"] = calibration and calibration.to_dict()
    if calibration:
        metrics["held_out"] = calibration.after.to_dict()
    return calibration


def unseen_labels(start: Artifact, examples: Examples) -> str | None:
    """Return a warning if new texts lack labels of the model that is trained on them."""
    found = set(examples.label_counts)
    missing = [repr(label) for label in start.labels if label not in found]
    if not missing:
        return None
    labels = f"label {missing[0]}" if len(missing) == 1 else f"labels {', '.join(missing)}"
    return f"no new text has the {labels}: the model may forget {'it' if len(missing) == 1 else 'them'}"
