"""Services for a measurement: processes of their own, and what they use."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from fathomer.errors import FathomerError


class LoadError(FathomerError, RuntimeError):
    """Report a service that could not be measured."""


@dataclass(frozen=True)
class Served:
    """Hold a running service: its process, its port, and what it has logged."""

    process: "subprocess.Popen[str]"
    port: int
    log: list[str] = field(default_factory=list)

    @property
    def memory_mb(self) -> float:
        """Give the memory that the process has in use."""
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text("ascii").split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 1e6

    @property
    def cpu_seconds(self) -> float:
        """Give the processor time that the process has used."""
        after_name = Path(f"/proc/{self.process.pid}/stat").read_text("ascii").rpartition(")")[2]
        return sum(map(int, after_name.split()[11:13])) / os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Services:
    """Hold the services of one model that share the load."""

    each: list[Served]

    @property
    def ports(self) -> list[int]:
        """Give the port of each."""
        return [service.port for service in self.each]

    @property
    def memory_mb(self) -> float:
        """Give the memory of all of them."""
        return round(sum(service.memory_mb for service in self.each), 1)

    @property
    def cpu_seconds(self) -> float:
        """Give the processor time that all of them have used."""
        return sum(service.cpu_seconds for service in self.each)

    @property
    def exit_codes(self) -> list[int | None]:
        """Tell how each has ended, or None while it runs."""
        return [service.process.poll() for service in self.each]

    @property
    def log(self) -> list[str]:
        """Give the lines that all of them have logged."""
        return [line for service in self.each for line in service.log]


@contextmanager
def served(folder: Path, *, number: int = 1) -> Iterator[Services]:
    """Run so many times ``fathomer serve``, on free ports."""
    with ExitStack() as stack:
        yield Services([stack.enter_context(_one(folder)) for _ in range(number)])


@contextmanager
def _one(folder: Path) -> Iterator[Served]:
    command = [sys.executable, "-m", "fathomer", "serve", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)  # noqa: S603
    stream = process.stderr
    assert stream is not None
    log: list[str] = []
    # Somebody must read what it logs: a full pipe would stop the service.
    reading = threading.Thread(target=lambda: log.extend(stream), daemon=True)
    try:
        first = stream.readline()
        if not first.startswith("serving "):
            raise LoadError(f"the service did not start: {first.strip()}")
        reading.start()
        yield Served(process, int(first.rsplit(":", 1)[1]), log)
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        if reading.ident is not None:
            reading.join()
        stream.close()
