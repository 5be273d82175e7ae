"""Workers: processes that read for a service, one by one and behind a real service."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.wire import Run, closed_loop, connect, post
from fathomer.files import sha256_of
from fathomer.predictor import Predictor
from fathomer.serve.worker import RemotePredictor, WorkerError, started
from tests.serve.process import service
from tests.tiny import tiny_artifact

TEXTS = ["The film was lovely.", "", "An awful zzyzx, dull and poor: ñandú", "good " * 30]


@contextmanager
def worker(model):
    options = {"number": 1, "precision": "float32", "threads": 1}
    digest = sha256_of(model / "config.json")
    with started(Predictor(tiny_artifact()), model, digest, **options) as [found]:
        yield found


def workers_of(pid):
    """Name the workers that a process has started."""
    listed = [
        each.read_text("ascii").split() for each in Path(f"/proc/{pid}/task").glob("*/children")
    ]
    lines = {int(c): Path(f"/proc/{c}/cmdline").read_bytes() for each in listed for c in each}
    return [child for child, line in lines.items() if b"fathomer.serve.worker" in line]


def gone(pid):
    """Wait until a process has ended; nobody but the system may have to collect it."""
    for _ in range(200):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text("ascii").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False


def test_a_worker_answers_as_the_predictor_does(model):
    local = Predictor(tiny_artifact())
    with worker(model) as remote:
        for max_depth in (None, 1, 2):
            found = remote.predict(TEXTS, max_depth=max_depth)
            expected = local.predict(TEXTS, max_depth=max_depth)
            assert [p.words for p in found] == [p.words for p in expected]
            for one, other in zip(found, expected, strict=True):
                assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)
        assert remote.predict([]) == []


def test_a_worker_that_cannot_read_something_says_so_and_lives_on(model, capfd):
    with worker(model) as remote:
        with pytest.raises(WorkerError, match="could not read"):
            remote.predict(TEXTS, max_depth=-3)
        assert len(remote.predict(TEXTS)) == 4
    assert "a worker could not answer" in capfd.readouterr().err


def test_a_worker_that_dies_while_it_reads_is_replaced(model):
    with worker(model) as remote:
        [first] = workers_of(os.getpid())
        os.kill(first, signal.SIGSTOP)
        timer = threading.Timer(3, os.kill, [first, signal.SIGKILL])
        timer.start()
        with pytest.raises(WorkerError, match="a new one will be started"):
            remote.predict(TEXTS)
        timer.join()
        assert not remote.able
        assert len(remote.predict(TEXTS)) == 4
        [second] = workers_of(os.getpid())
        assert second != first
    assert gone(second)


def test_a_worker_that_cannot_be_started_is_tried_again(model, monkeypatch):
    """As when there is no memory for it: what killed the first often hinders the second."""
    with worker(model) as remote:
        remote._discard()
        tries = []

        def start():
            tries.append(1)
            if len(tries) == 1:
                raise OSError(12, "Cannot allocate memory")
            return RemotePredictor._start(remote)

        monkeypatch.setattr(remote, "_start", start)
        assert len(remote.predict(TEXTS)) == 4
        assert len(tries) == 2


def test_a_worker_does_not_read_with_another_model_than_its_service(tmp_path, capfd, monkeypatch):
    """A model that was trained anew has other words at the same numbers."""
    folder = tmp_path / "model"
    tiny_artifact().save(folder)
    with worker(folder) as remote:
        replace(tiny_artifact(), temperature=2.0).save(folder)
        remote._discard()
        assert not remote.able
        # After the first attempt, the service ends while it waits for the next one.
        monkeypatch.setattr(remote._closed, "wait", lambda _: remote._closed.set())
        with pytest.raises(WorkerError, match="the service ends"):
            remote.predict(TEXTS)
    assert "is another model by now" in capfd.readouterr().err


def test_only_the_end_of_its_input_ends_a_worker(model):
    with worker(model) as remote:
        [pid] = workers_of(os.getpid())
        for number in (signal.SIGTERM, signal.SIGINT):
            os.kill(pid, number)
        assert len(remote.predict(TEXTS)) == 4
    assert gone(pid)


REQUESTS = [
    post("/v1/predict", json.dumps({"texts": [f"The film was lovely {n}.", "bad"]}).encode())
    for n in range(20)
]


def test_a_service_with_workers_gives_the_predictors_answers(model):
    expected = [p.to_dict(words=True) for p in Predictor(tiny_artifact()).predict(TEXTS)]
    with service(model, "--workers", "2", "--limit", "batch_words=8") as found:
        assert len(workers_of(found.process.pid)) == 2
        status, content = found.predict(TEXTS, depths=True)  # in parts, by both
        assert status == 200
        for answer, wanted in zip(content["predictions"], expected, strict=True):
            assert answer["words"] == wanted["words"]
            assert answer["probabilities"] == pytest.approx(wanted["probabilities"], abs=1e-5)
        run = asyncio.run(closed_loop(found.port, REQUESTS, connections=32, most=400))
        assert run.statuses == {200: 400}
        page = found.ask("GET", "/metrics")[2].decode()
        assert 'fathomer_requests_total{path="/v1/predict",status="200"} 401.0' in page


def test_a_signal_to_all_its_processes_loses_no_accepted_request(model):
    options = ["--limit", "batch_seconds=1", "--limit", "pause_seconds=1"]
    with service(model, "--workers", "2", *options) as found:
        workers = workers_of(found.process.pid)

        async def scenario():
            run = Run()
            connections = [await connect(found.port, run) for _ in range(20)]
            asked = [
                asyncio.create_task(connection.ask(request))
                for connection, request in zip(connections, REQUESTS, strict=True)
            ]
            await asyncio.sleep(0.6)
            for pid in (*workers, found.process.pid):
                os.kill(pid, signal.SIGTERM)
            answers = await asyncio.gather(*asked)
            for connection in connections:
                await connection.close()
            return [status for status, _ in answers]

        assert asyncio.run(scenario()) == [200] * 20
        assert found.process.wait(20) == 0
        assert all(map(gone, workers))


def test_a_service_survives_its_workers(model):
    with service(model, "--workers", "2") as found:
        for pid in workers_of(found.process.pid):
            os.kill(pid, signal.SIGKILL)
        statuses = [found.predict(["good film"])[0] for _ in range(6)]
        assert statuses.count(500) <= 2  # one for each, told to whoever had asked it
        assert statuses[-1] == 200
        assert len(workers_of(found.process.pid)) == 2


def test_workers_that_die_at_rest_are_replaced_before_anybody_asks(model):
    with service(model, "--workers", "2", "--limit", "deadline_seconds=60") as found:
        first = workers_of(found.process.pid)
        for pid in first:
            os.kill(pid, signal.SIGKILL)
        assert all(map(gone, first))
        end = time.monotonic() + 60
        while found.ask("GET", "/v1/health/ready")[0] != 200:
            assert time.monotonic() < end, "no new workers"
            time.sleep(0.1)
        assert [found.predict(["good film"])[0] for _ in range(4)] == [200] * 4


def test_a_worker_imports_nothing_from_where_the_service_was_started(model, tmp_path):
    (tmp_path / "random.py").write_text("raise SystemExit(7)")
    # -P: as the console script does, the service itself looks elsewhere.
    command = [sys.executable, "-P", "-m", "fathomer", "serve", str(Path(model).resolve())]
    with subprocess.Popen(
        [*command, "--port", "0", "--workers", "2"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
    ) as process:
        line = process.stderr.readline()
        process.terminate()
        assert line.startswith("serving "), line + process.stderr.read()


def test_workers_end_with_a_service_that_is_killed(model):
    with service(model, "--workers", "2") as found:
        workers = workers_of(found.process.pid)
        found.process.kill()
        assert all(map(gone, workers))
