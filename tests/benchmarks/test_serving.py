"""The load test finds wrong, failed and lost answers, and measures a real service."""

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import count

import pytest

from benchmarks.load import generate_load, outcome_of
from benchmarks.serving import make_requests
from fathomer.predictor import Predictor
from tests.forked import run_forked
from tests.tiny import tiny_artifact

pytest.importorskip("uvicorn", reason="the extra serve is not installed")
# Not importorskip: importing locust would patch the standard library of the tests.
pytestmark = pytest.mark.skipif(find_spec("locust") is None, reason="locust is not installed")


@pytest.fixture(scope="module")
def request_and_answer():
    """A request, and the body of the right answer to it."""
    [request, *_] = make_requests(Predictor(tiny_artifact()), texts_per_request=5)
    return request, json.dumps({"predictions": request["expected"]}).encode()


REFUSAL = b'{"error": {"code": "queue_words", "message": "", "limit": 5}}'


def test_a_service_is_measured_and_every_answer_checked(bench, tmp_path):
    tiny_artifact().save(tmp_path / "model")
    options = ["--connections", "4", "--texts-per-request", "50", "--seconds", "0.5"]
    code, out, err = bench("serving", "model", *options, "--workers", "2", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["correctness"]["statuses"] == {"200": 12}
    for phase in ("correctness", "saturation", "half", "overload"):
        assert found[phase]["right"] > 0
        assert [found[phase][name] for name in ("wrong", "failed", "lost")] == [0, 0, 0]
        assert 0 < found[phase]["p50_ms"] <= found[phase]["p99_ms"]
        assert set(found[phase]["statuses"]) <= {"200", "429"}
        assert found[phase]["memory_mb"]["peak"] > 50
    saturation = found["saturation"]
    assert saturation["service_cpu_ms_per_request"] > saturation["client_cpu_ms_per_request"] > 0
    assert saturation["part_of_offline"] == pytest.approx(
        saturation["texts_per_second"] / saturation["offline_texts_per_second"], abs=0.001
    )
    offered = found["overload"]["offered_per_second"]
    assert offered == pytest.approx(2 * saturation["requests_per_second"], abs=0.2)
    assert (found["exit_code"], found["log"]) == (0, [])


def test_an_answer_must_equal_the_prediction_of_each_text_in_order(request_and_answer):
    request, right = request_and_answer
    expected = request["expected"]

    def outcome(predictions):
        return outcome_of(200, json.dumps({"predictions": predictions}).encode(), expected)

    near, far = json.loads(right)["predictions"], json.loads(right)["predictions"]
    near[3]["probabilities"]["positive"] += 9e-6
    far[3]["probabilities"]["positive"] += 1e-4
    assert outcome(expected) == outcome(near) == "right"
    assert outcome(far) == "wrong"
    assert outcome(expected[:-1]) == "wrong"
    assert outcome([*expected[1:], expected[0]]) == "wrong"
    assert outcome([{**expected[0], "label": "other"}, *expected[1:]]) == "wrong"


@pytest.mark.parametrize(
    ("status", "body", "outcome"),
    [
        (200, b"{}", "wrong"),
        (200, b"no JSON", "wrong"),
        (429, REFUSAL, "refused"),
        (503, REFUSAL, "refused"),
        (429, b"busy", "failed"),
        (429, b'{"error": "busy"}', "failed"),
        (500, REFUSAL, "failed"),
        (0, b"", "lost"),
    ],
)
def test_a_refusal_must_name_its_limit_and_other_statuses_are_failures(status, body, outcome):
    assert outcome_of(status, body, []) == outcome


@contextmanager
def fake_service(answers):
    """Serve a list of answers in turns: a status and body, None to close, or a part of a body."""
    numbers = count()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            self.rfile.read(int(self.headers["content-length"]))
            answer = answers[next(numbers) % len(answers)]
            if answer is None:
                self.close_connection = True
                return
            status, body, *cut = answer
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body[: cut[0]] if cut else body)
            self.close_connection = bool(cut)

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server.server_port
        server.shutdown()


def loaded(port, request, *, users=1, rate=None, seconds=30, max_requests):
    plan = {"port": port, "users": users, "rate": rate, "seconds": seconds}
    plan |= {"max_requests": max_requests, "requests": [request]}
    return generate_load(plan, watch=lambda: None)


def test_wrong_refused_failed_and_lost_answers_are_counted_separately(request_and_answer):
    request, right = request_and_answer
    answers = [
        (200, right),
        (200, b"{}"),
        (429, REFUSAL),
        (500, b"{}"),
        None,
        (200, right, 20),
    ]
    with fake_service(answers) as port:
        found = loaded(port, request, max_requests=12)
    counts = {name: found[name] for name in ("right", "wrong", "refused", "failed", "lost")}
    assert counts == {"right": 2, "wrong": 2, "refused": 2, "failed": 2, "lost": 4}
    assert found["statuses"] == {"0": 4, "200": 4, "429": 2, "500": 2}


def test_a_service_that_refuses_everything_has_no_latency(request_and_answer):
    request, _ = request_and_answer
    with fake_service([(429, REFUSAL)]) as port:
        found = loaded(port, request, users=3, max_requests=30)
    assert (found["refused"], found["right"], found["p99_ms"]) == (30, 0, None)


def test_a_rate_is_kept_until_the_time_is_up(request_and_answer):
    request, right = request_and_answer
    with fake_service([(200, right)]) as port:
        found = loaded(port, request, users=10, rate=50, seconds=2, max_requests=1_000)
    assert 50 <= found["right"] <= 110


def test_only_the_load_generator_imports_locust():
    command = "import sys, benchmarks.serving; sys.exit('gevent' in sys.modules)"
    assert run_forked(["-c", command]).returncode == 0
