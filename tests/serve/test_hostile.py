"""Hostile clients: the service neither crashes nor answers 500, and others are still served."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from random import Random

import psutil
import pytest

from tests.serve.process import post, question, read_all, readable

MIXED = "".join(Random(0).choices("\0\t\n\u0301\u200d\U0001f600A", k=300))
ODD_TEXTS = [
    MIXED,
    "",
    "x" * 20_000,
    "a" + "\u0300\u0316" * 2_000,  # combining marks, which normalisation has to sort
    "<img src=x onerror=alert(1)>",
]


def random_bytes(service, random):
    """Send something that is not HTTP."""
    answer = service.raw(random.randbytes(random.randint(1, 5_000)) + b"\r\n\r\n")
    assert answer[9:12] in (b"400", b"")


def random_body(service, random):
    """Send something that is not JSON."""
    with service.connect_raw() as connection:
        connection.sendall(post(random.randbytes(random.randint(0, 5_000))))
        assert connection.recv(65536)[9:12] in (b"422", b"429")


def odd_texts(service, random):
    """Send texts that are unusual but allowed."""
    status, _ = service.predict(random.sample(ODD_TEXTS, 2), depths=True)
    assert status in (200, 429)


def many_words(service, random):
    """Request as much work as fits into a body."""
    status, _ = service.predict(["! " * 9_000] * random.randint(1, 2))
    assert status in (200, 429)


def drip(service, random):
    """Send the headers or the body byte by byte, which must not extend the time for them."""
    request = question("slow")
    sent = random.choice([10, request.find(b"\r\n\r\n") + 6])
    answer = b""
    started = time.perf_counter()
    with service.connect_raw() as connection, suppress(ConnectionError):
        connection.sendall(request[:sent])
        while not readable(connection, 0.1):
            connection.sendall(request[sent : sent + 1])
            sent += 1
        answer = read_all(connection)
    assert answer[9:12] in (b"408", b"")
    assert sent < len(request)
    assert time.perf_counter() - started < 8


def disconnect(service, random):
    """Disconnect in the middle of a request, or before its answer."""
    request = question(*["never mind"] * 20)
    with service.connect_raw() as connection:
        connection.sendall(request[: random.choice([30, len(request) - 5, len(request)])])


BEHAVIOURS = [random_bytes, random_body, odd_texts, many_words, drip, disconnect]


@pytest.mark.parametrize("behave", BEHAVIOURS, ids=lambda behave: behave.__name__)
def test_the_service_survives(running, behave):
    for seed in range(3):
        behave(running, Random(seed))
    assert running.predict(["good film"])[0] == 200
    assert running.process.poll() is None


def test_good_clients_are_served_among_hostile_ones(running):
    random = Random(0)
    with ThreadPoolExecutor(8) as clients:
        hostile = [
            clients.submit(behave, running, Random(random.random()))
            for behave in random.sample(BEHAVIOURS * 5, 5 * len(BEHAVIOURS))
        ]
        good = [running.predict([f"good film {n}"])[0] for n in range(60)]
        for each in hostile:
            each.result()  # raises what failed in it
    assert set(good) == {200}
    assert running.process.poll() is None
    assert psutil.Process(running.process.pid).memory_info().rss < 2e9
    assert b'status="500"' not in running.ask("GET", "/metrics")[2]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "text/plain", "Origin": "http://elsewhere.example"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded", "Origin": "null"}, 415),
        ({"Origin": "http://elsewhere.example"}, 415),
        ({"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ({"Content-Type": "application/json; charset=utf-8"}, 200),
        ({}, 200),
    ],
)
def test_a_page_elsewhere_cannot_post_without_asking(running, headers, status):
    """Browsers send these types to other sites without asking them first."""
    found, _, content = running.ask("POST", "/v1/predict", '{"texts": ["good"]}', headers)
    assert found == status
    assert status == 200 or json.loads(content)["error"]["code"] == "content_type"
