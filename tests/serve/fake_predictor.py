"""A fake predictor, and a batcher that uses it."""

import asyncio
import threading
from types import SimpleNamespace

from fathomer.serve.batcher import Batcher
from fathomer.serve.limits import Limits


def words(*counts):
    return [SimpleNamespace(ids=[1] * count) for count in counts]


class EchoPredictor:
    """A predictor that returns the texts themselves, records the batches and can be held up."""

    def __init__(self):
        self.batches = []
        self.go = threading.Event()
        self.go.set()
        self.begun = threading.Event()

    def predict_words(
        self, texts, words, *, max_depth=None, depth_budget=None, contributions=False
    ):
        self.begun.set()
        assert self.go.wait(10)
        self.batches.append((max_depth, list(texts)))
        if "fail" in texts:
            raise ValueError("no")
        return [f"{text}@{max_depth}" for text in texts]


class Started:
    """A context manager that starts a batcher and closes it."""

    def __init__(self, **limits):
        self.echo = EchoPredictor()
        self.batcher = Batcher(
            [self.echo], Limits(**{"batch_seconds": 0.02, "pause_seconds": 0.02, **limits})
        )

    async def __aenter__(self):
        self.batcher.start()
        return self.batcher, self.echo

    async def __aexit__(self, *_):
        self.echo.go.set()
        await asyncio.to_thread(self.batcher.close)


async def occupy(batcher, echo):
    """Keep the model busy with a request, so that others are queued."""
    echo.go.clear()
    echo.begun.clear()
    pending = batcher.submit(["busy"], words(1), max_depth=None)
    assert await asyncio.to_thread(echo.begun.wait, 10)
    return pending


def run(scenario):
    return asyncio.run(asyncio.wait_for(scenario(), 20))
