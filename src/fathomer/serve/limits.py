"""What the service allows, in one place: sizes, times, and the room of its queue."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from fathomer.config import Section, setting
from fathomer.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class Limits(Section):
    """Bound what one request may ask for, and what all of them together may hold."""

    body_bytes: int = setting(1_048_576, "bytes of a request's body", low=100)
    texts_per_request: int = setting(256, "texts of a request", low=1)
    characters_per_text: int = setting(20_000, "characters of a text", low=1)
    words_per_text: int = setting(4_000, "words of a text", low=1)
    words_per_request: int = setting(20_000, "words of all texts of a request", low=1)
    queue_words: int = setting(10_000, "words that wait for the model; then 429", low=1)
    queue_requests: int = setting(256, "requests that wait for the model; then 429", low=1)
    batch_words: int = setting(4_000, "words that the model reads at a time", low=1)
    batch_seconds: float = setting(
        0.03, "time to wait for further requests for a batch", low=0, high=1
    )
    pause_seconds: float = setting(
        0.001, "time without a new request that ends that wait", low=0, high=1
    )
    body_seconds: float = setting(10.0, "time to send a request; then 408", low=0.01, high=3600)
    deadline_seconds: float = setting(10.0, "time to be answered; then 504", low=0.01, high=3600)
    idle_seconds: float = setting(30.0, "time that a connection may rest", low=0.01, high=3600)
    connections: int = setting(900, "connections at a time; then 503", low=1)

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> Self:
        """Read ``name=value`` assignments.

        >>> Limits.from_assignments(["queue_words=500", "deadline_seconds=2"]).deadline_seconds
        2.0
        """
        values = {}
        for assignment in assignments:
            name, _, text = assignment.partition("=")
            try:
                number = float(text)
            except ValueError:
                raise ConfigError(f"--limit {assignment}: expected name=number") from None
            values[name.strip()] = int(number) if number.is_integer() else number
        return cls.from_dict(values)


def model_threads(workers: int = 1) -> int:
    """Give the threads that each copy of the model gets unless told otherwise.

    One core is left to read requests and write answers; two busy threads of a small model and an
    event loop on two cores would wait for each other most of the time. Several workers, who do not
    wait for each other, share all cores.
    """
    cores = os.cpu_count() or 1
    return max(1, cores // workers if workers > 1 else cores - 1)
