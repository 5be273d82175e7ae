"""Prometheus metrics of the service."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fathomer.prediction import Prediction
from fathomer.serve.batcher import Batcher

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class ServiceMetrics:
    """Counters of requests, latencies, batches, words and depths, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "fathomer_requests", "Answered requests.", ["path", "status"], registry=registry
        )
        self._seconds = Histogram(
            "fathomer_request_seconds",
            "Time from the headers of a request to the end of its response.",
            ["path"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._rejected = Counter(
            "fathomer_rejected", "Rejected requests by reason.", ["reason"], registry=registry
        )
        self._batch_texts = Histogram(
            "fathomer_batch_texts", "Texts per batch.", registry=registry, buckets=_SIZES
        )
        self._words = Counter("fathomer_words", "Words read.", registry=registry)
        self._steps = Counter("fathomer_steps", "Steps taken by all words.", registry=registry)
        self._mean_depth = Gauge(
            "fathomer_mean_depth", "Mean depth of the words in the last batch.", registry=registry
        )

    def watch(self, batcher: Batcher) -> None:
        """Add gauges that show the length of a batcher's queue."""
        for name, doc, count in (
            ("fathomer_queue_requests", "Queued requests.", lambda: batcher.queued_requests),
            ("fathomer_queue_words", "Queued words.", lambda: batcher.queued_words),
        ):
            Gauge(name, doc, registry=self.registry).set_function(count)

    def record_request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def record_rejection(self, reason: str) -> None:
        """Count a rejected request."""
        self._rejected.labels(reason).inc()

    def record_batch(self, predictions: Sequence[Prediction]) -> None:
        """Count a batch and its words."""
        depths = [word.depth for prediction in predictions for word in prediction.words]
        self._batch_texts.observe(len(predictions))
        self._words.inc(len(depths))
        self._steps.inc(sum(depths))
        if depths:
            self._mean_depth.set(sum(depths) / len(depths))

    def render(self) -> bytes:
        """Return all metrics in Prometheus' text format."""
        return generate_latest(self.registry)
