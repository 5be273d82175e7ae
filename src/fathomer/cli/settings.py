"""The settings of a training: a recipe or what follows from the data, changed by the options."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fathomer.cli.output import messages_console
from fathomer.config import Recipe

if TYPE_CHECKING:
    from fathomer.cli.training_data import Splits


class Changes:
    """The settings that the command line changes, whatever the recipe."""

    def __init__(
        self,
        assignments: Sequence[str],
        *,
        minutes: float | None = None,
        seed: int | None = None,
        model: str | None = None,
        calibrate: bool | None = None,
    ) -> None:
        self.assignments = assignments
        train = {"minutes": minutes, "seed": seed, "calibrate": calibrate}
        self.options: dict[str, dict[str, Any]] = {
            "model": {"name": model} if model else {},
            "train": {name: value for name, value in train.items() if value is not None},
        }

    def applied(self, recipe: Recipe) -> Recipe:
        """Return a recipe with these settings, and with the learning rate of another model."""
        from fathomer.model.registry import find_model

        name = recipe.with_settings(self.assignments).updated(self.options).model.name
        found = find_model(name)
        if name != recipe.model.name:
            recipe = found.adapted(recipe)
        return recipe.with_settings(self.assignments).updated(self.options)


def automatic_settings(
    splits: "Splits", changes: Changes, *, checkpoint: Path | None = None
) -> Recipe:
    """Return the settings that follow from the training texts, and print them.

    A resumed training keeps the number of epochs in its checkpoint: with ``--minutes`` it depends on
    how fast the machine was at that moment.
    """
    from fathomer.model.interface import DirectNetwork
    from fathomer.model.registry import find_model
    from fathomer.train.automatic import DataSize, automatic_recipe, describe
    from fathomer.train.checkpoint import load_checkpoint

    train, plain = splits.source.train, changes.applied(Recipe())
    size = DataSize.of(train.texts, len(train), max_words=plain.text.max_words)
    recipe = automatic_recipe(size, minutes=plain.train.minutes)
    if checkpoint:
        before = load_checkpoint(checkpoint)[1]["settings"]
        epochs = before.get("train.epochs", recipe.train.epochs)
        recipe = recipe.updated({"train": {"epochs": epochs}})
    settings = changes.applied(recipe)
    if not issubclass(find_model(settings.model.name).network, DirectNetwork):
        messages_console().print(describe(settings, size))
    return settings
