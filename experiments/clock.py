"""The time that a run takes: of its training, also one that is stopped, and of prediction."""

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fathomer.data.labelled import LabelledTexts
from fathomer.files import write_atomically
from fathomer.model.inference import Classified, classify
from fathomer.predictor import BATCH_WORDS, Predictor
from fathomer.train.checkpoint import EpochDone
from fathomer.train.loop import Event, StepDone

PASSES, SECONDS = 5, 2.0
"""Prediction is timed in so many passes, or fewer when they take so long."""


class Clock:
    """Measure a training, also one that is stopped and goes on."""

    def __init__(self, path: Path) -> None:
        """Go on where a stopped training's clock stood after its last epoch."""
        known: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.path = path
        self.speeds: list[float] = known.get("speeds", [])  # words per second, of each epoch
        self._began: float = time.perf_counter() - known.get("wall", 0.0)

    def restart(self) -> None:
        """Forget a training that is not continued."""
        self.speeds, self._began = [], time.perf_counter()

    @property
    def wall(self) -> float:
        """Give the seconds from the very beginning, without those that a killed epoch took."""
        return time.perf_counter() - self._began

    @property
    def words_per_second(self) -> float:
        """Give the speed of the middle epoch: one in which the machine slept does not count."""
        return median(self.speeds)

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Let events pass by, and take their time."""
        words, seconds, before = 0, 0.0, time.perf_counter()
        for event in events:
            now = time.perf_counter()
            if isinstance(event, StepDone) or (isinstance(event, EpochDone) and not words):
                words += event.words  # of a step, or of a model that learns without steps
                seconds += now - before
            if isinstance(event, EpochDone):
                self.speeds.append(words / seconds)
                write_atomically(self.path, json.dumps({"wall": self.wall, "speeds": self.speeds}))
                words, seconds = 0, 0.0
            before = now
            yield event


def timed(
    predictor: Predictor, data: LabelledTexts, depths: NDArray[np.integer] | None = None
) -> tuple[Classified, float]:
    """Answer encoded texts; give the words per second too, the median of some passes.

    Time in which other programs held the cores does not count, so far as it can be told: a pass on
    one thread takes no longer than the processor worked on it.
    """
    seconds: list[float] = []
    while len(seconds) < PASSES and sum(seconds) < SECONDS:
        started, worked = time.perf_counter(), time.process_time()
        answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS, depths=depths)
        seconds.append(min(time.perf_counter() - started, time.process_time() - worked))
    return answers, len(data.texts.ids) / median(seconds)
