"""The settings of a training: a recipe or what follows from the data, changed by the options."""

from collections.abc import Sequence
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
        """Return a recipe with these settings."""
        from fathomer.model.registry import find_model

        changed = recipe.with_settings(self.assignments).updated(self.options)
        find_model(changed.model.name)
        return changed


def automatic_settings(splits: "Splits", changes: Changes) -> Recipe:
    """Return the settings that follow from the training texts, and print them."""
    from fathomer.model.interface import DirectNetwork
    from fathomer.model.registry import find_model
    from fathomer.train.automatic import DataSize, automatic_recipe, describe

    train, plain = splits.source.train, changes.applied(Recipe())
    texts = (example.text for example in train)
    size = DataSize.of(texts, len(train), max_words=plain.text.max_words)
    settings = changes.applied(automatic_recipe(size, minutes=plain.train.minutes))
    if not issubclass(find_model(settings.model.name).network, DirectNetwork):
        messages_console().print(describe(settings, size))
    return settings
