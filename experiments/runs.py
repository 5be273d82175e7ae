"""A run: one training and what came of it, as one small JSON file in ``results/runs``."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.config import Recipe
from fathomer.errors import DataError, MissingFileError
from fathomer.files import write_atomically

RUNS = "runs"


@dataclass(frozen=True, kw_only=True)
class Run:
    """Hold what was run, on what, and how well and how fast it went."""

    name: str
    corpus: str
    model: str
    variant: str | None
    seed: int
    fold: int | None
    folds: int | None
    """Parts of the cross validation."""
    settings: Mapping[str, Any]
    """What differs from the defaults, named ``section.name``."""
    match_parameters: bool
    vectors: str | None
    notes: tuple[str, ...]
    """What must be said wherever the figures are shown."""

    accuracy: float
    macro_f1: float
    loss: float
    examples: int
    correct: str
    """Whether each test text was answered rightly: bits in hexadecimal digits."""
    accuracy_unseen: float | None
    """On the test texts that do not stand in the training part too."""
    examples_unseen: int
    held_out_accuracy: float | None

    mean_depth: float
    """As selected at prediction on the test texts; 0 in a model that knows no depth."""
    mean_depth_sampled: float
    """In the epoch that was kept."""
    depths: tuple[int, ...]
    """Words of the test texts that were read to depth 1, 2, ..."""
    forced: tuple[Mapping[str, float], ...]
    """Depth, accuracy and words per second when every word is read to the same depth."""
    samples: tuple[Mapping[str, Any], ...]
    """Number, label and depths of the words of one test text of each of two labels."""

    parameters: int
    hidden_size: int
    epochs: int
    best_epoch: int
    curve: tuple[Mapping[str, float | None], ...]
    train_words_per_second: float
    predict_words_per_second: float
    words: int
    """Of the test texts."""

    command: str
    commit: str | None
    versions: Mapping[str, str]
    checksums: Mapping[str, str]
    """Of the training texts, the test texts and the vectors."""
    wall_seconds: float
    machine: Mapping[str, Any]

    @property
    def recipe(self) -> Recipe:
        """Give all settings."""
        return Recipe().with_values(self.settings)

    @property
    def answers(self) -> NDArray[np.bool_]:
        """Say of each test text whether it was answered rightly."""
        return unpack_bits(self.correct, self.examples)

    @property
    def full_depth_speed(self) -> float | None:
        """Give the words per second with every word at the largest depth, if that was measured."""
        largest = self.recipe.model.max_depth
        found = (row["words_per_second"] for row in self.forced if row["depth"] == largest)
        return next(found, None)

    def save(self, results: Path) -> Path:
        """Write the run into the folder of results."""
        path = results / RUNS / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (f" {json.dumps(k)}: {json.dumps(v)}" for k, v in asdict(self).items())
        write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")
        return path


def read_run(path: Path) -> Run:
    """Read a run back."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        known = {item.name for item in fields(Run)}
        values = {key: _frozen(value) for key, value in content.items() if key in known}
        return Run(**values)
    except FileNotFoundError:
        raise MissingFileError(f"{path}: no such run") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not a run of an experiment ({error})") from None


def read_runs(results: Path) -> list[Run]:
    """Read all runs of a folder of results, by name."""
    return [read_run(path) for path in sorted((results / RUNS).glob("*.json"))]


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def pack_bits(right: NDArray[np.bool_]) -> str:
    """Write truths as hexadecimal digits.

    >>> pack_bits(np.array([True, False, True, True, False]))
    'b0'
    """
    return np.packbits(right).tobytes().hex()


def unpack_bits(digits: str, count: int) -> NDArray[np.bool_]:
    """Read the truths of :func:`pack_bits`.

    >>> unpack_bits("b0", 5).tolist()
    [True, False, True, True, False]
    """
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=count)
    return bits.astype(bool)
