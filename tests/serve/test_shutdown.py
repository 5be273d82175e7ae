"""Shutdown and restart of a service under load."""

import json
import signal
import time
from concurrent.futures import ThreadPoolExecutor

from fathomer.predictor import Predictor
from tests.serve.process import accepted, question, readable, service
from tests.tiny import tiny_artifact

TEXTS = [f"The film was lovely {n}." for n in range(20)]
REQUESTS = [question(text) for text in TEXTS]


def ask_on(connection, text):
    """Request a prediction on an open connection; the answer has its body as ``content``."""
    connection.request("POST", "/v1/predict", json.dumps({"texts": [text]}))
    answer = connection.getresponse()
    answer.content = answer.read()
    return answer


def positive(answer):
    """Return the probability in the body of an answer to a single text."""
    return json.loads(answer)["predictions"][0]["probabilities"]["positive"]


def is_close(answer, prediction):
    return abs(positive(answer) - prediction.probabilities["positive"]) < 1e-5


def test_after_sigterm_every_accepted_request_is_answered_once(model):
    """A long wait for more requests keeps them in the queue when the signal arrives."""
    with service(model, "--limit", "batch_seconds=1", "--limit", "pause_seconds=1") as found:
        with ThreadPoolExecutor(20) as clients:
            answers = clients.map(found.raw, REQUESTS)
            while accepted(found) < 20:
                time.sleep(0.05)
            found.process.send_signal(signal.SIGTERM)
        answers = list(answers)
        assert all(answer.startswith(b"HTTP/1.1 200 ") for answer in answers)
        assert [answer.count(b"HTTP/1.1") for answer in answers] == [1] * 20
        assert found.process.wait(60) == 0
    [expected] = Predictor(tiny_artifact()).predict(TEXTS[7:8])
    assert is_close(answers[7].partition(b"\r\n\r\n")[2], expected)


def test_sigterm_under_steady_load_loses_no_request(model):
    """Answers close the connections; whatever was sent before that is answered."""
    with service(model) as found:
        started, answered = time.perf_counter(), set()

        def ask_until_closed(client):
            connection = found.connect()
            statuses = []
            while time.perf_counter() - started < 60:
                answer = ask_on(connection, TEXTS[client % 20])
                statuses.append(answer.status)
                answered.add(client)
                if answer.will_close:
                    break
                pause = 0.02 * (len(statuses) % 3)  # some are idle when the signal arrives
                if readable(connection.sock, pause):
                    assert connection.sock.recv(1) == b"", "bytes without a request"
                    break
            return statuses

        with ThreadPoolExecutor(24) as clients:
            results = clients.map(ask_until_closed, range(24))
            while len(answered) < 24:  # a connection that was never accepted is not lost
                time.sleep(0.05)
            time.sleep(0.5)
            found.process.send_signal(signal.SIGTERM)
        statuses = [status for result in results for status in result]
        assert time.perf_counter() - started < 60
        assert len(statuses) > 24
        assert set(statuses) == {200}
        assert found.process.wait(60) == 0


def test_sigint_shuts_down_in_order_too(model):
    with service(model) as found:
        found.process.send_signal(signal.SIGINT)
        assert found.process.wait(60) == 0
        assert found.process.stderr.read() == ""


def test_a_service_killed_under_load_can_be_restarted_within_seconds(model):
    with service(model) as found:

        def status(request):
            try:
                with found.connect_raw() as connection:
                    connection.sendall(request)
                    return connection.recv(65536)[9:12]
            except ConnectionError:
                return b""

        with ThreadPoolExecutor(20) as clients:
            statuses = clients.map(status, REQUESTS)
            time.sleep(0.01)
            found.process.kill()
        assert set(statuses) <= {b"", b"200"}
        assert found.process.wait(60) == -signal.SIGKILL
    started = time.perf_counter()
    with service(model, "--port", str(found.port)) as again:
        assert again.ask("GET", "/v1/health/ready")[0] == 200
        assert time.perf_counter() - started < 30


def test_many_connections_get_the_right_answers(running):
    expected = Predictor(tiny_artifact()).predict(TEXTS)

    def ask_repeatedly(client):
        connection = running.connect()
        for number in range(client, client + 12):
            answer = ask_on(connection, TEXTS[number % 20])
            assert answer.status == 200
            assert is_close(answer.content, expected[number % 20])
        connection.close()
        return 12

    with ThreadPoolExecutor(32) as clients:
        assert sum(clients.map(ask_repeatedly, range(32))) == 384
