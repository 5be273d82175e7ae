"""Processes of the command ``fathomer`` that start immediately.

They are forked from a server process that has already imported what takes a new process several
seconds: torch with the compiler that its optimisers load, scikit-learn and the service. Exit codes and
signals are those of any other process.
"""

import os
import signal
import subprocess
import sys
from multiprocessing import get_context

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("torch._dynamo", "sklearn.metrics"),
        *("fathomer.cli", "fathomer.train.fit", "fathomer.serve.routes", "fathomer.serve.server"),
    ]
)


class Forked:
    """A running command; what it writes to standard error is a text stream."""

    def __init__(self, *arguments, folder="."):
        reader, writer = CONTEXT.Pipe(duplex=False)
        state = (arguments, str(folder), dict(os.environ), writer)
        self._process = CONTEXT.Process(target=_main, args=state)
        self._process.start()
        writer.close()
        self.stderr = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        reader.close()
        self.pid = self._process.pid

    def send_signal(self, number):
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self):
        self.send_signal(signal.SIGTERM)

    def kill(self):
        self.send_signal(signal.SIGKILL)

    def poll(self):
        """Return the exit code, or None while the process is running."""
        return self._process.exitcode

    def wait(self, timeout=None):
        """Wait for the end of the process; return its exit code."""
        self._process.join(timeout)
        if self.poll() is None:
            raise subprocess.TimeoutExpired("fathomer", timeout)
        return self.poll()

    @property
    def returncode(self):
        return self.poll()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.wait()
        self.stderr.close()


def _main(arguments, folder, environment, errors):
    """Run a command in the forked process; its standard output is discarded."""
    from fathomer.cli import main

    os.environ.clear()  # it is the one that the server was started with
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(errors.fileno(), 2)  # also for the processes that this one starts
    errors.close()
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    os.chdir(folder)
    sys.argv = ["fathomer", *arguments]
    main()
