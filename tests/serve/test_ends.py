"""How a service ends and begins again, under load."""

import asyncio
import json
import signal
import time
from itertools import count

from benchmarks.wire import Run, closed_loop, connect, post
from fathomer.predictor import Predictor
from tests.serve.process import service
from tests.tiny import tiny_artifact

REQUESTS = [
    post("/v1/predict", json.dumps({"texts": [f"The film was lovely {n}."]}).encode())
    for n in range(20)
]


def test_after_sigterm_every_accepted_request_is_answered(model):
    """A large batch time keeps requests in the queue while the signal comes."""
    with service(model, "--limit", "batch_seconds=1", "--limit", "pause_seconds=1") as found:

        async def scenario():
            run = Run()
            connections = [await connect(found.port, run) for _ in range(20)]
            asked = [
                asyncio.create_task(connection.ask(request))
                for connection, request in zip(connections, REQUESTS, strict=True)
            ]
            await asyncio.sleep(0.4)
            found.process.send_signal(signal.SIGTERM)
            answers = await asyncio.gather(*asked)
            for connection in connections:
                await connection.close()
            return answers, run.unasked

        answers, unasked = asyncio.run(scenario())
        assert [status for status, _ in answers] == [200] * 20
        assert unasked == 0
        assert found.process.wait(20) == 0
    [expected] = Predictor(tiny_artifact()).predict(["The film was lovely 7."])
    [answer] = json.loads(answers[7][1])["predictions"]
    assert abs(answer["probabilities"]["positive"] - expected.probabilities["positive"]) < 1e-5


def test_sigterm_under_steady_load_loses_no_request(model):
    """Answers tell the clients to go; what they have sent until then is answered."""
    with service(model) as found:
        statuses = []

        async def ask_until_told_to_go(run):
            connection = await connect(found.port, run)
            for number in count():
                if not connection.open:
                    return
                status, _ = await connection.ask(REQUESTS[number % len(REQUESTS)])
                statuses.append(status)
                await asyncio.sleep(0.02 * (number % 3))  # some rest when the signal comes
                if time.perf_counter() - begun > 20:
                    return

        async def scenario():
            run = Run()
            clients = [asyncio.create_task(ask_until_told_to_go(run)) for _ in range(24)]
            await asyncio.sleep(1.5)
            found.process.send_signal(signal.SIGTERM)
            await asyncio.gather(*clients)
            return run.unasked

        begun = time.perf_counter()
        assert asyncio.run(scenario()) == 0
        assert time.perf_counter() - begun < 20
        assert len(statuses) > 24
        assert set(statuses) == {200}
        assert found.process.wait(20) == 0


def test_sigint_ends_it_in_order_too(model):
    with service(model) as found:
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(20) == 0
        assert found.process.stderr.read() == ""


def test_killed_under_load_it_is_ready_again_in_seconds(model):
    with service(model) as found:
        port = found.port

        async def scenario():
            run = Run()
            connections = [await connect(port, run) for _ in range(20)]
            asked = [asyncio.create_task(c.ask(REQUESTS[0])) for c in connections]
            await asyncio.sleep(0.01)
            found.process.kill()
            return {status for status, _ in await asyncio.gather(*asked)}

        assert asyncio.run(scenario()) <= {0, 200}
        assert found.process.wait(20) == -signal.SIGKILL
    begun = time.perf_counter()
    with service(model, "--port", str(port)) as again:
        assert again.ask("GET", "/v1/health/ready")[0] == 200
        assert time.perf_counter() - begun < 30


def test_many_connections_get_right_answers_without_an_error(running):
    run = asyncio.run(closed_loop(running.port, REQUESTS, connections=32, most=400))
    expected = Predictor(tiny_artifact()).predict([f"The film was lovely {n}." for n in range(20)])
    assert run.statuses == {200: 400}
    assert run.unasked == 0
    for reply in run.replies:
        [answer] = json.loads(reply.body)["predictions"]
        wanted = expected[reply.request].probabilities["positive"]
        assert abs(answer["probabilities"]["positive"] - wanted) < 1e-5
