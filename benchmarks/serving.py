"""The load test of the service: whether it is right, how fast, and what too much does to it.

It starts a service of its own on this machine, and all its phases are bounded in time and count.
"""

import asyncio
import json
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from benchmarks.hostile import attack
from benchmarks.served import Served, served
from benchmarks.wire import Run, closed_loop, open_loop, post
from fathomer.data.demo import demo_corpus
from fathomer.predictor import Prediction, Predictor, load
from fathomer.serve.limits import model_threads

MOST = 2_000_000
"""Requests of a phase at most."""
ROUNDS = 5
_TOLERANCE = 1e-5


@dataclass(frozen=True)
class Workload:
    """Hold the texts, the requests that carry them, and the predictor's own answers."""

    texts: list[str]
    requests: list[bytes]
    expected: list[list[Prediction]]

    @classmethod
    def of(cls, predictor: Predictor, *, texts_per_request: int) -> "Workload":
        """Take the demo's test texts, which any model can answer."""
        texts = [example.text for example in demo_corpus()[1]]
        answers = predictor.predict(texts)
        starts = range(0, len(texts), texts_per_request)
        parts = [slice(start, start + texts_per_request) for start in starts]
        bodies = [json.dumps({"texts": texts[part]}).encode("ascii") for part in parts]
        requests = [post("/v1/predict", body) for body in bodies]
        return cls(texts, requests, [answers[part] for part in parts])

    @property
    def texts_per_request(self) -> float:
        """Give the mean."""
        return len(self.texts) / len(self.requests)

    def wrong(self, run: Run) -> int:
        """Count the good replies that are not what the predictor says."""
        good = [reply for reply in run.replies if reply.status == 200]
        return sum(not _equal(reply.body, self.expected[reply.request]) for reply in good)


def _equal(body: bytes, expected: Sequence[Prediction]) -> bool:
    found = json.loads(body)["predictions"]
    return len(found) == len(expected) and all(
        answer["label"] == prediction.label
        and all(
            abs(answer["probabilities"][label] - probability) <= _TOLERANCE
            for label, probability in prediction.probabilities.items()
        )
        for answer, prediction in zip(found, expected, strict=True)
    )


