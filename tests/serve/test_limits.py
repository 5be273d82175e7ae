"""The limits on requests and on the queue, tested against a real process."""

import asyncio
import json
import time
from dataclasses import fields
from pathlib import Path

import pytest

from fathomer.predictor import Predictor
from fathomer.serve.errors import ApiError
from fathomer.serve.limits import Limits
from fathomer.serve.request import RequestParser
from tests.serve.process import question, service
from tests.tiny import tiny_artifact

ROOT = Path(__file__).parents[2]


def limits_table():
    """Return the table of docs/serving.md as generated from the limits."""
    rows = [f"| `{f.name}` | {f.default:,} | {f.metadata['doc']} |" for f in fields(Limits)]
    return "\n".join(["| limit | default | meaning |", "|---|---:|---|", *rows])


def test_every_limit_is_documented():
    assert limits_table() in (ROOT / "docs" / "serving.md").read_text(encoding="utf-8")


def waiting(seconds):
    """Return options that let every batch wait for more requests, so that the queue fills."""
    return ["--limit", f"batch_seconds={seconds}", "--limit", f"pause_seconds={seconds}"]


def wait_for_queue(service, requests):
    """Wait until so many requests are queued."""
    for _ in range(200):
        if f"fathomer_queue_requests {requests}.0".encode() in service.ask("GET", "/metrics")[2]:
            return
        time.sleep(0.05)
    raise AssertionError(f"never {requests} in the queue")


def error_of(answer):
    status, content = answer
    return status, content["error"]["code"], content["error"].get("limit")


@pytest.fixture(scope="module")
def strict(model):
    limits = {
        "texts_per_request": 3,
        "characters_per_text": 60,
        "words_per_text": 5,
        "words_per_request": 10,
    }
    options = [part for name, value in limits.items() for part in ("--limit", f"{name}={value}")]
    with service(model, *options) as found:
        yield found


def test_an_exceeded_limit_is_named_with_its_value(strict):
    assert error_of(strict.predict(["a"] * 4)) == (422, "texts_per_request", 3)
    assert error_of(strict.predict(["a" * 61])) == (422, "characters_per_text", 60)
    assert error_of(strict.predict(["a b c d e f"])) == (422, "words_per_text", 5)
    assert error_of(strict.predict(["a b c d"] * 3)) == (422, "words_per_request", 10)
    assert strict.predict(["a b c d e", "a b c d e", "x" * 60])[0] == 422
    assert strict.predict(["a b c d e", "a b c d", "x" * 60])[0] == 200


def test_contributions_count_all_words_that_are_read_for_them(strict):
    assert strict.predict(["a b c", "d"], contributions=True)[0] == 200
    assert error_of(strict.predict(["a b c", "d e"], contributions=True)) == (
        422, "words_per_request", 10,
    )  # fmt: skip


def test_splitting_stops_at_the_word_limit():
    class CountingPredictor(Predictor):
        words = 0

        def split(self, texts):
            found = super().split(texts)
            self.words += sum(len(text.ids) for text in found)
            return found

    predictor = CountingPredictor(tiny_artifact())
    parser = RequestParser(predictor, Limits(words_per_request=300))
    with pytest.raises(ApiError, match="more than 300 words"):
        asyncio.run(parser.split(["! " * 6_000] * 50))
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
        b'{"texts": [1, null, {}]}',
        b'{"texts": ["a"], "texts": [NaN]}',
        b'{"texts": ["a"], "depth": true}',
        b'{"texts": ["a"], "depths": 1}',
        b'{"texts": ["a"], "contributions": 1}',
        b'{"texts": ["a"], "max_depth": 0}',
        b'{"texts": ["a"], "max_depth": 5}',
        b'{"texts": ["a"], "max_depth": true}',
        b'{"texts": ["a"], "max_depth": 1e999}',
        b'{"texts": ["a"], "max_depth": -99999999999999999999999999}',
        b'{"texts": ["\\ud800 alone", "\\u0000"]}',
        b'{"texts": ["\xff"]}',
        b'{"texts": ["\xed\xa0\x80"]}',
        b'\xff\xfe{"texts": []}',
        b"[" * 40_000,
        b'{"texts":' * 4_000,
    ],
)
def test_an_invalid_body_gets_422_without_a_traceback(running, body):
    status, _, content = running.ask("POST", "/v1/predict", body)
    error = json.loads(content)["error"]
    assert (status, error["code"]) == (422, "invalid")
    assert "Traceback" not in error["message"]
    assert len(error["message"]) < 200


