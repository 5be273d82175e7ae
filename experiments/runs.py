"""The record of one run: training and results, in one small JSON file in ``results/runs``."""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from fathomer.config import Recipe
from fathomer.errors import DataError, MissingFileError
from fathomer.files import write_atomically

RUNS = "runs"
Record = TypeVar("Record")


@dataclass(frozen=True, kw_only=True)
class Run:
    """What was trained, on which data, and how accurate and fast it was."""

    name: str
    corpus: str
    model: str
    variant: str | None
    seed: int
    fold: int | None
    folds: int | None
    """Number of folds of the cross validation."""
    settings: Mapping[str, Any]
    """Settings that differ from the defaults, named ``section.name``."""
    match_parameters: bool
    vectors: str | None
    notes: tuple[str, ...]
    """Remarks on the data to print next to the figures."""

    accuracy: float
    macro_f1: float
    loss: float
    examples: int
    correct: str
    """Whether each test text was classified correctly: bits as hexadecimal digits."""
    accuracy_unseen: float | None
    """Accuracy on the test texts that do not also occur in the training set."""
    examples_unseen: int
    held_out_accuracy: float | None
    train_accuracy: float | None = None
    """On some of the training texts, after training and without dropout."""

    mean_depth: float
    """As selected at prediction on the test texts; 0 for a model without depths."""
    mean_depth_sampled: float
    """As sampled in training, in the epoch that was kept."""
    depths: tuple[int, ...]
    """Number of words of the test texts at depth 1, 2, ..."""
    forced: tuple[Mapping[str, float], ...]
    """Depth, accuracy and words per second with every word forced to the same depth."""
    samples: tuple[Mapping[str, Any], ...]
    """Number, label and word depths of one test text for each of two labels."""

    parameters: int
    hidden_size: int
    epochs: int
    best_epoch: int
    curve: tuple[Mapping[str, float | None], ...]
    train_words_per_second: float
    predict_words_per_second: float
    words: int
    """Number of words in the test texts."""

    command: str
    commit: str | None
    versions: Mapping[str, str]
    checksums: Mapping[str, str]
    """Of the training texts, the test texts and the vectors."""
    vectors_made: Mapping[str, Any] | None = None
    """How the vectors were made, if a command of Fathomer made them."""
    wall_seconds: float
    machine: Mapping[str, Any]

    @property
    def recipe(self) -> Recipe:
        """All settings of the run."""
        return Recipe().with_values(self.settings)

    @property
    def is_correct(self) -> NDArray[np.bool_]:
        """Whether each test text was classified correctly."""
        return unpack_bits(self.correct, self.examples)

    @property
    def full_depth_speed(self) -> float | None:
        """Words per second with every word at the maximum depth, if that was measured."""
        max_depth = self.recipe.model.max_depth
        speeds = (row["words_per_second"] for row in self.forced if row["depth"] == max_depth)
        return next(speeds, None)

    def save(self, results: Path) -> Path:
        """Write the run to a folder of results and return the path of its file."""
        path = results / RUNS / f"{self.name}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = (f" {json.dumps(k)}: {json.dumps(v)}" for k, v in asdict(self).items())
        write_atomically(path, "{\n" + ",\n".join(lines) + "\n}\n")
        return path


def read_run(path: Path) -> Run:
    """Read a run from its file."""
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
    """Read all runs in a folder of results, sorted by name."""
    return [read_run(path) for path in sorted((results / RUNS).glob("*.json"))]


def read_lines(path: Path, parse: Callable[[str], Record]) -> list[Record]:
    """Read a file with a result per line; there are none if it does not exist."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            found.append(parse(line))
        except (ValueError, TypeError, KeyError):
            raise DataError(f"{path}, line {number}: not a result of this command") from None
    return found


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def pack_bits(bits: NDArray[np.bool_]) -> str:
    """Return an array of booleans as hexadecimal digits.

    >>> pack_bits(np.array([True, False, True, True, False]))
    'b0'
    """
    return np.packbits(bits).tobytes().hex()


def unpack_bits(digits: str, count: int) -> NDArray[np.bool_]:
    """Return the first ``count`` booleans written by :func:`pack_bits`.

    >>> unpack_bits("b0", 5).tolist()
    [True, False, True, True, False]
    """
    bits = np.unpackbits(np.frombuffer(bytes.fromhex(digits), dtype=np.uint8), count=count)
    return bits.astype(bool)
