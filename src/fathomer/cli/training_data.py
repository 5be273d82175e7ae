"""The training, held-out and test texts of a training run."""

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from fathomer.cli.output import messages_console

if TYPE_CHECKING:
    from fathomer.artifact import Artifact
    from fathomer.config import Recipe
    from fathomer.data.examples import Examples
    from fathomer.data.opening import Dataset


class Splits(NamedTuple):
    """The source of the training texts, and the held-out and test texts."""

    source: "Dataset"
    held_out: "Examples | None"
    """None: a part of the training texts is held out."""
    test: "Examples | None"


def read_splits(
    source: "Dataset", held_out: str | None, test: str | None, read: Callable[[str], "Dataset"]
) -> Splits:
    """Read the files named by ``--held-out`` and ``--test``; a corpus can have its own test set."""
    unseen = read(held_out).train if held_out else None
    tested = read(test).evaluation_set if test else source.test
    return Splits(
        source,
        held_out=_scored(unseen, source, held_out or ""),
        test=_scored(tested, source, test or source.name),
    )


def _scored(examples: "Examples | None", source: "Dataset", name: str) -> "Examples | None":
    """Leave out texts with labels that the model cannot learn, and say so."""
    from fathomer.data.labelled import known_only

    if examples is None:
        return None
    known = known_only(examples, source.train.label_counts)
    if len(known) < len(examples):
        messages_console().print(f"{name}: {known.summary()}")
    return known


def has_baseline(splits: Splits, recipe: "Recipe") -> bool:
    """Whether TF-IDF can be trained beside the model, and scored on the same texts."""
    from fathomer.train.automatic import MANY_TEXTS

    if recipe.model.name == "tfidf":
        return False
    if len(splits.source.train) > MANY_TEXTS:
        messages_console().print(f"TF-IDF is left out: more than {MANY_TEXTS:,} texts")
        return False
    if splits.test or splits.held_out:
        return True
    most = max(Counter(splits.source.train.strata).values(), default=0)
    return recipe.train.held_out > 0 and most > 1  # the only text of a label is never held out


def announce(source: "Dataset", vectors: Sequence[Path]) -> None:
    """Print what was read, and what is read next."""
    messages = messages_console()
    for line in (f"{source.name}: {source.train.summary()}", *source.notes):
        messages.print(line)
    if vectors:
        messages.print(f"reading {', '.join(path.name for path in vectors)} ...")


def warn_of_forgetting(start: "Artifact", examples: "Examples") -> None:
    """Print what a model that is trained on new texts only may lose."""
    from fathomer.train.fit import unseen_labels

    advice = "what the new texts do not show may be forgotten: evaluate the model on old ones, too"
    messages_console().print(f"warning: {unseen_labels(start, examples) or advice}")
