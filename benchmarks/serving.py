"""The load test of the service: whether its answers are right, its speed, and overload.

It starts a service of its own on the loopback interface and stops it at the end. Every answer is
compared with the offline predictor's.
"""

import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any

import psutil

from benchmarks.load import CheckedRequest, LoadPlan, LoadTestError, generate_load
from fathomer.data.demo import demo_corpus
from fathomer.predictor import Predictor, load

MAX_REQUESTS = 2_000_000
"""The most requests in a phase."""
OVERLOAD_USERS = 800
"""Connections in the overload phase: more than the queue of the service holds."""


@dataclass(frozen=True)
class RunningService:
    """A service in a process of its own."""

    process: "subprocess.Popen[bytes]"
    port: int
    log: list[str] = field(default_factory=list)
    """What the service logged, once it has ended."""

    def _sum(self, value: Callable[[psutil.Process], float]) -> float:
        """Add up a value of the service and its workers."""
        total = 0.0
        with suppress(psutil.NoSuchProcess):  # a worker, or the service itself, may have died
            process = psutil.Process(self.process.pid)
            for each in (process, *process.children()):
                total += value(each)
        return total

    @property
    def memory_mb(self) -> float:
        """Resident memory; pages that processes share count for each of them."""
        return round(self._sum(lambda process: process.memory_info().rss) / 1e6, 1)

    @property
    def cpu_seconds(self) -> float:
        """Processor time so far."""
        return self._sum(lambda process: sum(process.cpu_times()[:2]))


@contextmanager
def run_service(folder: Path, *, workers: int = 1) -> Iterator[RunningService]:
    """Run ``fathomer serve`` on a free port."""
    options = [str(folder), "--port", "0", "--workers", str(workers)]
    command = [sys.executable, "-P", "-m", "fathomer", "serve", *options]
    with TemporaryFile("w+", encoding="utf-8") as log:
        with subprocess.Popen(command, stderr=log) as process:  # noqa: S603
            try:
                service = RunningService(process, _wait_for_port(process, log))
                yield service
            finally:
                process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    process.wait(timeout=60)
                process.kill()
        service.log.extend(log.readlines())


def _wait_for_port(process: "subprocess.Popen[bytes]", log: IO[str]) -> int:
    """Wait until the service announces its address on the first line of its log."""
    while True:
        ended = process.poll() is not None
        log.seek(0)
        line = log.readline()
        if line.startswith("serving ") and line.endswith("\n"):
            return int(line.rsplit(":", 1)[1])
        if ended:
            raise LoadTestError(f"the service did not start: {line.strip()}")
        time.sleep(0.1)


def make_requests(predictor: Predictor, *, texts_per_request: int) -> list[CheckedRequest]:
    """Return requests with the test texts of the demo, which any model can classify."""
    texts = [example.text for example in demo_corpus()[1]]
    expected = [prediction.to_dict() for prediction in predictor.predict(texts)]
    parts = [slice(n, n + texts_per_request) for n in range(0, len(texts), texts_per_request)]
    return [{"texts": texts[part], "expected": expected[part]} for part in parts]


def measure_serving(
    folder: Path,
    *,
    connections: int = 32,
    texts_per_request: int = 8,
    workers: int = 1,
    seconds: float = 10.0,
    report: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """Measure a service of the model in ``folder`` and the offline predictor side by side."""
    predictor = load(folder)
    requests = make_requests(predictor, texts_per_request=texts_per_request)
    result: dict[str, Any] = {
        "connections": connections,
        "texts_per_request": texts_per_request,
        "workers": workers,
    }
    with run_service(folder, workers=workers) as service:

        def phase(name: str, users: int = connections, **bounds: Any) -> None:
            report(name)
            result[name] = run_phase(service, requests, users, **bounds)

        phase("correctness", seconds=600, max_requests=len(requests))
        before = offline_texts_per_second(predictor, requests, seconds / 2)
        phase("saturation", seconds=seconds)
        after = offline_texts_per_second(predictor, requests, seconds / 2)
        found, offline = result["saturation"], (before + after) / 2
        found["offline_texts_per_second"] = round(offline, 1)
        found["part_of_offline"] = round(found["texts_per_second"] / offline, 3)
        if rate := found["requests_per_second"]:
            phase("half", seconds=seconds, rate=rate / 2)
            phase("overload", OVERLOAD_USERS, seconds=seconds, rate=rate * 2)
    result |= {"exit_code": service.process.returncode, "log": service.log}
    return result


def run_phase(
    service: RunningService,
    requests: list[CheckedRequest],
    users: int,
    *,
    seconds: float,
    rate: float | None = None,
    max_requests: int = MAX_REQUESTS,
) -> dict[str, Any]:
    """Put a service under load; return counts, latencies, rates and the memory of the service."""
    plan: LoadPlan = {
        "port": service.port,
        "users": users,
        "rate": rate,
        "seconds": seconds,
        "max_requests": max_requests,
        "requests": requests,
    }
    service_cpu = -service.cpu_seconds
    memory = [service.memory_mb]
    found = generate_load(plan, watch=lambda: memory.append(service.memory_mb))
    service_cpu += service.cpu_seconds
    client_cpu = found.pop("cpu_seconds")
    sent = max(1, sum(found["statuses"].values()))
    per_second = found["right"] / found.pop("seconds")
    texts_per_request = sum(len(each["texts"]) for each in requests) / len(requests)
    return found | {
        "offered_per_second": rate and round(rate, 1),
        "requests_per_second": round(per_second, 1),
        "texts_per_second": round(per_second * texts_per_request, 1),
        "service_cpu_ms_per_request": round(service_cpu / sent * 1e3, 3),
        "client_cpu_ms_per_request": round(client_cpu / sent * 1e3, 3),
        "memory_mb": {"before": memory[0], "peak": max(memory), "after": memory[-1]},
    }


def offline_texts_per_second(
    predictor: Predictor, requests: list[CheckedRequest], seconds: float
) -> float:
    """Return the throughput of the predictor without a service, with all texts at a time."""
    texts = [text for request in requests for text in request["texts"]]
    started, count = time.perf_counter(), 0
    while time.perf_counter() - started < seconds:
        predictor.predict(texts)
        count += len(texts)
    return count / (time.perf_counter() - started)
