"""Micro-batching: all connections share one queue, and one thread owns each copy of the model.

A thread takes as many queued texts as fit the word budget of a batch, predicts them together and
delivers the answers. A long request is spread over several batches, and what is left of a request
that was dropped in the meantime is not read. Threads of several copies share the queue.
"""

import asyncio
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from fathomer.contributions import words_read
from fathomer.prediction import Prediction
from fathomer.predictor import Predictor
from fathomer.serve.limits import Limits
from fathomer.text.tokenizer import Words

logger = logging.getLogger(__name__)

_CHECK_SECONDS = 1.0
"""How often an idle thread checks that its copy of the model is alive."""


class QueueFullError(Exception):
    """A full queue; the argument is the name of the limit."""


@runtime_checkable
class RestartablePredictor(Protocol):
    """A predictor in another process, which may die."""

    @property
    def alive(self) -> bool:
        """Whether the process can make predictions."""
        ...

    def ensure_alive(self) -> None:
        """Restart the process if it died; return when it is alive or the service shuts down."""
        ...


@dataclass(eq=False)
class PendingRequest:
    """A queued request and the predictions made for it so far."""

    texts: list[str]
    words: list[Words]
    max_depth: int | None
    depth_budget: float | None
    contributions: bool
    answer: "asyncio.Future[list[Prediction]]"
    costs: list[int] = field(init=False)
    """Number of words that the model reads for each text."""
    taken: int = 0
    """Number of texts that are already part of a batch."""
    predictions: dict[int, Prediction] = field(default_factory=dict)
    """Keyed by the index of the text, because batches may finish in any order."""
    dropped: bool = False

    def __post_init__(self) -> None:
        # An empty text counts as one word, so that a batch cannot hold any number of them.
        counts = [len(words.ids) for words in self.words]
        self.costs = [max(1, words_read(n) if self.contributions else n) for n in counts]


class TextRange(NamedTuple):
    """The texts of a request that are in one batch."""

    request: PendingRequest
    start: int
    end: int


