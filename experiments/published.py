"""The figures of the paper's Tables 2 to 4, read from ``published.toml``.

>>> published().accuracies("trec")["fathomer"]
96.4
"""

import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, kw_only=True)
class System:
    """A system of Table 2 (one column) or Table 3 (one row) with its accuracies (%)."""

    table: int
    place: int
    """Column or row of the system in its table, from 1."""
    name: str
    """Name of the model, where it is implemented here."""
    title: str
    source: str
    accuracy: Mapping[str, float]
    average: float | None = None
    reimplemented: bool = False
    """Whether the authors trained it themselves (†) or quote its figures."""


@dataclass(frozen=True, kw_only=True)
class AblationRow:
    """A row of Table 4: accuracy (%) and speed (texts per second) on IMDB."""

    row: int
    title: str
    variant: str | None = None
    """Name of the variant in ``recipes/table4.toml``; None for the full model."""
    accuracy: float
    accuracy_deviation: float
    speed: float
    speed_deviation: float
    accuracy_change: float = 0.0
    speed_change: float = 0.0


@dataclass(frozen=True)
class Published:
    """All figures of the paper's tables."""

    systems: tuple[System, ...]
    ablation: tuple[AblationRow, ...]

    def accuracies(self, corpus: str) -> dict[str, float]:
        """Return the accuracy (%) of each system for which the paper has a figure."""
        return {s.name: s.accuracy[corpus] for s in self.systems if corpus in s.accuracy}

    def averages(self) -> dict[str, float]:
        """Return the average accuracy (%) of each system over the corpora of Amazon-16."""
        return {s.name: s.average for s in self.systems if s.table == 2 and s.average}


@cache
def published() -> Published:
    """Read the figures from their file."""
    content = tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))
    return Published(
        systems=(*_columns(content["table2"]), *_rows(content["table3"])),
        ablation=tuple(AblationRow(**row) for row in content["table4"]),
    )


def _columns(table: Mapping[str, Any]) -> Iterator[System]:
    """Read Table 2, whose columns are systems."""
    for column, system in enumerate(table["systems"]):
        accuracy = {corpus: row[column] for corpus, row in table["accuracy"].items()}
        average = table["average"][column]
        yield System(table=2, place=column + 1, accuracy=accuracy, average=average, **system)


def _rows(table: list[dict[str, Any]]) -> Iterator[System]:
    """Read Table 3, whose rows are systems."""
    for number, system in enumerate(table, start=1):
        yield System(table=3, place=number, **system)
