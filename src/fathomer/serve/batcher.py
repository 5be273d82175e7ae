"""Micro-batching: requests of all connections meet in one queue, and one thread owns the model.

The thread takes as many waiting texts as fit a budget of words, predicts them together and answers.
A long request is read in several batches; one that was dropped meanwhile costs nothing any more.
With several copies of the model each has its thread, and those at rest share what waits.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from fathomer.predictor import Prediction
from fathomer.serve.limits import Limits
from fathomer.text.tokenizer import Words

logger = logging.getLogger(__name__)

_ROUND = 1.0
"""Seconds after which a thread without work looks whether its copy of the model still lives."""


class QueueFullError(Exception):
    """Report that too much waits for the model; the argument names the limit."""


class Answering(Protocol):
    """Answer texts that are split already, as :class:`fathomer.predictor.Predictor` does."""

    def predict_words(
        self, texts: list[str], words: list[Words], *, max_depth: int | None = None
    ) -> list[Prediction]:
        """Give one answer per text, in order."""
        ...


@runtime_checkable
class Mortal(Protocol):
    """Answer with something that can die, as a process can."""

    @property
    def able(self) -> bool:
        """Say whether it lives."""
        ...

    def revive(self) -> None:
        """Come back only when it lives, or when the service ends."""
        ...


@dataclass(eq=False)
class Pending:
    """Hold a request that waits: its texts, how many of them were taken, the answers so far."""

    texts: list[str]
    words: list[Words]
    max_depth: int | None
    answer: "asyncio.Future[list[Prediction]]"
    costs: list[int] = field(init=False)
    taken: int = 0
    predictions: dict[int, Prediction] = field(default_factory=dict)
    """By the number of the text: parts may be answered in any order."""
    dropped: bool = False

    def __post_init__(self) -> None:
        # An empty text counts as a word: a million of them is no free batch.
        self.costs = [max(1, len(words.ids)) for words in self.words]


class Part(NamedTuple):
    """Name the texts of a request that are in a batch."""

    pending: Pending
    start: int
    end: int


class Batcher:
    """Own each copy of the model in one thread, and answer what is submitted."""

    def __init__(
        self,
        predictors: Sequence[Answering],
        limits: Limits,
        *,
        observe: Callable[[list[Prediction]], None] = lambda _: None,
    ) -> None:
        self._predictors = predictors
        self._limits = limits
        self._observe = observe
        self._queue: deque[Pending] = deque()
        self._queued_words = 0
        self._changed = threading.Condition()
        self._closing = True
        self._threads: list[threading.Thread] = []
        self._resting = 0
        """Threads that are not at work."""

    # What the event loop calls

    def start(self) -> None:
        """Start the threads; after an end, new ones."""
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, args=[each], name="fathomer-model", daemon=True)
            for each in self._predictors
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Take no more, answer what is queued, and end the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        end = time.monotonic() + self._limits.deadline_seconds
        for thread in self._threads:  # whoever is not done by then has nobody waiting for it
            thread.join(max(0.1, end - time.monotonic()))

    @property
    def ready(self) -> bool:
        """Tell whether requests are taken, and somebody can answer them."""
        alive = not self._closing and all(thread.is_alive() for thread in self._threads)
        return alive and any(not isinstance(p, Mortal) or p.able for p in self._predictors)

    def check_room(self) -> None:
        """Raise an error if nothing more may wait."""
        for name, waiting in (
            ("queue_words", self._queued_words),
            ("queue_requests", len(self._queue)),
        ):
            if waiting >= getattr(self._limits, name) or self._closing:
                raise QueueFullError(name)

    @property
    def queued_words(self) -> int:
        """Count the words that wait."""
        return self._queued_words

    @property
    def queued_requests(self) -> int:
        """Count the requests that wait."""
        return len(self._queue)

    def submit(self, texts: list[str], words: list[Words], *, max_depth: int | None) -> Pending:
        """Queue a request; its ``answer`` is a future of the running event loop."""
        pending = Pending(texts, words, max_depth, asyncio.get_running_loop().create_future())
        if not texts:
            pending.answer.set_result([])
            return pending
        with self._changed:
            self.check_room()
            self._queue.append(pending)
            self._queued_words += sum(pending.costs)
            # Waking a thread for each request would cost it more than it gains.
            if len(self._queue) == 1 or self._queued_words >= self._limits.batch_words:
                self._changed.notify()
        return pending

    def drop(self, pending: Pending) -> None:
        """Forget a request: what the model has not begun to read of it will not be read."""
        with self._changed:
            pending.dropped = True
            if pending in self._queue:
                self._queue.remove(pending)
                self._queued_words -= sum(pending.costs[pending.taken :])

    # What the threads do

    def _work(self, predictor: Answering) -> None:
        while True:
            if isinstance(predictor, Mortal):
                predictor.revive()  # meanwhile it takes nothing: others may be able to answer
            batch = self._take()
            if batch is None:
                return
            groups: dict[int | None, list[Part]] = {}
            for part in batch:
                groups.setdefault(part.pending.max_depth, []).append(part)
            for max_depth, parts in groups.items():
                if wanted := [part for part in parts if not part.pending.dropped]:
                    self._answer(predictor, wanted, max_depth)

    def _take(self) -> list[Part] | None:
        """Wait for requests, then a little for company; give None when there will be no more.

        If nobody has come for a while, the batch is empty.
        """
        with self._changed:
            self._resting += 1
            try:
                if not self._changed.wait_for(lambda: self._queue or self._closing, _ROUND):
                    return []
                if self._closing and not self._queue:
                    return None
                self._wait_for_company()
                return self._fill()
            finally:
                self._resting -= 1
                if self._queue:
                    self._changed.notify()

    def _wait_for_company(self) -> None:
        """Wait while requests keep coming, until a batch is full or the time is over."""
        end = time.monotonic() + self._limits.batch_seconds
        seen = -1
        while seen != len(self._queue) and time.monotonic() < end:
            if self._queued_words >= self._limits.batch_words or self._closing:
                return
            seen = len(self._queue)
            self._changed.wait(min(self._limits.pause_seconds, end - time.monotonic()))

    def _fill(self) -> list[Part]:
        """Take texts in the order of their coming, and leave others at rest their share.

        A text above the budget of words goes alone.
        """
        batch: list[Part] = []
        share = -(-self._queued_words // self._resting)
        budget = room = min(self._limits.batch_words, share)
        while self._queue:
            pending = self._queue[0]
            start = pending.taken
            for cost in pending.costs[start:]:
                if cost > room and room < budget:
                    break
                room -= cost
                pending.taken += 1
            if pending.taken > start:
                batch.append(Part(pending, start, pending.taken))
            if pending.taken < len(pending.texts):
                break
            self._queue.popleft()
        self._queued_words -= budget - room
        return batch

    def _answer(self, predictor: Answering, parts: list[Part], max_depth: int | None) -> None:
        texts = [text for part in parts for text in part.pending.texts[part.start : part.end]]
        words = [text for part in parts for text in part.pending.words[part.start : part.end]]
        try:
            predictions = predictor.predict_words(texts, words, max_depth=max_depth)
            self._observe(predictions)
        except Exception as error:
            # Whatever it was: these requests hear of it, and the thread lives on for the others.
            logger.exception("a batch of %d texts could not be answered", len(texts))
            for part in parts:
                self.drop(part.pending)
            _deliver([part.pending for part in parts], error)
        else:
            _deliver(self._completed(parts, predictions))

    def _completed(self, parts: list[Part], predictions: list[Prediction]) -> list[Pending]:
        """Give each request its answers; name those that have all of theirs now."""
        found = iter(predictions)
        with self._changed:
            for pending, start, end in parts:
                pending.predictions.update((number, next(found)) for number in range(start, end))
            return [p for p, *_ in parts if len(p.predictions) == len(p.texts)]


def _deliver(requests: list[Pending], error: Exception | None = None) -> None:
    """Hand over answers; the event loop is woken once for all of them."""
    if requests:
        requests[0].answer.get_loop().call_soon_threadsafe(_resolve, requests, error)


def _resolve(requests: list[Pending], error: Exception | None) -> None:
    for pending in requests:
        if pending.answer.done():  # cancelled by its request
            continue
        if error:
            pending.answer.set_exception(error)
        else:
            pending.answer.set_result([pending.predictions[n] for n in range(len(pending.texts))])