def test_a_single_string_for_texts_shows_how_to_write_a_list(running):
    _, _, content = running.ask("POST", "/v1/predict", b'{"texts": "one"}')
    message = json.loads(content)["error"]["message"]
    assert message == 'texts: must be a list, as in {"texts": ["A text."]}'


def test_a_body_may_be_as_large_as_the_limit(running):
    body = b'{"texts": []}'.ljust(50_000)
    assert running.ask("POST", "/v1/predict", body)[0] == 200
    assert running.ask("POST", "/v1/predict", body + b" ")[0] == 413


def test_many_unknown_keys_are_rejected_quickly():
    content = b"{" + b",".join(b'"k%d":1' % n for n in range(100_000)) + b"}"
    parser = RequestParser(Predictor(tiny_artifact()), Limits())
    started = time.thread_time()
    with pytest.raises(ApiError, match="k0: no such key"):
        parser.parse(content)
    assert time.thread_time() - started < 0.3


def test_an_unknown_key_gets_a_suggestion(running):
    status, _, content = running.ask("POST", "/v1/predict", '{"text": "good film"}')
    assert status == 422
    assert b"text: no such key; did you mean 'texts'?" in content


def test_an_answer_may_take_longer_than_the_time_to_send_a_request(model):
    options = ["--limit", "body_seconds=0.3", *waiting(0.9)]
    with service(model, *options) as slow:
        assert slow.predict(["good film"])[0] == 200


def test_a_missed_deadline_gets_504_and_empties_the_queue(model):
    options = ["--limit", "deadline_seconds=0.05", *waiting(0.5)]
    with service(model, *options) as late:
        assert error_of(late.predict(["good film"])) == (504, "deadline_seconds", 0.05)
        _, _, metrics = late.ask("GET", "/metrics")
        assert b"fathomer_queue_words 0.0" in metrics
        assert late.ask("GET", "/v1/health/ready")[0] == 200


@pytest.mark.parametrize(("limit", "value"), [("queue_words", 2), ("queue_requests", 1)])
def test_a_full_queue_gets_429_at_once(model, limit, value):
    options = ["--limit", f"{limit}={value}", *waiting(1)]
    with service(model, *options) as full:
        with full.connect_raw() as first:
            first.sendall(question("good film"))
            wait_for_queue(full, 1)
            status, headers, content = full.ask("POST", "/v1/predict", b'{"texts": ["good film"]}')
            first.setblocking(False)
            with pytest.raises(BlockingIOError):  # the first one is still queued
                first.recv(1)
            first.setblocking(True)
            assert (status, headers["retry-after"]) == (429, "1")
            error = json.loads(content)["error"]
            assert (error["code"], error["limit"]) == (limit, value)
            assert full.ask("POST", "/v1/predict", b"not even parsed")[0] == 429
            assert first.recv(12) == b"HTTP/1.1 200"
        counted = f'fathomer_rejected_total{{reason="{limit}"}} 2.0'
        assert counted.encode() in full.ask("GET", "/metrics")[2]


def test_a_client_that_disconnects_leaves_the_queue(model):
    options = ["--limit", "queue_words=2", *waiting(1)]
    with service(model, *options) as full:
        with full.connect_raw() as leaving:
            leaving.sendall(question("good film"))
            wait_for_queue(full, 1)
        wait_for_queue(full, 0)
