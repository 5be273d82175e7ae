"""Worker processes, on their own and behind a service."""

import os
import re
import signal
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

import fathomer
from fathomer.files import sha256_of
from fathomer.predictor import Predictor
from fathomer.serve.worker import WorkerError, WorkerPredictor, start_workers
from tests.forked import Forked, gone
from tests.serve.process import accepted, question, service
from tests.tiny import tiny_artifact

TEXTS = ["The film was lovely.", "", "An awful zzyzx, dull and poor: ñandú", "good " * 30]


class ForkedWorker:
    """A worker process that need not import PyTorch; it has what a worker needs of ``Popen``."""

    def __init__(self, command, **_):
        assert command[:2] == [sys.executable, "-P"]
        forked = Forked(*command[2:], pipes=True, program="tests.forked")
        forked.stderr.close()
        self.stdin, self.stdout = forked.stdin.detach(), forked.stdout.detach()
        self.pid, self.poll = forked.pid, forked.poll
        self.kill, self.wait = forked.kill, forked.wait


@contextmanager
def worker(model):
    options = {"number": 1, "precision": "float32", "threads": 1}
    digest = sha256_of(model / "config.json")
    with start_workers(fathomer.load(model), model, digest, **options) as [found]:
        yield found


@contextmanager
def forked_worker(model):
    """Start a worker that is forked, also whenever it is started again."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WorkerPredictor, "_start", lambda self: ForkedWorker(self._command))
        with worker(model) as found:
            found._start = partial(ForkedWorker, found._command)
            patch.undo()
            yield found


@pytest.fixture(scope="module")
def remote(model):
    """A worker for all tests that leave it alive; the end of its input ends it."""
    with forked_worker(model) as found:
        yield found
        last = found._process.pid
    assert gone(last)


def workers_of(pid):
    """Return the process ids of the workers of a service."""
    listed = [
        each.read_text("ascii").split() for each in Path(f"/proc/{pid}/task").glob("*/children")
    ]
    lines = {int(c): Path(f"/proc/{c}/cmdline").read_bytes() for each in listed for c in each}
    return [child for child, line in lines.items() if b"fathomer.serve.worker" in line]


def test_a_worker_predicts_what_the_predictor_does(remote):
    local = Predictor(tiny_artifact())
    for max_depth in (None, 1, 2):
        found = remote.predict(TEXTS, max_depth=max_depth)
        expected = local.predict(TEXTS, max_depth=max_depth)
        assert [p.words for p in found] == [p.words for p in expected]
        for one, other in zip(found, expected, strict=True):
            assert one.probabilities == pytest.approx(other.probabilities, abs=1e-6)
    assert remote.predict([]) == []
    found, expected = (p.predict(TEXTS[:9], contributions=True) for p in (remote, local))
    for one, other in zip(found, expected, strict=True):
        effects = [word.contribution for word in other.words]
        assert [word.contribution for word in one.words] == pytest.approx(effects, abs=1e-4)


def test_a_worker_keeps_a_depth_budget(budgeted):
    local = fathomer.load(budgeted)
    with forked_worker(budgeted) as own:
        for budget in (1.5, 4):
            found = own.predict(TEXTS, depth_budget=budget)
            expected = local.predict(TEXTS, depth_budget=budget)
            assert [p.words for p in found] == [p.words for p in expected]


def test_an_error_in_a_worker_is_reported_and_the_worker_goes_on(model, capfd):
    with worker(model) as own:  # its standard error is that of the test
        with pytest.raises(WorkerError, match="could not classify"):
            own.predict(TEXTS, max_depth=-3)
        assert len(own.predict(TEXTS)) == 4
    assert "a worker could not classify texts" in capfd.readouterr().err


def test_a_worker_that_dies_during_a_prediction_is_replaced(remote):
    first = remote._process.pid
    os.kill(first, signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, [first, signal.SIGKILL])
    timer.start()
    with pytest.raises(WorkerError, match="a new one will be started"):
        remote.predict(TEXTS)
    timer.join()
    assert not remote.alive
    assert len(remote.predict(TEXTS)) == 4
    assert remote._process.pid != first


def test_starting_a_worker_is_retried(remote, monkeypatch):
    """Lack of memory, for example, may kill a worker and also prevent the next from starting."""
    remote._kill()
    tries, start_one = [], remote._start

    def start():
        tries.append(1)
        if len(tries) == 1:
            raise OSError(12, "Cannot allocate memory")
        return start_one()

    monkeypatch.setattr(remote, "_start", start)
    assert len(remote.predict(TEXTS)) == 4
    assert len(tries) == 2


def test_a_worker_refuses_another_model_than_its_service(tmp_path, capfd, monkeypatch):
    """A retrained model may have other words at the same ids."""
    folder = tmp_path / "model"
    tiny_artifact().save(folder)
    with worker(folder) as own:
        replace(tiny_artifact(), temperature=2.0).save(folder)
        own._kill()
        assert not own.alive
        # The service shuts down during the pause after the first attempt.
        monkeypatch.setattr(own._closed, "wait", lambda _: own._closed.set())
        with pytest.raises(WorkerError, match="the service is shutting down"):
            own.predict(TEXTS)
    assert "the model was replaced" in capfd.readouterr().err


def test_a_worker_exits_only_at_the_end_of_its_input(remote):
    before = remote.predict(TEXTS)
    pid = remote._process.pid
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(pid, number)
    assert remote.predict(TEXTS) == before
    assert remote._process.pid == pid
    assert remote.alive


REQUESTS = [question(f"The film was lovely {n}.", "bad") for n in range(20)]


@pytest.fixture(scope="module")
def two_workers(model, tmp_path_factory):
    """A service with two workers, for all tests that leave it with two."""
    folder = tmp_path_factory.mktemp("started_in")
    (folder / "random.py").write_text("raise SystemExit(7)")
    limits = ("--limit", "batch_words=8", "--limit", "deadline_seconds=60")
    with service(model, "--workers", "2", *limits, folder=folder) as found:
        yield found


def answered(service):
    """Return the number of predictions that a service has answered with 200."""
    page = service.ask("GET", "/metrics")[2].decode()
    found = re.search(
        r'^fathomer_requests_total{path="/v1/predict",status="200"} (.+)$', page, re.M
    )
    return float(found[1]) if found else 0


def test_a_service_with_workers_predicts_what_the_predictor_does(two_workers):
    expected = [p.to_dict(words=True) for p in Predictor(tiny_artifact()).predict(TEXTS)]
    assert len(workers_of(two_workers.process.pid)) == 2
    before = answered(two_workers)
    status, content = two_workers.predict(TEXTS, depths=True)  # in several batches, by both workers
    assert status == 200
    for answer, wanted in zip(content["predictions"], expected, strict=True):
        assert answer["words"] == wanted["words"]
        assert answer["probabilities"] == pytest.approx(wanted["probabilities"], abs=1e-5)
    with ThreadPoolExecutor(32) as clients:
        answers = clients.map(lambda n: two_workers.predict([f"A good film {n}."]), range(400))
        assert {status for status, _ in answers} == {200}
    assert answered(two_workers) - before == 401


def test_a_signal_to_all_processes_loses_no_accepted_request(model):
    options = ["--limit", "batch_seconds=1", "--limit", "pause_seconds=1"]
    with service(model, "--workers", "2", *options) as found:
        workers = workers_of(found.process.pid)
        with ThreadPoolExecutor(20) as clients:
            answers = clients.map(found.raw, REQUESTS)
            while accepted(found) < 20:
                time.sleep(0.05)
            for pid in (*workers, found.process.pid):
                os.kill(pid, signal.SIGTERM)
        assert [answer[9:12] for answer in answers] == [b"200"] * 20
        assert found.process.wait(60) == 0
        assert all(map(gone, workers))


def test_a_service_survives_the_death_of_its_workers(two_workers):
    for pid in workers_of(two_workers.process.pid):
        os.kill(pid, signal.SIGKILL)
    statuses = [two_workers.predict(["good film"])[0] for _ in range(6)]
    assert statuses.count(500) <= 2  # at most one per worker that died
    assert statuses[-1] == 200
    assert len(workers_of(two_workers.process.pid)) == 2


def test_workers_that_die_while_idle_are_replaced_before_the_next_request(two_workers):
    first = workers_of(two_workers.process.pid)
    for pid in first:
        os.kill(pid, signal.SIGKILL)
    assert all(map(gone, first))
    end = time.monotonic() + 60
    while two_workers.ask("GET", "/v1/health/ready")[0] != 200:
        assert time.monotonic() < end, "no new workers"
        time.sleep(0.1)
    assert [two_workers.predict(["good film"])[0] for _ in range(4)] == [200] * 4


def test_a_worker_imports_nothing_from_the_current_folder(two_workers):
    workers = workers_of(two_workers.process.pid)
    assert len(workers) == 2
    assert all(Path(f"/proc/{pid}/cwd/random.py").exists() for pid in workers)


def test_workers_exit_when_the_service_is_killed(model):
    with service(model, "--workers", "2") as found:
        workers = workers_of(found.process.pid)
        found.process.kill()
        assert all(map(gone, workers))


def test_a_stopped_worker_is_replaced_after_the_deadline(remote, monkeypatch):
    assert remote.predict(["good"])[0].label == "positive"
    os.kill(remote._process.pid, signal.SIGSTOP)
    began = time.monotonic()
    with monkeypatch.context() as patch:
        patch.setattr(remote, "_deadline", 1.0)
        with pytest.raises(WorkerError, match="a worker died"):
            remote.predict(["good"])
    assert 1 <= time.monotonic() - began < 40, "the deadline is 60 seconds otherwise"
    assert remote.predict(["good"])[0].label == "positive"
