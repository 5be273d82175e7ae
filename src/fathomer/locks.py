"""Locks on files and folders that are being written."""

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from fathomer.errors import ConfigError

try:
    import fcntl
except ImportError:  # Windows has no such locks
    fcntl = None  # type: ignore[assignment]


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock a file or folder that is going to be written; raise an error if another process has it.

    The lock is a file next to ``path``. It ends with the process, even if that is killed.
    """
    target = Path(os.path.realpath(path))
    lock = target.with_name(f".{target.name}.lock")
    new = [folder for folder in target.parents if not folder.exists()]
    with ExitStack() as stack:
        with suppress(OSError):  # a folder that cannot be written to is reported elsewhere
            target.parent.mkdir(parents=True, exist_ok=True)
            for folder in reversed(new):
                stack.callback(_remove_if_empty, folder)
            _lock(lock, path, stack)
        yield


def _lock(lock: Path, path: Path, stack: ExitStack) -> None:
    """Lock a file, and delete it in the end."""
    if fcntl is None:
        return
    file = stack.enter_context(lock.open("ab"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise ConfigError(
            f"{path}: another process is writing it; wait until it has finished, or choose another name"
        ) from None
    if not lock.exists() or not os.path.samestat(lock.stat(), os.fstat(file.fileno())):
        _lock(lock, path, stack)  # the other process has just deleted it
        return
    stack.callback(lock.unlink, missing_ok=True)


def _remove_if_empty(folder: Path) -> None:
    with suppress(OSError):
        folder.rmdir()
