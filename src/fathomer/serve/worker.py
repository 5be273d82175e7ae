"""Worker processes of the service, each with a copy of the model.

``python -m fathomer.serve.worker`` reads encoded texts from its standard input and writes the
results of the network to its standard output. A message is a length followed by safetensors. A
worker exits when its input ends, and thus with the service, even if that is killed.
"""

import logging
import os
import signal
import struct
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from fathomer.artifact import CONFIG, Artifact
from fathomer.errors import FathomerError
from fathomer.files import sha256_of
from fathomer.model.inference import Classified
from fathomer.predictor import Predictor, load
from fathomer.text.encode import EncodedTexts

logger = logging.getLogger(__name__)

_LENGTH = struct.Struct("<q")
_READY, _FAILED = b"ready", b""
_MAX_START_SECONDS = 300.0
"""Longest time to load the model."""
_MAX_RETRY_SECONDS = 30.0
"""Longest pause between two attempts to start a process."""


class WorkerError(FathomerError, RuntimeError):
    """A worker that did not start or could not make a prediction."""


class WorkerPredictor(Predictor):
    """A predictor whose network runs in a worker process, which is restarted if it dies."""

    def __init__(  # no network of its own
        self, artifact: Artifact, command: Sequence[str], *, deadline: float = 60.0
    ) -> None:
        self.artifact = artifact
        self._deadline = deadline
        self._command = command
        self._closed = threading.Event()
        self._ready = False  # loading the model takes seconds
        self._process: subprocess.Popen[bytes] | None = self._start()

    @property
    def alive(self) -> bool:
        """Whether the process runs and has loaded the model."""
        process = self._process  # another thread may be replacing it
        return self._ready and process is not None and process.poll() is None

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait_until_ready(self) -> None:
        """Wait until the process has loaded the model."""
        assert self._process
        try:
            with _killed_after(_MAX_START_SECONDS, self._process):
                self._receive(self._process)
        except EOFError:
            self._kill()
            raise WorkerError("a worker of the service did not start") from None
        self._ready = True

    def classify(
        self, texts: EncodedTexts, max_depth: int | None, depth_budget: float | None = None
    ) -> Classified:
        """Run the network in the worker process."""
        request: dict[str, NDArray[Any]] = {
            "ids": np.ascontiguousarray(texts.ids),
            "starts": texts.starts,
            "unknown": np.ascontiguousarray(texts.unknown),
            "max_depth": np.array([max_depth or 0]),
            "depth_budget": np.array([depth_budget or 0.0]),
        }
        self.ensure_alive()
        process = self._process
        if process is None:
            raise WorkerError("the service is shutting down")
        try:
            assert process.stdin
            with _killed_after(self._deadline, process):
                _write(process.stdin, pack(request))
                answer = self._receive(process)
        except Exception:  # after any failure, the next answer could be this one's
            self._kill()
            raise WorkerError("a worker died; a new one will be started") from None
        if answer == _FAILED:
            raise WorkerError("a worker could not classify these texts")
        return Classified(**unpack(answer))

    def ensure_alive(self) -> None:
        """Restart the process if it died, retrying until it starts or the service shuts down."""
        if not self.alive:
            self._kill()
        pause = 1.0
        while self._process is None and not self._closed.is_set():
            try:
                self._process = self._start()
                self.wait_until_ready()
            except (OSError, WorkerError) as error:
                logger.error("%s; trying again in %d s", error, pause)
                self._closed.wait(pause)
                pause = min(2 * pause, _MAX_RETRY_SECONDS)

    def close(self) -> None:
        """Close the input of the process, so that it exits."""
        self._closed.set()
        if self._process:
            with suppress(OSError):  # it may have died with unsent input in the pipe
                assert self._process.stdin
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=10)
            self._kill()

    def _kill(self) -> None:
        """End the process and close its pipes, whatever state it is in."""
        process, self._process, self._ready = self._process, None, False
        if process:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                assert stream
                with suppress(OSError):
                    stream.close()

    def _receive(self, process: "subprocess.Popen[bytes]") -> bytes:
        assert process.stdout
        message = _read(process.stdout)
        if message is None:
            raise EOFError
        return message


@contextmanager
def _killed_after(seconds: float, process: "subprocess.Popen[bytes]") -> Iterator[None]:
    """Kill a process that does not answer in time, because it hangs or was stopped."""
    timer = threading.Timer(seconds, process.kill)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def start_workers(
    predictor: Predictor,
    folder: Path,
    digest: str,
    *,
    number: int,
    precision: str,
    threads: int,
    deadline: float = 60.0,
) -> Iterator[list[WorkerPredictor]]:
    """Start worker processes with the model in ``folder``, and stop them at the end.

    ``digest`` is the checksum of the model's ``config.json``, which holds those of its other files.
    Workers refuse to start with any other model. One that does not answer within ``deadline``
    seconds is replaced.
    """
    # -P: import nothing from the folder in which the service was started.
    command = [sys.executable, "-P", "-m", __name__, str(folder), digest, precision, str(threads)]
    workers = [
        WorkerPredictor(predictor.artifact, command, deadline=deadline) for _ in range(number)
    ]
    try:
        for worker in workers:
            worker.wait_until_ready()
        yield workers
    finally:
        for worker in workers:
            worker.close()


def _write(stream: IO[bytes], message: bytes) -> None:
    stream.write(_LENGTH.pack(len(message)) + message)
    stream.flush()


def _read(stream: IO[bytes]) -> bytes | None:
    """Read one message, or return None at the end of the stream."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


def _answer(predictor: Predictor, request: bytes) -> bytes:
    values = unpack(request)
    max_depth = int(values.pop("max_depth")[0]) or None
    depth_budget = float(values.pop("depth_budget")[0]) or None
    return pack(predictor.classify(EncodedTexts(**values), max_depth, depth_budget)._asdict())


def main(folder: str, digest: str, precision: str, threads: str) -> None:
    """Answer requests until the input ends."""
    # Only the service decides when to stop: a signal to the process group must not lose answers.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(int(threads))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr  # so that a stray print cannot corrupt the answers
    predictor = load(folder, precision=precision)  # type: ignore[arg-type]
    if sha256_of(Path(folder) / CONFIG) != digest:
        sys.exit(f"{folder}: the model was replaced; restart the service to use the new one")
    _write(answers, _READY)
    while (request := _read(sys.stdin.buffer)) is not None:
        try:
            answer = _answer(predictor, request)
        except Exception:  # reported to the service; the worker goes on
            logger.exception("a worker could not classify texts")
            answer = _FAILED
        _write(answers, answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
