"""Limits and hostile input, against a real process on loopback."""

import asyncio
import json
import re
import socket
import time
from dataclasses import fields
from pathlib import Path

import pytest

from benchmarks.hostile import BEHAVIOURS, attack
from benchmarks.served import Served
from benchmarks.wire import post
from fathomer.predictor import Predictor
from fathomer.serve.app import Service
from fathomer.serve.limits import Limits
from fathomer.serve.problems import Problem
from tests.serve.process import service
from tests.tiny import tiny_artifact

HEAD = b"POST /v1/predict HTTP/1.1\r\nhost: x\r\n"


ROOT = Path(__file__).parents[2]


def limits_table():
    """Write the table of docs/serving.md from the limits themselves."""
    rows = [f"| `{f.name}` | {f.default:,} | {f.metadata['doc']} |" for f in fields(Limits)]
    return "\n".join(["| limit | default | meaning |", "|---|---:|---|", *rows])


def test_every_limit_is_documented():
    assert limits_table() in (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def waiting(seconds):
    """Let every batch wait so long for company, so that requests queue."""
    return ["--limit", f"batch_seconds={seconds}", "--limit", f"pause_seconds={seconds}"]


def wait_for_queue(service, requests):
    """Wait until so many requests wait for the model."""
    for _ in range(200):
        if f"fathomer_queue_requests {requests}.0".encode() in service.ask("GET", "/metrics")[2]:
            return
        time.sleep(0.05)
    raise AssertionError(f"never {requests} in the queue")


def refused(answer):
    status, content = answer
    return status, content["error"]["code"], content["error"].get("limit")


@pytest.fixture(scope="module")
def strict(model):
    names = {
        "texts_per_request": 3,
        "characters_per_text": 60,
        "words_per_text": 5,
        "words_per_request": 10,
    }
    options = [part for name, value in names.items() for part in ("--limit", f"{name}={value}")]
    with service(model, *options) as found:
        yield found


def test_each_limit_is_named_with_its_value(strict):
    assert refused(strict.predict(["a"] * 4)) == (422, "texts_per_request", 3)
    assert refused(strict.predict(["a" * 61])) == (422, "characters_per_text", 60)
    assert refused(strict.predict(["a b c d e f"])) == (422, "words_per_text", 5)
    assert refused(strict.predict(["a b c d"] * 3)) == (422, "words_per_request", 10)
    assert strict.predict(["a b c d e", "a b c d e", "x" * 60])[0] == 422
    assert strict.predict(["a b c d e", "a b c d", "x" * 60])[0] == 200


def test_no_more_words_are_split_than_may_be_read():
    class Counting(Predictor):
        words = 0

        def split(self, texts):
            found = super().split(texts)
            self.words += sum(len(text.ids) for text in found)
            return found

    predictor = Counting(tiny_artifact())
    app = Service(predictor, Limits(words_per_request=300))
    with pytest.raises(Problem, match="More than 300 words"):
        asyncio.run(app._split(["! " * 6_000] * 50))
    assert 300 < predictor.words <= 350


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"texts": "one"}',
        b'{"texts": [1]}',
        b'{"texts": ["a"], "depth": true}',
        b'{"texts": ["a"], "depths": 1}',
        b'{"texts": ["a"], "max_depth": 0}',
        b'{"texts": ["a"], "max_depth": 5}',
        b'{"texts": ["a"], "max_depth": true}',
        b'{"texts": ["\\ud800"]}',
        b'{"texts": ["\xff"]}',
        b"[" * 40_000,
        b'{"texts":' * 4_000,
    ],
)
def test_a_body_that_is_not_as_described_gets_422_without_a_trace(running, body):
    status, _, content = running.ask("POST", "/v1/predict", body)
    error = json.loads(content)["error"]
    assert (status, error["code"]) == (422, "invalid")
    assert "Traceback" not in error["message"]
    assert len(error["message"]) < 200


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_gets_413(running, announced):
    if announced:
        data = HEAD + b"content-length: 60000\r\n\r\n" + b" " * 60_000
    else:
        data = HEAD + b"transfer-encoding: chunked\r\n\r\n"
        data += (b"2710\r\n" + b" " * 10_000 + b"\r\n") * 6 + b"0\r\n\r\n"
    answer = running.raw(data)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b'"limit":50000}}')


