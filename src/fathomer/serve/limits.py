"""The limits of the service: sizes, timeouts and queue lengths."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self

from fathomer.errors import ConfigError
from fathomer.section import Section, setting


@dataclass(frozen=True, kw_only=True)
class Limits(Section):
    """Bounds on a single request and on everything the service holds at a time."""

    body_bytes: int = setting(1_048_576, "bytes in the body of a request", low=100)
    texts_per_request: int = setting(256, "texts in a request", low=1)
    characters_per_text: int = setting(20_000, "characters in a text", low=1)
    words_per_text: int = setting(4_000, "words in a text", low=1)
    words_per_request: int = setting(20_000, "words in all texts of a request", low=1)
    queue_words: int = setting(10_000, "words waiting for the model; beyond that 429", low=1)
    queue_requests: int = setting(256, "requests waiting for the model; beyond that 429", low=1)
    batch_words: int = setting(4_000, "words in a batch", low=1)
    batch_seconds: float = setting(
        0.03, "time to wait for more requests before a batch starts", low=0, high=1
    )
    pause_seconds: float = setting(
        0.001, "time without a new request after which that wait ends", low=0, high=1
    )
    body_seconds: float = setting(
        10.0, "time for a request to arrive; after that 408", low=0.01, high=3600
    )
    deadline_seconds: float = setting(
        10.0, "time to answer a request; after that 504", low=0.01, high=3600
    )
    idle_seconds: float = setting(30.0, "time a connection may stay idle", low=0.01, high=3600)
    connections: int = setting(900, "open connections; beyond that 503", low=1)

    @classmethod
    def from_assignments(cls, assignments: Iterable[str]) -> Self:
        """Parse ``name=value`` assignments.

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
    """Return the default number of threads for each copy of the model.

    A single copy leaves one core to the event loop: if the two compete for a core, the threads of
    a small model spend most of their time waiting for each other. Several workers share all cores.
    """
    cores = os.cpu_count() or 1
    return max(1, cores // workers if workers > 1 else cores - 1)
