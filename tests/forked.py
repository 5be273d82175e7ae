"""Processes of the command ``fathomer``, or of any Python code, that start immediately.

They are forked from a server process that has already imported what takes a new process several
seconds: torch with the compiler that its optimisers load, scikit-learn and the service. Exit codes and
signals are those of any other process.
"""

import os
import runpy
import signal
import subprocess
import sys
import time
import warnings
from contextlib import suppress
from importlib import import_module
from multiprocessing import get_context
from pathlib import Path

CONTEXT = get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        *("torch._dynamo", "sklearn.metrics"),
        *("fathomer.cli", "fathomer.train.fit", "fathomer.serve.routes", "fathomer.serve.server"),
    ]
)


class Forked:
    """A running command; what it writes to standard error is a text stream.

    With ``pipes``, its standard input and output are text streams, too. ``program`` is the module with
    the command's ``main``.
    """

    def __init__(self, *arguments, folder=".", pipes=False, program="fathomer.cli"):
        theirs = {}
        errors, theirs[2] = CONTEXT.Pipe(duplex=False)
        if pipes:
            theirs[0], questions = CONTEXT.Pipe(duplex=False)
            answers, theirs[1] = CONTEXT.Pipe(duplex=False)
        state = (program, arguments, str(folder), dict(os.environ), theirs)
        self._process = CONTEXT.Process(target=_main, args=state)
        self._process.start()
        for end in theirs.values():
            end.close()
        self.pid = self._process.pid
        self.stderr = _stream(errors, "r")
        self.stdin = _stream(questions, "w") if pipes else None
        self.stdout = _stream(answers, "r") if pipes else None

    def send_signal(self, number):
        """Send a signal unless the process has ended."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended
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
        self.close()

    def close(self):
        """Wait for the end of the process, and close the streams."""
        self.wait()
        for stream in (self.stdin, self.stdout, self.stderr):
            if stream:
                stream.close()


def run_forked(arguments, folder="."):
    """Run ``python`` with arguments, ``-m module`` or ``-c code``; return what ``subprocess.run`` does.

    Tests of what is imported must know that the server has already imported much.
    """
    with Forked(*map(str, arguments), folder=folder, pipes=True, program="tests.forked") as process:
        process.stdin.close()
        printed, shown = process.stdout.read(), process.stderr.read()
    return subprocess.CompletedProcess(arguments, process.returncode, printed, shown)


def main():
    """Run the module or code that ``python`` would run with these arguments."""
    _, option, what, *rest = sys.argv
    sys.argv = [what, *rest]
    if option == "-c":
        exec(what, {"__name__": "__main__"})
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* found in sys.modules", RuntimeWarning)
        runpy.run_module(what, run_name="__main__", alter_sys=True)


def _stream(end, mode):
    """Return the end of a pipe as a text stream."""
    with end:
        return os.fdopen(os.dup(end.fileno()), mode, encoding="utf-8")


def _main(program, arguments, folder, environment, ends):
    """Run a command in the forked process; standard output is discarded unless it is a pipe."""
    os.environ.clear()  # it is the one that the server was started with
    os.environ.update(environment)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for number, end in ends.items():
        os.dup2(end.fileno(), number)  # also for the processes that this one starts
        end.close()
    if 0 in ends:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = os.fdopen(1, "w", encoding="utf-8", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", closefd=False)
    os.chdir(folder)
    sys.argv = ["fathomer", *arguments]
    sys.exit(import_module(program).main())


def gone(pid):
    """Wait until a process has ended, whether or not it was reaped; return whether it did."""
    for _ in range(1200):
        stat = Path(f"/proc/{pid}/stat")
        if not stat.exists() or stat.read_text("ascii").rpartition(")")[2].split()[0] == "Z":
            return True
        time.sleep(0.05)
    return False
