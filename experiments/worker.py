"""The process of one run, with its own share of the threads.

``python -m experiments.worker`` reads a job from its standard input. It ends when that input is
closed, because then the process that started it is gone.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree

from experiments.execute import execute
from experiments.job import Job
from fathomer.errors import ConfigError, FathomerError


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Lock a work folder, so that no other experiment trains the same model in it."""
    try:
        import fcntl
    except ImportError:  # Windows has no such locks
        yield
        return
    folder.mkdir(parents=True, exist_ok=True)
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise ConfigError(f"{folder}: in use by another process") from None
    finally:
        os.close(lock)


def _exit_with_parent() -> None:
    sys.stdin.read()
    os._exit(130)


def _log(line: str) -> None:
    sys.stderr.write(f"{line}\n")
    sys.stderr.flush()


def main() -> int:
    """Execute the job on standard input; delete its work folder once the run is saved."""
    job = Job.from_json(sys.stdin.readline())
    threading.Thread(target=_exit_with_parent, daemon=True).start()
    try:
        with lock_folder(job.folder):
            run = execute(job, _log)
            if run is None:
                return 130
            run.save(job.results)
            rmtree(job.folder)
    except FathomerError as error:
        _log(f"{job.plan.name}: {error}")
        return 2
    except KeyboardInterrupt:
        return 130
    return 0


if __name__ == "__main__":
    # Not sys.exit, which would wait for the thread that reads standard input.
    code = main()
    sys.stderr.flush()
    os._exit(code)