class Batcher:
    """A queue of requests and the threads that answer them."""

    def __init__(
        self,
        predictors: Sequence[Predictor],
        limits: Limits,
        *,
        observe: Callable[[list[Prediction]], None] = lambda _: None,
    ) -> None:
        self._predictors = predictors
        self._limits = limits
        self._observe = observe
        self._queue: deque[PendingRequest] = deque()
        self._queued_words = 0
        self._changed = threading.Condition()
        self._closing = True
        self._threads: list[threading.Thread] = []
        self._idle_threads = 0

    # Called from the event loop

    def start(self) -> None:
        """Start the threads; may be called again after ``close``."""
        self._closing = False
        self._threads = [
            threading.Thread(target=self._work, args=[each], name="fathomer-model", daemon=True)
            for each in self._predictors
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Accept no more requests, answer the queued ones and stop the threads."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()
        end = time.monotonic() + self._limits.deadline_seconds
        for thread in self._threads:  # by then the deadlines of all requests have passed
            thread.join(max(0.1, end - time.monotonic()))

    @property
    def ready(self) -> bool:
        """Whether requests are accepted and a predictor is alive."""
        running = not self._closing and all(thread.is_alive() for thread in self._threads)
        return running and any(
            not isinstance(each, RestartablePredictor) or each.alive for each in self._predictors
        )

    def check_room(self) -> None:
        """Raise ``QueueFullError`` if no more requests can be queued."""
        for name, waiting in (
            ("queue_words", self._queued_words),
            ("queue_requests", len(self._queue)),
        ):
            if waiting >= getattr(self._limits, name) or self._closing:
                raise QueueFullError(name)

    @property
    def queued_words(self) -> int:
        """Number of queued words."""
        return self._queued_words

    @property
    def queued_requests(self) -> int:
        """Number of queued requests."""
        return len(self._queue)

    def submit(
        self,
        texts: list[str],
        words: list[Words],
        *,
        max_depth: int | None,
        depth_budget: float | None = None,
        contributions: bool = False,
    ) -> PendingRequest:
        """Queue a request; its ``answer`` is a future of the running event loop."""
        future = asyncio.get_running_loop().create_future()
        request = PendingRequest(texts, words, max_depth, depth_budget, contributions, future)
        if not texts:
            request.answer.set_result([])
            return request
        with self._changed:
            self.check_room()
            self._queue.append(request)
            self._queued_words += sum(request.costs)
            # Waking a thread for every request would cost more time than it saves.
            if len(self._queue) == 1 or self._queued_words >= self._limits.batch_words:
                self._changed.notify()
        return request

    def drop(self, request: PendingRequest) -> None:
        """Remove a request; texts of it that are not yet in a batch will not be read."""
        with self._changed:
            request.dropped = True
            if request in self._queue:
                self._queue.remove(request)
                self._queued_words -= sum(request.costs[request.taken :])

    # Run by the threads

    def _work(self, predictor: Predictor) -> None:
        while True:
            if isinstance(predictor, RestartablePredictor):
                predictor.ensure_alive()  # takes no work meanwhile: another one may do it
            batch = self._take()
            if batch is None:
                return
            groups: dict[tuple[int | None, float | None, bool], list[TextRange]] = {}
            for part in batch:
                request = part.request
                key = request.max_depth, request.depth_budget, request.contributions
                groups.setdefault(key, []).append(part)
            for parts in groups.values():
                if wanted := [part for part in parts if not part.request.dropped]:
                    self._answer(predictor, wanted)

    def _take(self) -> list[TextRange] | None:
        """Wait for requests and return a batch, or None when the batcher is closed.

        The batch is empty if there was no request for ``_CHECK_SECONDS``.
        """
        with self._changed:
            self._idle_threads += 1
            try:
                if not self._changed.wait_for(lambda: self._queue or self._closing, _CHECK_SECONDS):
                    return []
                if self._closing and not self._queue:
                    return None
                self._wait_for_more()
                return self._fill()
            finally:
                self._idle_threads -= 1
                if self._queue:
                    self._changed.notify()

    def _wait_for_more(self) -> None:
        """Wait while new requests keep coming, until a batch is full or the time is up."""
        end = time.monotonic() + self._limits.batch_seconds
        seen = -1
        while seen != len(self._queue) and time.monotonic() < end:
            if self._queued_words >= self._limits.batch_words or self._closing:
                return
            seen = len(self._queue)
            self._changed.wait(min(self._limits.pause_seconds, end - time.monotonic()))

    def _fill(self) -> list[TextRange]:
        """Take texts in order of arrival, but only this thread's share if others are idle.

        A text above the word budget forms a batch of its own.
        """
        batch: list[TextRange] = []
        share = -(-self._queued_words // self._idle_threads)
        budget = room = min(self._limits.batch_words, share)
        while self._queue:
            request = self._queue[0]
            start = request.taken
            for cost in request.costs[start:]:
                if cost > room and room < budget:
                    break
                room -= cost
                request.taken += 1
            if request.taken > start:
                batch.append(TextRange(request, start, request.taken))
            if request.taken < len(request.texts):
                break
            self._queue.popleft()
        self._queued_words -= budget - room
        return batch

    def _answer(self, predictor: Predictor, parts: list[TextRange]) -> None:
        """Answer parts of requests that ask for the same depths, and for contributions or not."""
        request = parts[0].request
        texts = [text for part in parts for text in part.request.texts[part.start : part.end]]
        words = [text for part in parts for text in part.request.words[part.start : part.end]]
        try:
            predictions = predictor.predict_words(
                texts,
                words,
                max_depth=request.max_depth,
                depth_budget=request.depth_budget,
                contributions=request.contributions,
            )
            self._observe(predictions)
        except Exception as error:
            # Fail the requests of this batch only; the thread goes on with the others.
            logger.exception("a batch of %d texts could not be answered", len(texts))
            for part in parts:
                self.drop(part.request)
            _deliver([part.request for part in parts], error)
        else:
            _deliver(self._complete(parts, predictions))

    def _complete(
        self, parts: list[TextRange], predictions: list[Prediction]
    ) -> list[PendingRequest]:
        """Store predictions with their requests; return the requests that are now complete."""
        found = iter(predictions)
        with self._changed:
            for request, start, end in parts:
                request.predictions.update((number, next(found)) for number in range(start, end))
            return [r for r, *_ in parts if len(r.predictions) == len(r.texts)]


def _deliver(requests: list[PendingRequest], error: Exception | None = None) -> None:
    """Set the answers of requests, waking the event loop once for all of them."""
    if requests:
        requests[0].answer.get_loop().call_soon_threadsafe(_resolve, requests, error)


def _resolve(requests: list[PendingRequest], error: Exception | None) -> None:
    for request in requests:
        if request.answer.done():  # cancelled meanwhile
            continue
        if error:
            request.answer.set_exception(error)
        else:
            request.answer.set_result([request.predictions[n] for n in range(len(request.texts))])
