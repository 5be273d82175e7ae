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
from fathomer.train.fit import fit
from tests.serve.process import service
from tests.tiny import TINY, tiny_examples
from tests.torture.trials import hostile_string

ALLOWED = (200, 429, 500, 503, 504)
"""Statuses that a client must expect while workers are killed."""
GROWTH = 1.15
"""Memory at the end, compared with that after the first tenth of the time."""


def load(seconds, *, clients=2, seed=0):
    """Send requests of all sizes; return the number of requests and the failures."""
    failures, counts = [], [0] * clients
    sizes = {"hidden_size": 100, "word_size": 100}
    artifact = fit(tiny_examples(), TINY.updated({"model": sizes})).artifact
    local = Predictor(artifact)

    def ask(client, end):
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
        artifact.save(Path(folder, "model"))
        with service(Path(folder, "model"), "--workers", "2") as running:
            end = time.monotonic() + seconds
            threads = [threading.Thread(target=ask, args=[n, end]) for n in range(clients)]
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
    """Kill the younger worker eight times, and compare the memory of the service and the other."""
    process, first, number = psutil.Process(pid), 0, 0
    while time.monotonic() < end:
        time.sleep(min(seconds / 10, max(0.05, end - time.monotonic())))
        workers = sorted(_workers(process), key=psutil.Process.create_time)
        memory = process.memory_info().rss + workers[0].memory_info().rss
        first = first or memory
        number += 1
        if len(workers) > 1 and number < 9:
            os.kill(workers[-1].pid, random.choice([signal.SIGKILL, signal.SIGSEGV]))
    grown = memory / first
    return [f"memory grew by a factor of {grown:.2f}"] if grown > GROWTH else []


def _workers(process):
    return [
        child
        for child in process.children(recursive=True)
        if child.status() != psutil.STATUS_ZOMBIE and "serve.worker" in " ".join(child.cmdline())
    ]