def test_a_body_may_be_as_large_as_agreed(running):
    body = b'{"texts": []}'.ljust(50_000)
    assert running.ask("POST", "/v1/predict", body)[0] == 200
    assert running.ask("POST", "/v1/predict", body + b" ")[0] == 413


def test_a_body_without_end_is_cut_off(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n")
        chunk = b"2710\r\n" + b" " * 10_000 + b"\r\n"
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(chunk * 2_000)


def test_a_body_that_comes_too_slowly_gets_408(running):
    begun = time.perf_counter()
    answer = running.raw(HEAD + b"content-length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_seconds"' in answer
    assert 0.9 < time.perf_counter() - begun < 8


@pytest.mark.parametrize("sent", [b"", b"POST /v1/pre", HEAD])
def test_a_head_that_does_not_come_is_not_waited_for(running, sent):
    begun = time.perf_counter()
    assert running.raw(sent) == b""
    assert time.perf_counter() - begun < 8


@pytest.mark.parametrize("part", [b"x: " + b"y" * 900 + b"\r\n", b"y"], ids=["lines", "one line"])
def test_a_head_without_end_is_cut_off(running, part):
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(HEAD + b"x: ")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(part * (20_000_000 // len(part)))


def test_what_follows_a_last_chunk_without_end_is_cut_off(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=20) as connection:
        connection.sendall(HEAD + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n")
        with pytest.raises((ConnectionResetError, BrokenPipeError)):
            connection.sendall(b"x: y\r\n" * 3_000_000)


def test_requests_that_come_in_one_go_are_answered_in_order(running):
    request = b"GET /v1/health/%s HTTP/1.1\r\nhost: x\r\n%s\r\n"
    goes = [b"live", b"ready", b"live"]
    sent = b"".join(request % (name, b"") for name in goes)
    answers = running.raw(sent + request % (b"ready", b"connection: close\r\n"))
    assert re.findall(rb'"status":"(\w+)"', answers) == [b"live", b"ready", b"live", b"ready"]


def test_of_too_many_requests_in_one_go_those_that_were_taken_are_answered(running):
    request = post("/v1/predict", b'{"texts": ["good film"]}')
    for sent in (12, 2_000):
        answers = running.raw(request * sent)
        assert 9 <= answers.count(b"HTTP/1.1 200") == answers.count(b"HTTP/1.1 ") <= min(sent, 100)
        assert answers.count(b'"label":"positive"') == answers.count(b"HTTP/1.1 ")


def established(port):
    """Count the connections that a service has open."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return sum(each[1].endswith(f":{port:04X}") and each[3] == "01" for each in lines)


def test_who_does_not_fetch_the_answer_is_cut_off(model):
    """Such clients would hold connections, and the answers to them, for ever."""
    body = json.dumps({"texts": ["good " * 60] * 256, "depths": True}).encode()
    with service(model, "--limit", "idle_seconds=1") as found, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", found.port))
        client.sendall(post("/v1/predict", body) * 9)  # 5 MB of answers: more than the system holds
        assert established(found.port) == 1
        deadline = time.monotonic() + 30
        while established(found.port):
            assert time.monotonic() < deadline, "the connection is still there"
            time.sleep(0.1)
        assert found.predict(["good film"])[0] == 200


def test_a_body_of_many_unknown_keys_takes_no_time():
    content = b"{" + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}"
    asked = Service(Predictor(tiny_artifact()), Limits())
    started = time.thread_time()
    with pytest.raises(Problem, match="k0: no such key"):
        asked._parse(content)
    assert time.thread_time() - started < 0.3


def test_an_unknown_key_is_answered_with_the_one_that_is_like_it(running):
    status, _, content = running.ask("POST", "/v1/predict", '{"text": "good film"}')
    assert status == 422
    assert b"text: no such key; did you mean 'texts'?" in content


def test_a_large_body_to_the_wrong_place_is_told_so(running):
    data = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 300000\r\n\r\n" + b" " * 300_000
    request = b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    answer = running.raw(data + request)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.endswith(b'{"status":"live"}')


def test_a_second_head_on_a_connection_is_timed_too(running):
    with socket.create_connection(("127.0.0.1", running.port), timeout=8) as connection:
        connection.sendall(b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        received = b""
        while not received.endswith(b'{"status":"live"}'):
            received += connection.recv(65536)
        connection.sendall(b"GET /v1/hea")
        assert connection.recv(65536) == b""  # closed long before the connection might rest


def test_an_answer_that_takes_longer_than_the_head_may_is_not_cut_off(model):
    options = ["--limit", "body_seconds=0.3", *waiting(0.9)]
    with service(model, *options) as slow:
        assert slow.predict(["good film"])[0] == 200


def test_beyond_the_deadline_comes_504_and_the_service_goes_on(model):
    options = ["--limit", "deadline_seconds=0.05", *waiting(0.5)]
    with service(model, *options) as late:
        assert refused(late.predict(["good film"])) == (504, "deadline_seconds", 0.05)
        _, _, metrics = late.ask("GET", "/metrics")
        assert b"fathomer_queue_words 0.0" in metrics
        assert late.ask("GET", "/v1/health/ready")[0] == 200


@pytest.mark.parametrize(("limit", "value"), [("queue_words", 2), ("queue_requests", 1)])
def test_a_full_queue_gets_429_at_once(model, limit, value):
    options = ["--limit", f"{limit}={value}", *waiting(1)]
    with service(model, *options) as full:
        with socket.create_connection(("127.0.0.1", full.port), timeout=20) as first:
            body = b'{"texts": ["good film"]}'
            first.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
            wait_for_queue(full, 1)
            status, headers, content = full.ask("POST", "/v1/predict", body)
            first.setblocking(False)
            with pytest.raises(BlockingIOError):  # it still waits, the other did not
                first.recv(1)
            first.setblocking(True)
            assert (status, headers["retry-after"]) == (429, "1")
            error = json.loads(content)["error"]
            assert (error["code"], error["limit"]) == (limit, value)
            assert full.ask("POST", "/v1/predict", b"not even looked at")[0] == 429
            assert first.recv(12) == b"HTTP/1.1 200"
        counted = f'fathomer_rejected_total{{reason="{limit}"}} 2.0'
        assert counted.encode() in full.ask("GET", "/metrics")[2]


def test_one_connection_too_many_gets_503_until_another_is_closed(model):
    request = b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\n\r\n"
    with service(model, "--limit", "connections=2") as small:
        address = ("127.0.0.1", small.port)
        with socket.create_connection(address, 20) as first, socket.create_connection(address, 20):
            first.sendall(request)
            assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
            status, _, content = small.ask("GET", "/v1/health/live")
            error = json.loads(content)["error"]
            assert (status, error["code"], error["limit"]) == (503, "connections", 2)
        time.sleep(0.2)
        assert small.ask("GET", "/v1/health/live")[0] == 200


def test_who_hangs_up_frees_the_queue(model):
    options = ["--limit", "queue_words=2", *waiting(1)]
    with service(model, *options) as full:
        body = b'{"texts": ["good film"]}'
        with socket.create_connection(("127.0.0.1", full.port)) as leaving:
            leaving.sendall(HEAD + b"content-length: %d\r\n\r\n" % len(body) + body)
            wait_for_queue(full, 1)
        wait_for_queue(full, 0)


def test_hostile_clients_cause_neither_a_crash_nor_a_500(running):
    found = asyncio.run(attack(running.port, seconds=6, most=300))
    statuses = {status for answers in found.values() for status in answers}
    assert all(found[kind.__name__] for kind in BEHAVIOURS)
    assert statuses <= {"0", "200", "400", "408", "413", "422", "429"}
    assert "200" in found["odd_texts"]
    assert not {"400", "413", "422"} & set(found["odd_texts"])
    assert running.process.poll() is None
    assert running.predict(["good film"])[0] == 200
    assert Served(running.process, running.port).memory_mb < 2000
