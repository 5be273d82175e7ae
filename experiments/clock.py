"""Timing of a run: its training, including one that was interrupted, and its predictions."""

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

MAX_PASSES, MAX_SECONDS = 5, 2.0
"""Prediction is timed until one of these is reached."""


class StoredClock:
    """Wall time and speed of a training run; a file keeps them across interruptions."""

    def __init__(self, path: Path) -> None:
        """Continue from the last completed epoch of an interrupted training, if there is one."""
        saved: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.path = path
        self.speeds: list[float] = saved.get("speeds", [])  # words per second, one per epoch
        self._started: float = time.perf_counter() - saved.get("wall", 0.0)

    def restart(self) -> None:
        """Discard the times of a run that is not continued."""
        self.speeds, self._started = [], time.perf_counter()

    @property
    def wall(self) -> float:
        """Seconds of training so far, without epochs that were interrupted."""
        return time.perf_counter() - self._started

    @property
    def words_per_second(self) -> float:
        """Median speed of the epochs, so that one in which the machine was suspended is ignored."""
        return median(self.speeds)

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass training events through and time them."""
        words, seconds, before = 0, 0.0, time.perf_counter()
        for event in events:
            now = time.perf_counter()
            # A model that is not trained in steps only reports the words of its single epoch.
            if isinstance(event, StepDone) or (isinstance(event, EpochDone) and not words):
                words += event.words
                seconds += now - before
            if isinstance(event, EpochDone):
                self.speeds.append(words / seconds)
                write_atomically(self.path, json.dumps({"wall": self.wall, "speeds": self.speeds}))
                words, seconds = 0, 0.0
            before = now
            yield event


def classify_timed(
    predictor: Predictor, data: LabelledTexts, depths: NDArray[np.integer] | None = None
) -> tuple[Classified, float]:
    """Classify encoded texts; return the answers and the median words per second of some passes.

    On one thread, time in which other programs held the core does not count: a pass takes at most
    the processor time spent on it.
    """
    seconds: list[float] = []
    while len(seconds) < MAX_PASSES and sum(seconds) < MAX_SECONDS:
        wall, processor = time.perf_counter(), time.process_time()
        answers = classify(predictor.network, data.texts, batch_words=BATCH_WORDS, depths=depths)
        seconds.append(min(time.perf_counter() - wall, time.process_time() - processor))
    return answers, len(data.texts.ids) / median(seconds)
