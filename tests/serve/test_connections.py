"""Slow, endless and pipelined input on connections of a real service."""

import json
import re
import socket
import time
from pathlib import Path

import pytest

from tests.serve.process import LOOPBACK, PREDICT, question, read_all, service

RESET = (ConnectionResetError, BrokenPipeError)
CHUNK = b"2710\r\n" + b" " * 10_000 + b"\r\n"


@pytest.mark.parametrize("announced", [True, False])
def test_a_body_that_is_too_large_gets_413(running, announced):
    if announced:
        data = PREDICT + b"content-length: 60000\r\n\r\n" + b" " * 60_000
    else:
        data = PREDICT + b"transfer-encoding: chunked\r\n\r\n" + CHUNK * 6 + b"0\r\n\r\n"
    answer = running.raw(data)
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert answer.endswith(b'"limit":50000}}')


def test_an_endless_body_is_cut_off(running):
    with running.connect_raw() as connection:
        connection.sendall(PREDICT + b"transfer-encoding: chunked\r\n\r\n")
        with pytest.raises(RESET):
            connection.sendall(CHUNK * 2_000)


def test_a_body_that_does_not_arrive_in_time_gets_408(running):
    started = time.perf_counter()
    answer = running.raw(PREDICT + b"content-length: 100\r\n\r\n{")
    assert answer.startswith(b"HTTP/1.1 408 ")
    assert b'"code":"body_seconds"' in answer
    assert 0.9 < time.perf_counter() - started < 8


@pytest.mark.parametrize("sent", [b"", b"POST /v1/pre", PREDICT])
def test_a_connection_is_closed_if_the_headers_do_not_arrive_in_time(running, sent):
    started = time.perf_counter()
    assert running.raw(sent) == b""
    assert time.perf_counter() - started < 8


@pytest.mark.parametrize("part", [b"x: " + b"y" * 900 + b"\r\n", b"y"], ids=["lines", "one line"])
def test_endless_headers_are_cut_off(running, part):
    with running.connect_raw() as connection:
        connection.sendall(PREDICT + b"x: ")
        with pytest.raises(RESET):
            connection.sendall(part * (20_000_000 // len(part)))


def test_endless_trailers_are_cut_off(running):
    with running.connect_raw() as connection:
        connection.sendall(PREDICT + b"transfer-encoding: chunked\r\n\r\n1\r\n{\r\n0\r\n")
        with pytest.raises(RESET):
            connection.sendall(b"x: y\r\n" * 3_000_000)


def test_pipelined_requests_are_answered_in_order(running):
    request = b"GET /v1/health/%s HTTP/1.1\r\nhost: x\r\n%s\r\n"
    first = b"".join(request % (name, b"") for name in (b"live", b"ready", b"live"))
    answers = running.raw(first + request % (b"ready", b"connection: close\r\n"))
    assert re.findall(rb'"status":"(\w+)"', answers) == [b"live", b"ready", b"live", b"ready"]


def test_of_too_many_pipelined_requests_the_accepted_ones_are_answered(running):
    for sent in (12, 2_000):
        answers = running.raw(question("good film") * sent)
        assert 9 <= answers.count(b"HTTP/1.1 200") == answers.count(b"HTTP/1.1 ") <= min(sent, 100)
        assert answers.count(b'"label":"positive"') == answers.count(b"HTTP/1.1 ")


def established(port):
    """Return the number of open connections to a port."""
    lines = [line.split() for line in Path("/proc/net/tcp").read_text("ascii").splitlines()[1:]]
    return sum(each[1].endswith(f":{port:04X}") and each[3] == "01" for each in lines)


def test_a_client_that_does_not_read_its_answer_is_disconnected(model):
    """Such clients could hold connections and answers in memory forever."""
    request = question(*["good " * 60] * 256, depths=True)
    with service(model, "--limit", "idle_seconds=1") as found, socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect((LOOPBACK, found.port))
        client.sendall(request * 9)  # 5 MB of answers, more than the socket buffers hold
        assert established(found.port) == 1
        deadline = time.monotonic() + 30
        while established(found.port):
            assert time.monotonic() < deadline, "the connection is still open"
            time.sleep(0.1)
        assert found.predict(["good film"])[0] == 200


def test_a_large_body_to_a_wrong_path_gets_404_and_the_connection_stays_usable(running):
    data = b"POST /predict HTTP/1.1\r\nhost: x\r\ncontent-length: 300000\r\n\r\n" + b" " * 300_000
    request = b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n"
    answer = running.raw(data + request)
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert answer.endswith(b'{"status":"live"}')


def test_the_headers_of_a_second_request_are_timed_too(running):
    with running.connect_raw() as connection:
        connection.settimeout(8)
        connection.sendall(b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\n\r\n")
        received = b""
        while not received.endswith(b'{"status":"live"}'):
            received += connection.recv(65536)
        connection.sendall(b"GET /v1/hea")
        assert connection.recv(65536) == b""  # closed long before the idle timeout


def test_a_connection_beyond_the_limit_gets_503_until_another_is_closed(model):
    request = b"GET /v1/health/live HTTP/1.1\r\nhost: x\r\n\r\n"
    with service(model, "--limit", "connections=2") as small:
        with small.connect_raw() as first, small.connect_raw():
            first.sendall(request)
            assert first.recv(65536).startswith(b"HTTP/1.1 200 ")
            status, _, content = small.ask("GET", "/v1/health/live")
            error = json.loads(content)["error"]
            assert (status, error["code"], error["limit"]) == (503, "connections", 2)
        time.sleep(0.2)
        assert small.ask("GET", "/v1/health/live")[0] == 200


def test_a_connection_beyond_the_limit_is_closed_at_once(model):
    """It times out if the service waits for the request, or until a connection is idle."""
    limits = ("connections=1", "body_seconds=3600", "idle_seconds=3600")
    with (
        service(model, *(part for limit in limits for part in ("--limit", limit))) as small,
        small.connect_raw(),
        small.connect_raw() as second,
    ):
        assert read_all(second).startswith(b"HTTP/1.1 503 ")
