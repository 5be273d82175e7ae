"""The settings of a training run: from a recipe or from the data, changed by the options."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathomer.cli.output import messages_console
from fathomer.config import Recipe

if TYPE_CHECKING:
    from fathomer.artifact import Artifact
    from fathomer.cli.training_data import Splits

CONTINUED_EPOCHS = 3
"""Epochs when a model is trained further on new texts; more would forget more of the old ones."""

VECTOR_GAINS = "gains on samples of TREC, MR and kitchen: -0.3 to +5.0 points, 2.2 on average"
"""What the suggested word vectors gained; docs/log.md has the accuracy on each sample."""


class SettingChanges:
    """The settings that the command line changes, whatever the recipe."""

    def __init__(
        self,
        assignments: Sequence[str],
        *,
        minutes: float | None = None,
        seed: int | None = None,
        model: str | None = None,
        calibrate: bool | None = None,
        target_depth: float | None = None,
        epochs: int | None = None,
        batch_size: int | None = None,
        learning_rate: float | None = None,
    ) -> None:
        self.assignments = assignments
        train = {
            "minutes": minutes,
            "seed": seed,
            "calibrate": calibrate,
            "epochs": epochs,
            "batch_words": batch_size,
            "learning_rate": learning_rate,
            "target_depth": target_depth,
        }
        supervised = {} if target_depth is None else {"depth": "supervised"}
        self.options: dict[str, dict[str, Any]] = {
            "model": ({"name": model} if model else {}) | supervised,
            "train": {name: value for name, value in train.items() if value is not None},
        }

    def applied(self, recipe: Recipe) -> Recipe:
        """Return a recipe with these settings, and with rate and epochs of another model."""
        from fathomer.model.registry import find_model

        name = recipe.with_settings(self.assignments).updated(self.options).model.name
        found = find_model(name)
        if name != recipe.model.name:
            recipe = found.adapted(recipe)
        return recipe.with_settings(self.assignments).updated(self.options)


def automatic_settings(
    splits: "Splits",
    changes: SettingChanges,
    *,
    checkpoint: Path | None = None,
    suggest: bool = False,
) -> Recipe:
    """Return the settings that follow from the training texts, and print them.

    A resumed training keeps model, epochs and learning rate of its checkpoint: with ``--minutes``, the
    epochs depend on how fast the machine was at that moment. With ``suggest``, word vectors are suggested.
    """
    from fathomer.train.automatic import automatic_settings as follow_data
    from fathomer.train.automatic import describe, is_direct
    from fathomer.train.checkpoint import load_checkpoint

    before = load_checkpoint(checkpoint)[1]["settings"] if checkpoint else {}

    def change(recipe: Recipe) -> Recipe:
        kept = [
            f"{name}={before[name]}"
            for name in ("model.name", "train.epochs", "train.learning_rate")
            if name in before
        ]
        return changes.applied(recipe.with_settings(kept))

    settings, size = follow_data(splits.source.train, change)
    if not is_direct(settings.model.name):
        messages_console().print(describe(settings, size))
        if suggest and (lines := vectors_suggestion(size.texts)):
            messages_console().print(lines)
    return settings


def vectors_suggestion(texts: int) -> str | None:
    """Return two lines that suggest word vectors, for training sets of a size where they help."""
    from fathomer.train.automatic import suggest_vectors

    line = suggest_vectors(texts)
    return line and f"{line}\n{VECTOR_GAINS}"


def continued_recipe(start: "Artifact") -> Recipe:
    """Return the settings for training a model further on new texts: its own, with few epochs."""
    return start.recipe.updated({"train": {"epochs": CONTINUED_EPOCHS, "minutes": 0.0}})
