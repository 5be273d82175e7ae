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
    """Hold the accuracies (%) of one column of Table 2, or one row of Table 3."""

    table: int
    place: int
    """Number of the column or row in its table, from 1."""
    name: str
    """As among our models, where it is one of them."""
    title: str
    source: str
    accuracy: Mapping[str, float]
    average: float | None = None
    reimplemented: bool = False
    """Whether the authors trained it themselves (†), or quote the figure."""


@dataclass(frozen=True, kw_only=True)
class Variant:
    """Hold one row of Table 4: accuracy (%) and speed (texts per second) on IMDB."""

    row: int
    title: str
    recipe: str
    accuracy: float
    accuracy_deviation: float
    speed: float
    speed_deviation: float
    accuracy_change: float = 0.0
    speed_change: float = 0.0


@dataclass(frozen=True)
class Published:
    """Hold all that the paper's tables say."""

    systems: tuple[System, ...]
    ablation: tuple[Variant, ...]

    def accuracies(self, corpus: str) -> dict[str, float]:
        """Give the accuracy (%) of each system that the paper has a figure of."""
        return {s.name: s.accuracy[corpus] for s in self.systems if corpus in s.accuracy}

    def averages(self) -> dict[str, float]:
        """Give the average accuracy (%) of each system over the corpora of Amazon-16."""
        return {s.name: s.average for s in self.systems if s.table == 2 and s.average}


@cache
def published() -> Published:
    """Read the figures."""
    content = tomllib.loads(files(__package__).joinpath("published.toml").read_text("utf-8"))
    return Published(
        systems=(*_columns(content["table2"]), *_rows(content["table3"])),
        ablation=tuple(Variant(**row) for row in content["table4"]),
    )


def _columns(table: Mapping[str, Any]) -> Iterator[System]:
    """Read Table 2, whose systems stand beside each other."""
    for column, system in enumerate(table["systems"]):
        accuracy = {corpus: row[column] for corpus, row in table["accuracy"].items()}
        average = table["average"][column]
        yield System(table=2, place=column + 1, accuracy=accuracy, average=average, **system)


def _rows(table: list[dict[str, Any]]) -> Iterator[System]:
    """Read Table 3, whose systems stand under each other."""
    for number, system in enumerate(table, start=1):
        yield System(table=3, place=number, **system)