def bench_serve(
    folder: Path,
    *,
    connections: int = 32,
    texts_per_request: int = 8,
    workers: int = 1,
    seconds: float = 10.0,
    overload_seconds: float = 60.0,
    hostile_seconds: float = 0.0,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure a service of the model in ``folder``, beside the predictor itself."""
    predictor = load(folder)
    work = Workload.of(predictor, texts_per_request=texts_per_request)
    result: dict[str, Any] = {
        "connections": connections,
        "texts_per_request": texts_per_request,
        "workers": workers,
    }
    with served(folder, workers=workers) as running:
        tell("every text once, compared with the predictor")
        first = _closed(running, work, connections, most=len(work.requests))
        result["correctness"] = _summary(first, work)
        tell("saturation, in turns with the predictor alone")
        result["saturation"] = _saturation(
            running, work, predictor, connections, seconds, model_threads(workers)
        )
        rate = result["saturation"]["requests_per_second"]
        for name, factor, duration in (("half", 0.5, seconds), ("double", 2.0, overload_seconds)):
            if duration and rate:
                tell(f"{name} of the saturation rate for {duration:g} s")
                result[name] = _open(running, work, rate * factor, duration)
        if hostile_seconds:
            tell(f"hostile clients for {hostile_seconds:g} s")
            result["hostile"] = _hostile(running, work, hostile_seconds)
    result["exit_code"] = running.process.returncode
    result["log"] = running.log
    return result


def _closed(service: Served, work: Workload, connections: int, **bounds: Any) -> Run:
    return asyncio.run(closed_loop(service.port, work.requests, connections=connections, **bounds))


def _saturation(
    service: Served,
    work: Workload,
    predictor: Predictor,
    connections: int,
    seconds: float,
    threads: int,
) -> dict[str, Any]:
    """Let predictor and service take turns, so that all see the same machine."""
    turn = seconds / ROUNDS
    at_once = connections * round(work.texts_per_request)
    offline, as_served, rates, runs = [], [], [], []
    service_cpu, client_cpu = -service.cpu_seconds, 0.0
    for _ in range(ROUNDS):
        offline.append(_offline(predictor, work.texts, turn))
        with _threads(threads):
            as_served.append(_offline(predictor, work.texts[:at_once], turn))
        client_cpu -= time.process_time()
        run = _closed(service, work, connections, seconds=turn, most=MOST)
        client_cpu += time.process_time()
        rates.append(run.good_per_second)
        runs.append(run)
    service_cpu += service.cpu_seconds
    together = Run([reply for run in runs for reply in run.replies])
    texts = statistics.median(rates) * work.texts_per_request
    return _summary(together, work) | {
        "requests_per_second": round(statistics.median(rates), 1),
        "texts_per_second": round(texts, 1),
        "offline_texts_per_second": round(statistics.median(offline), 1),
        "part_of_offline": round(texts / statistics.median(offline), 3),
        "as_served_texts_per_second": round(statistics.median(as_served), 1),
        "part_of_as_served": round(texts / statistics.median(as_served), 3),
        "service_cpu_ms_per_request": round(service_cpu / len(together.replies) * 1e3, 3),
        "client_cpu_ms_per_request": round(client_cpu / len(together.replies) * 1e3, 3),
    }


def _offline(predictor: Predictor, texts: list[str], seconds: float) -> float:
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        predictor.predict(texts)
        count += len(texts)
    return count / (time.perf_counter() - started)


@contextmanager
def _threads(number: int) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(number)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def _open(service: Served, work: Workload, rate: float, seconds: float) -> dict[str, Any]:
    async def watched() -> tuple[Run, list[float]]:
        memory: list[float] = []
        watching = asyncio.create_task(_watch(service, memory))
        run = await open_loop(
            service.port, work.requests, rate=rate, seconds=seconds, connections=800
        )
        watching.cancel()
        return run, memory

    run, memory = asyncio.run(watched())
    return _summary(run, work) | {
        "offered_per_second": round(rate, 1),
        "seconds": round(run.seconds, 1),
        "memory_mb": _growth(memory),
    }


async def _watch(service: Served, memory: list[float]) -> None:
    while True:
        memory.append(service.memory_mb)
        await asyncio.sleep(1)


def _growth(memory: list[float]) -> dict[str, float]:
    """Compare the first and the last quarter of what was seen each second."""
    quarter = max(1, len(memory) // 4)
    return {
        "before": memory[0],
        "first_quarter": statistics.median(memory[:quarter]),
        "last_quarter": statistics.median(memory[-quarter:]),
        "most": max(memory),
    }


def _hostile(service: Served, work: Workload, seconds: float) -> dict[str, Any]:
    """Mix misbehaving clients with good ones, who must not notice."""

    async def both() -> tuple[dict[str, dict[str, int]], Run, list[float]]:
        memory: list[float] = []
        watching = asyncio.create_task(_watch(service, memory))
        statuses, good = await asyncio.gather(
            attack(service.port, seconds=seconds, most=MOST),
            closed_loop(service.port, work.requests, connections=2, seconds=seconds, most=MOST),
        )
        watching.cancel()
        return statuses, good, memory

    statuses, good, memory = asyncio.run(both())
    return {
        "statuses": statuses,
        "good": _summary(good, work),
        "memory_mb": _growth(memory),
        "alive": service.process.poll() is None,
    }


def _summary(run: Run, work: Workload) -> dict[str, Any]:
    return {
        "statuses": {str(status): count for status, count in run.statuses.items()},
        "wrong": work.wrong(run),
        "lost": run.statuses.get(0, 0),
        "answered_twice_bytes": run.unasked,
        "unsent": run.unsent,
        "p50_ms": round(run.quantile(0.5) * 1e3, 2),
        "p99_ms": round(run.quantile(0.99) * 1e3, 2),
    }
