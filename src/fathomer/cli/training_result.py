"""The result of a training run: the saved model, its scores, and what is printed."""

import math
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import typer

from fathomer.cli.output import messages_console, print_json, print_line, print_scores
from fathomer.errors import DataError

if TYPE_CHECKING:
    from fathomer.artifact import Artifact
    from fathomer.cli.training_data import Splits
    from fathomer.config import Recipe
    from fathomer.train.fit import Fitted

BASELINE, SHORT_BASELINE = "TF-IDF with logistic regression", "TF-IDF"


def save_and_score(
    fitted: "Fitted", splits: "Splits", out: Path, *, command: str, baseline: bool
) -> "Artifact":
    """Save the model, score it, and save the scores with it."""
    from fathomer.train.folder import CHECKPOINT

    metrics = {**fitted.artifact.metrics, **splits.source.describe(), "command": command}
    artifact = replace(fitted.artifact, metrics=metrics)
    artifact.save(out)  # first, so that nothing that follows can lose the model
    try:
        metrics |= _scores(artifact, splits, baseline=baseline)
        artifact.save(out)
    except KeyboardInterrupt:
        exit_stopped(out)
    if not fitted.interrupted:
        (out / CHECKPOINT).unlink(missing_ok=True)
    return artifact


def _scores(artifact: "Artifact", splits: "Splits", *, baseline: bool) -> dict[str, Any]:
    """Score the model on the test texts, and a baseline if requested."""
    from fathomer.predictor import Predictor

    scores: dict[str, Any] = {}
    if splits.test:
        scores["test"] = Predictor(artifact).evaluate(splits.test).to_dict()
    if baseline:
        try:
            scores["baseline"] = _baseline_scores(splits, artifact.recipe)
        except DataError as error:  # texts without words that TF-IDF could use
            messages_console().print(str(error))
    return scores


def _baseline_scores(splits: "Splits", recipe: "Recipe") -> dict[str, Any]:
    """Score TF-IDF on the same held-out and test texts as the model."""
    from fathomer.predictor import Predictor
    from fathomer.train.fit import fit

    recipe = recipe.updated({"model": {"name": "tfidf"}, "text": {"min_count": 1}})
    artifact = fit(splits.source.train, recipe, held_out=splits.held_out).artifact
    held_out = artifact.metrics["held_out"]
    scores = Predictor(artifact).evaluate(splits.test).to_dict() if splits.test else held_out
    seconds = artifact.metrics["wall_seconds"]
    return {"name": BASELINE, **scores, "held_out": held_out, "wall_seconds": seconds}


def exit_stopped(out: Path) -> NoReturn:
    """Exit after Ctrl-C with a line that says what was saved and how to continue."""
    from fathomer.train.folder import CHECKPOINT

    kept = "the model so far; the same command with --resume continues"
    if not (out / CHECKPOINT).exists():  # a model that trains in one go, without epochs
        kept = "the model; fathomer evaluate scores it"
    messages_console().print(f"Stopped: {out} holds {kept}.")
    raise typer.Exit(130)


def print_result(artifact: "Artifact", out: Path, *, matched: bool, as_json: bool) -> None:
    """Print the scores, as JSON or as a table."""
    metrics, messages = artifact.metrics, messages_console()
    if matched:
        size = artifact.recipe.model.hidden_size
        messages.print(f"hidden size {size}: {metrics['parameters']:,} trainable parameters")
    if metrics.get("calibration", True) is None:
        messages.print("not calibrated: the held-out texts have only one label")
    if as_json:
        print_json({"out": str(out), "labels": list(artifact.labels), **metrics})
        return
    print_scores(_rows(metrics))
    if metrics.get("held_out") and (ngrams := metrics.get("ngrams")):
        print_line(f"n-grams count {ngrams['share']:.0%}, chosen on the held-out texts")
    if calibration := metrics.get("calibration"):
        print_line(_calibration_line(calibration))
    print_line(f"{_kept_epoch(artifact)}the model is in {out}")
    if line := _verdict(metrics):
        print_line(line)


def _rows(metrics: dict[str, Any]) -> dict[str, Any]:
    """Return the scores to print: of the held-out and test texts, each with the baseline's."""
    baseline = metrics.get("baseline", {})
    rows = {}
    for name, of_baseline in (("held_out", baseline.get("held_out")), ("test", baseline)):
        if metrics.get(name):
            shown = name.replace("_", " ")
            rows[shown] = {**metrics[name], "seconds": metrics["wall_seconds"]}
            if of_baseline:
                seconds = baseline["wall_seconds"]
                rows[f"{shown}, {SHORT_BASELINE}"] = {**of_baseline, "seconds": seconds}
    return rows


def _kept_epoch(artifact: "Artifact") -> str:
    """Return which epoch was kept, for models that have several."""
    from fathomer.train.automatic import is_direct

    if is_direct(artifact.recipe.model.name):
        return ""
    config, epochs = artifact.recipe.train, artifact.metrics["epochs"]
    best = "best " if config.keep == "best" else ""
    planned = f" ({config.epochs} were planned)" if epochs < config.epochs else ""
    return f"{best}epoch {artifact.metrics['best_epoch']} of {epochs}{planned}; "


def _verdict(metrics: dict[str, Any]) -> str | None:
    """Return a line that says so if TF-IDF is better by more than one standard error."""
    if "baseline" not in metrics:
        return None
    where = "test" if metrics.get("test") else "held_out"
    ours, theirs = metrics[where]["accuracy"], metrics["baseline"]["accuracy"]
    texts = metrics[where]["examples"]
    mean = (ours + theirs) / 2  # 1 only if both are
    if theirs - ours <= math.sqrt(mean * (1 - mean) / texts):
        return None
    return (
        f"TF-IDF is better on these {texts:,} texts: {theirs:.1%} against {ours:.1%}; "
        "to use it, train with --model tfidf"
    )


def _calibration_line(found: dict[str, Any]) -> str:
    if found["reason"]:
        return f"not calibrated: {found['reason']}"
    return (
        f"calibrated: loss {found['loss_before']:.4f} -> {found['loss_after']:.4f}, error "
        f"{found['error_before']:.3f} -> {found['error_after']:.3f} "
        f"(temperature {found['temperature']:.2f})"
    )
