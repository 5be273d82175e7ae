"""The load test itself: it finds what is wrong, and measures a real service."""

import asyncio
import json
import math
from types import SimpleNamespace

import pytest

import benchmarks.serving as load_module
from benchmarks.serving import Workload, _growth, _saturation, bench_serve
from benchmarks.wire import Reply, Run, closed_loop, open_loop, post
from fathomer.predictor import Predictor
from tests.tiny import tiny_artifact

pytest.importorskip("uvicorn", reason="the extra serve is not installed")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("load") / "model"
    tiny_artifact().save(folder)
    return folder


@pytest.fixture(scope="module")
def work():
    return Workload.of(Predictor(tiny_artifact()), texts_per_request=200)


def served_by(answer, scenario):
    """Run a scenario beside a server that writes ``answer(number)`` for each request it reads."""

    async def serve_and_run():
        numbers = iter(range(10_000))

        async def talk(reader, writer):
            while await reader.read(65536):
                found = answer(next(numbers))
                if found is None:
                    break
                writer.write(found)
            writer.close()

        server = await asyncio.start_server(talk, "127.0.0.1", 0)
        async with server:
            return await scenario(server.sockets[0].getsockname()[1])

    return asyncio.run(asyncio.wait_for(serve_and_run(), 20))


def reply(status, body=b"{}", head=b""):
    return b"HTTP/1.1 %d x\r\n%scontent-length: %d\r\n\r\n" % (status, head, len(body)) + body


def test_it_measures_a_service_and_compares_every_answer(model):
    found = bench_serve(
        model, connections=4, texts_per_request=50, workers=2, seconds=0.5, overload_seconds=1
    )
    assert found["correctness"]["statuses"] == {"200": 12}
    for phase in ("correctness", "saturation", "half", "double"):
        assert (found[phase]["wrong"], found[phase]["lost"]) == (0, 0)
        assert set(found[phase]["statuses"]) <= {"200", "429"}
    saturation = found["saturation"]
    assert saturation["texts_per_second"] > 0
    assert saturation["service_cpu_ms_per_request"] > saturation["client_cpu_ms_per_request"] > 0
    assert found["double"]["offered_per_second"] == pytest.approx(
        2 * saturation["requests_per_second"], abs=0.2
    )
    assert found["double"]["memory_mb"]["last_quarter"] > 50
    assert (found["exit_code"], found["log"]) == (0, [])


def test_an_answer_that_is_not_the_predictors_is_found(work):
    [first] = [[p.to_dict() for p in predictions] for predictions in work.expected[:1]]
    right = json.dumps({"predictions": first}).encode()
    other = json.loads(right)
    other["predictions"][3]["probabilities"]["positive"] += 1e-4
    fewer = {"predictions": first[:-1]}
    bodies = [right, json.dumps(other).encode(), json.dumps(fewer).encode()]
    replies = [Reply(0, 200, body, 0.1) for body in bodies]
    assert work.wrong(Run(replies)) == 2
    assert work.wrong(Run([Reply(0, 429, b"", 0.1)])) == 0


def test_what_is_lost_and_what_comes_unasked_is_counted():
    answers = [reply(200), reply(429), None, reply(200) + b"more", reply(200)]

    async def scenario(port):
        return await closed_loop(port, [post("/", b"")], connections=1, most=5)

    run = served_by(lambda number: answers[number], scenario)
    assert run.statuses == {0: 1, 200: 3, 429: 1}
    assert run.unasked == 4


def test_a_connection_that_the_server_ends_is_not_used_again():
    async def scenario(port):
        return await closed_loop(port, [post("/", b"")], connections=2, most=20)

    run = served_by(lambda _: reply(200, head=b"connection: close\r\n"), scenario)
    assert run.statuses == {200: 20}


def test_an_open_loop_sends_by_the_clock_and_counts_from_when_it_was_due():
    async def scenario(port):
        return await open_loop(port, [post("/", b"")], rate=50, seconds=1, connections=100)

    run = served_by(lambda _: reply(200), scenario)
    assert run.statuses == {200: 51}
    assert 0.9 < run.seconds < 5
    assert run.quantile(0.5) <= run.quantile(0.99)


def test_an_open_loop_without_a_free_connection_says_what_it_did_not_send():
    async def scenario(port):
        return await open_loop(port, [post("/", b"")], rate=100, seconds=0.5, connections=3)

    async def silent():
        async def wait_a_while(_, writer):
            await asyncio.sleep(3)
            writer.close()

        server = await asyncio.start_server(wait_a_while, "127.0.0.1", 0)
        async with server:
            return await scenario(server.sockets[0].getsockname()[1])

    run = asyncio.run(silent())
    assert run.statuses == {0: 3}
    assert run.unsent == 48


def test_growth_compares_the_ends_and_not_a_peak():
    assert _growth([100, 110, 110, 300, 110, 110, 111, 111]) == {
        "before": 100,
        "first_quarter": 105,
        "last_quarter": 111,
        "most": 300,
    }


def test_what_is_refused_or_lost_is_no_throughput():
    replies = [Reply(0, status, b"", 0.1) for status in (200, 429, 0, 200, 503)]
    assert Run(replies, seconds=0.5).good_per_second == 4


def test_a_service_that_refuses_all_has_no_throughput(work, monkeypatch):
    refused = Run([Reply(0, 429, b"", 0.1)] * 5, seconds=0.1)
    monkeypatch.setattr(load_module, "_closed", lambda *_, **__: refused)
    predictor = Predictor(tiny_artifact())
    found = _saturation(SimpleNamespace(cpu_seconds=0.0), work, predictor, 2, 0.1, 1)
    assert found["requests_per_second"] == found["texts_per_second"] == 0


def test_no_good_answer_has_no_times():
    assert math.isnan(Run([Reply(0, 429, b"", 0.1)]).quantile(0.5))
