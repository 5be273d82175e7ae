"""What the service counts, for Prometheus."""

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from fathomer.predictor import Prediction
from fathomer.serve.batcher import Batcher

_SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)


class Metrics:
    """Count requests, times, batches, words and depths in a registry of their own."""

    def __init__(self) -> None:
        self.registry = registry = CollectorRegistry()
        self._requests = Counter(
            "fathomer_requests", "Answered requests.", ["path", "status"], registry=registry
        )
        self._seconds = Histogram(
            "fathomer_request_seconds",
            "Time from a request's head to its answer.",
            ["path"],
            registry=registry,
            buckets=_SECONDS,
        )
        self._rejected = Counter(
            "fathomer_rejected", "Requests refused, by the reason.", ["reason"], registry=registry
        )
        self._batch_texts = Histogram(
            "fathomer_batch_texts", "Texts read together.", registry=registry, buckets=_SIZES
        )
        self._words = Counter("fathomer_words", "Words read.", registry=registry)
        self._steps = Counter("fathomer_steps", "Steps that all words took.", registry=registry)
        self._mean_depth = Gauge(
            "fathomer_mean_depth", "Steps per word in the last batch.", registry=registry
        )

    def watch(self, batcher: Batcher) -> None:
        """Show the length of a queue whenever somebody asks."""
        for name, doc, count in (
            ("fathomer_queue_requests", "Requests that wait.", lambda: batcher.queued_requests),
            ("fathomer_queue_words", "Words that wait.", lambda: batcher.queued_words),
        ):
            Gauge(name, doc, registry=self.registry).set_function(count)

    def request(self, path: str, status: int, seconds: float) -> None:
        """Count an answered request."""
        self._requests.labels(path, str(status)).inc()
        self._seconds.labels(path).observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a refused request."""
        self._rejected.labels(reason).inc()

    def batch(self, predictions: Sequence[Prediction]) -> None:
        """Count a batch that was read."""
        depths = [word.depth for prediction in predictions for word in prediction.words]
        self._batch_texts.observe(len(predictions))
        self._words.inc(len(depths))
        self._steps.inc(sum(depths))
        if depths:
            self._mean_depth.set(sum(depths) / len(depths))

    def page(self) -> bytes:
        """Write everything in Prometheus' text format."""
        return generate_latest(self.registry)
