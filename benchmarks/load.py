"""The load generator: locust, in a process of its own.

``python -m benchmarks.load`` reads a plan as JSON from standard input and writes the results as
JSON to standard output. Importing locust patches the standard library, so that this is done only
in that process, by ``send_requests``.
"""

import json
import logging
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import cycle, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, TypedDict

from fathomer.errors import FathomerError

ROOT = Path(__file__).parents[1]

TOLERANCE = 1e-5
"""Largest difference from the offline predictor's probabilities."""
OUTCOMES = ("right", "wrong", "refused", "failed", "lost")
JSON = {"Content-Type": "application/json"}
_ANSWER_SECONDS = 60.0


class LoadTestError(FathomerError, RuntimeError):
    """A service or load generator that did not start."""


class CheckedRequest(TypedDict):
    """Texts and the predictions that the service must return for them."""

    texts: list[str]
    expected: list[dict[str, Any]]


class LoadPlan(TypedDict):
    """What to send: the load ends after ``seconds`` or ``max_requests``."""

    port: int
    users: int
    """Clients, each with one connection and one request at a time."""
    rate: float | None
    """Requests per second of all users together; None for as many as possible."""
    seconds: float
    max_requests: int
    requests: list[CheckedRequest]


def generate_load(plan: LoadPlan, *, watch: Callable[[], None]) -> dict[str, Any]:
    """Run the load generator in a process of its own, calling ``watch`` twice a second."""
    command = [sys.executable, "-m", "benchmarks.load"]
    end = time.monotonic() + plan["seconds"] + 120
    output = b""
    with TemporaryFile("w+", encoding="utf-8") as file:
        json.dump(plan, file)
        file.seek(0)
        process = subprocess.Popen(command, cwd=ROOT, stdin=file, stdout=subprocess.PIPE)  # noqa: S603
    with process:
        try:
            while process.returncode is None and time.monotonic() < end:
                with suppress(subprocess.TimeoutExpired):
                    output, _ = process.communicate(timeout=0.5)
                watch()
        finally:
            process.kill()
    if process.returncode or not output:
        raise LoadTestError("the load generator failed; see its messages above")
    result: dict[str, Any] = json.loads(output)
    return result


def outcome_of(status: int, body: bytes, expected: Sequence[dict[str, Any]]) -> str:
    """Return one of ``OUTCOMES`` for a response.

    A 200 is right or wrong. A 429 or 503 that names the limit is a proper refusal; every other
    status is a failure. Status 0 stands for a connection that ended without a response.
    """
    if status == 0:
        return "lost"
    try:
        content = json.loads(body)
        if status == 200:
            return "right" if _is_right(content["predictions"], expected) else "wrong"
        refused = status in (429, 503) and content["error"]["limit"] > 0
    except (ValueError, KeyError, TypeError):
        return "wrong" if status == 200 else "failed"
    return "refused" if refused else "failed"


def _is_right(found: list[dict[str, Any]], expected: Sequence[dict[str, Any]]) -> bool:
    return len(found) == len(expected) and all(map(_is_equal, found, expected))


def _is_equal(found: dict[str, Any], expected: dict[str, Any]) -> bool:
    same = all(found.get(key) == expected.get(key) for key in ("label", "labels", "truncated"))
    return same and all(
        abs(found["probabilities"][label] - probability) <= TOLERANCE
        for label, probability in expected["probabilities"].items()
    )


def send_requests(plan: LoadPlan) -> dict[str, Any]:
    """Send the requests of a plan; return counts, seconds and latencies."""
    from gevent.event import Event
    from locust.env import Environment

    logging.getLogger("locust").setLevel(logging.ERROR)  # it warns about many users at a time
    statuses: Counter[int] = Counter()
    finished = Event()
    client = _client_class(plan, statuses, finished)
    environment = Environment(user_classes=[client], stop_timeout=_ANSWER_SECONDS)
    runner = environment.create_local_runner()
    started, cpu = time.time(), time.process_time()
    runner.start(plan["users"], spawn_rate=plan["users"])
    finished.wait(plan["seconds"])
    finished.set()
    runner.quit()  # waits for the answers to requests already sent
    stats = environment.stats
    right = stats.get("right", "POST")
    return {
        "statuses": {str(status): count for status, count in sorted(statuses.items())},
        **{name: stats.get(name, "POST").num_requests for name in OUTCOMES},
        "seconds": max(0.001, (stats.last_request_timestamp or started) - started),
        "p50_ms": right.get_response_time_percentile(0.5) if right.num_requests else None,
        "p99_ms": right.get_response_time_percentile(0.99) if right.num_requests else None,
        "cpu_seconds": time.process_time() - cpu,
    }


def _client_class(plan: LoadPlan, statuses: Counter[int], finished: Any) -> type[Any]:
    """Return the locust user that sends the requests and checks every answer."""
    from locust import FastHttpUser, constant, constant_throughput, task

    users, rate, requests = plan["users"], plan["rate"], plan["requests"]
    bodies = [json.dumps({"texts": request["texts"]}) for request in requests]
    numbers = islice(cycle(range(len(bodies))), plan["max_requests"])

    class Client(FastHttpUser):
        host = f"http://127.0.0.1:{plan['port']}"
        network_timeout = connection_timeout = _ANSWER_SECONDS
        wait_time = constant_throughput(rate / users) if rate else constant(0)

        def on_start(self) -> None:
            if rate:  # spread the users evenly, or they would all send at the same moment
                finished.wait(random.random() * users / rate)  # noqa: S311

        @task
        def classify(self) -> None:
            number = None if finished.is_set() else next(numbers, None)
            if number is None:
                finished.set()
                return
            with self.client.post(
                "/v1/predict", bodies[number], headers=JSON, catch_response=True
            ) as response:
                # An answer that ends too early has a status, but raises when its body is read.
                incomplete = response.status_code == 200 and response.request_meta["exception"]
                status = 0 if incomplete else response.status_code
                body = response.content if status else b""
                outcome = outcome_of(status, body, requests[number]["expected"])
                response.request_meta["name"] = outcome  # locust keeps statistics by name
                response.success()
            statuses[status] += 1

    return Client


if __name__ == "__main__":
    print(json.dumps(send_requests(json.load(sys.stdin))))  # noqa: T201
