"""Processes that read texts for the service, each with a copy of the model.

``python -m fathomer.serve.worker`` gets encoded texts on its standard input and writes what the
network found to its standard output, both as safetensors with their length before them. It ends when
that input does: with the service, however that ends.
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
LONGEST_PAUSE = 30.0
"""Seconds between two attempts to start a process."""


class WorkerError(FathomerError, RuntimeError):
    """Report a worker that did not start, or texts that it could not read."""


class RemotePredictor(Predictor):
    """Answer with the model of another process, which is started anew if it has died."""

    def __init__(self, artifact: Artifact, command: Sequence[str]) -> None:  # no network of its own
        self.artifact = artifact
        self._command = command
        self._closed = threading.Event()
        self._ready = False  # a process that starts takes seconds to load the model
        self._process: subprocess.Popen[bytes] | None = self._start()

    @property
    def able(self) -> bool:
        """Say whether there is a process that reads."""
        process = self._process  # another thread may be about to replace it
        return self._ready and process is not None and process.poll() is None

    def _start(self) -> "subprocess.Popen[bytes]":
        return subprocess.Popen(  # noqa: S603
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )

    def wait_until_ready(self) -> None:
        """Wait until the model is loaded."""
        assert self._process
        try:
            self._receive(self._process)
        except EOFError:
            self._discard()
            raise WorkerError("a worker of the service did not start") from None
        self._ready = True

    def classify(self, texts: EncodedTexts, max_depth: int | None) -> Classified:
        """Let the other process run the network."""
        question: dict[str, NDArray[Any]] = {
            "ids": np.ascontiguousarray(texts.ids),
            "starts": texts.starts,
            "unknown": np.ascontiguousarray(texts.unknown),
            "max_depth": np.array([max_depth or 0]),
        }
        self.revive()
        process = self._process
        if process is None:
            raise WorkerError("the service ends")
        try:
            assert process.stdin
            _write(process.stdin, pack(question))
            answer = self._receive(process)
        except Exception:  # whatever it was: the next answer must not be taken for this one's
            self._discard()
            raise WorkerError(
                "a worker has died while it read; a new one will be started"
            ) from None
        if answer == _FAILED:
            raise WorkerError("a worker could not read these texts")
        return Classified(**unpack(answer))

    def revive(self) -> None:
        """Start a new process if it has died; try again, until the end, for as long as that fails."""
        if not self.able:
            self._discard()
        pause = 1.0
        while self._process is None and not self._closed.is_set():
            try:
                self._process = self._start()
                self.wait_until_ready()
            except (OSError, WorkerError) as error:
                logger.error("%s; trying again in %d s", error, pause)
                self._closed.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE)

    def close(self) -> None:
        """Let the other process end."""
        self._closed.set()
        if self._process:
            with suppress(OSError):  # if it has died, what it was asked cannot be sent any more
                assert self._process.stdin
                self._process.stdin.close()
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(timeout=10)
            self._discard()

    def _discard(self) -> None:
        """Be rid of the process, whatever state it is in."""
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
def started(
    predictor: Predictor, folder: Path, digest: str, *, number: int, precision: str, threads: int
) -> Iterator[list[RemotePredictor]]:
    """Start so many processes that read with the model in ``folder``, if it is still the same.

    ``digest`` is the checksum of its ``config.json``, which vouches for the rest.
    """
    # -P: what lies in the folder where the service is started is not imported.
    command = [sys.executable, "-P", "-m", __name__, str(folder), digest, precision, str(threads)]
    workers = [RemotePredictor(predictor.artifact, command) for _ in range(number)]
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
    """Read one message; nothing if there will be no more."""
    head = stream.read(_LENGTH.size)
    if len(head) < _LENGTH.size:
        return None
    [length] = _LENGTH.unpack(head)
    message = stream.read(length)
    return message if len(message) == length else None


def _answer(predictor: Predictor, question: bytes) -> bytes:
    values = unpack(question)
    max_depth = int(values.pop("max_depth")[0]) or None
    return pack(predictor.classify(EncodedTexts(**values), max_depth)._asdict())


def main(folder: str, digest: str, precision: str, threads: str) -> None:
    """Answer until nobody asks any more."""
    # The service decides when to end: a signal to all its processes must not lose an answer.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    torch.set_num_threads(int(threads))
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    sys.stdout = sys.stderr  # nothing but answers goes where they go
    predictor = load(folder, precision=precision)  # type: ignore[arg-type]
    if sha256_of(Path(folder) / CONFIG) != digest:
        sys.exit(f"{folder}: is another model by now; the service goes on with the old one")
    _write(answers, _READY)
    while (question := _read(sys.stdin.buffer)) is not None:
        try:
            answer = _answer(predictor, question)
        except Exception:
            # Whatever it was: those who asked hear of it, and the others are still answered.
            logger.exception("a worker could not answer")
            answer = _FAILED
        _write(answers, answer)


if __name__ == "__main__":
    main(*sys.argv[1:])
