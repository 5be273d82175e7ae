"""A connection to a Ray cluster, or to one that is started on this machine."""

import logging
import os
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import Any

from fathomer.errors import ConfigError


@contextmanager
def connected(address: str | None, *, workers: int) -> Iterator[None]:
    """Connect to a Ray cluster, or start one on this machine, and disconnect at the end.

    A connection that exists already is used, and stays. Ray prints what happens to its workers on
    standard output, whatever its settings; it is sent to standard error here.
    """
    with redirect_stdout(sys.stderr), _session(address, workers=workers):
        yield


@contextmanager
def _session(address: str | None, *, workers: int) -> Iterator[None]:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # lost workers are replaced silently
    import ray.data

    if ray.is_initialized() and address is None:
        yield
        return
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    quiet: dict[str, Any] = {"logging_level": "ERROR", "log_to_driver": False}
    if address is None:
        # One logical core more than workers, for the tasks that read files.
        limits: dict[str, Any] = {"num_cpus": workers + 1, "object_store_memory": 512 << 20}
        ray.init("local", include_dashboard=False, **limits, **quiet)
    else:
        _join(address, quiet)
    try:
        yield
    finally:
        with suppress(KeyboardInterrupt):
            ray.shutdown()


def _join(address: str, options: dict[str, Any]) -> None:
    """Connect to a cluster; Ray itself would try an address without one for minutes."""
    import ray

    problem = "there is no Ray cluster; start one with ray start --head, or leave --address out"
    host, _, port = address.removeprefix("ray://").rpartition(":")
    try:
        if host:
            socket.create_connection((host, int(port)), timeout=5).close()
            problem = (
                "no Ray cluster answers; one that wants a token needs RAY_AUTH_MODE=token and the "
                "same ~/.ray/auth_token here"
            )
        ray.init(address, **options)
    except (ConnectionError, OSError, ValueError, RuntimeError):
        raise ConfigError(f"--address {address}: {problem}") from None
    except ray.exceptions.RayError as error:  # such as a missing token
        raise ConfigError(f"--address {address}: {str(error).splitlines()[0]}") from None
