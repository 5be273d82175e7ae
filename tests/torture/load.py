"""Mixed load on a service with two workers, which are killed now and then."""

import os
import signal
import tempfile
import threading
import time
from pathlib import Path
from random import Random

import psutil

from fathomer.predictor import Predictor
from tests.serve.process import service
from tests.tiny import tiny_artifact
from tests.torture.trials import hostile_string

ALLOWED = (200, 429, 500, 503, 504)
"""Statuses that a client must expect while workers are killed."""
GROWTH = 1.15
"""Memory at the end, compared with that after the first tenth of the time."""


def load(seconds, *, clients=4, seed=0):
    """Send requests of all sizes; return the number of requests and the failures."""
    failures, counts = [], [0] * clients
    local = Predictor(tiny_artifact())
    end = time.monotonic() + seconds

    def ask(client):
        random = Random(seed + client)
        while time.monotonic() < end:
            texts = [_text(random) for _ in range(random.choice([1, 1, 2, 5, 20, 60]))]
            counts[client] += 1
            try:
                status, content = running.predict(texts)
            except (OSError, ValueError) as error:
                failures.append(f"client {client}: {type(error).__name__} {error}")
                continue
            if status not in ALLOWED:
                failures.append(f"status {status}: {content}")
            elif status == 200:
                labels = [answer["label"] for answer in content["predictions"]]
                if labels != [answer.label for answer in local.predict(texts)]:
                    failures.append("other labels than those of the predictor")

    with tempfile.TemporaryDirectory() as folder:
        tiny_artifact().save(Path(folder, "model"))
        with service(Path(folder, "model"), "--workers", "2") as running:
            threads = [threading.Thread(target=ask, args=[n]) for n in range(clients)]
            for thread in threads:
                thread.start()
            failures += _watch(running.process.pid, end, seconds, Random(seed))
            for thread in threads:
                thread.join()
            if running.predict(["good"])[0] != 200:
                failures.append("no answer after the load")
    return sum(counts), failures


def _text(random):
    if random.random() < 0.2:
        return hostile_string(random).encode("utf-8", "replace").decode("utf-8")
    return " ".join(
        random.choices(["good", "bad", "film", "zzyzx", "the"], k=random.randrange(150))
    )


def _watch(pid, end, seconds, random):
    """Kill a worker ten times, and compare the memory of the service itself."""
    process, first, number = psutil.Process(pid), 0, 0
    while time.monotonic() < end:
        time.sleep(min(seconds / 10, max(0.05, end - time.monotonic())))
        workers = [
            c for c in process.children() if "fathomer.serve.worker" in " ".join(c.cmdline())
        ]
        memory = process.memory_info().rss + max((w.memory_info().rss for w in workers), default=0)
        first = first or memory
        number += 1
        if workers and number < 9:
            os.kill(random.choice(workers).pid, random.choice([signal.SIGKILL, signal.SIGSEGV]))
    grown = memory / first
    return [f"memory grew by a factor of {grown:.2f}"] if grown > GROWTH else []
