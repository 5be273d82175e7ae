"""A service for a measurement: a process of its own, and what it and its workers use."""

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
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
    def _folders(self) -> list[Path]:
        """Name where the system describes the process and its workers."""
        own = Path(f"/proc/{self.process.pid}")
        listed = [each.read_text("ascii").split() for each in own.glob("task/*/children")]
        return [own, *(Path("/proc") / child for children in listed for child in children)]

    @property
    def memory_mb(self) -> float:
        """Give the memory in use; what several processes share counts for each."""
        pages = (int((each / "statm").read_text("ascii").split()[1]) for each in self._folders)
        return round(sum(pages) * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)

    @property
    def cpu_seconds(self) -> float:
        """Give the processor time used."""
        stats = ((each / "stat").read_text("ascii") for each in self._folders)
        ticks = [int(n) for stat in stats for n in stat.rpartition(")")[2].split()[11:13]]
        return sum(ticks) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: Path, *, workers: int = 1) -> Iterator[Served]:
    """Run ``fathomer serve`` on a free port."""
    options = [str(folder), "--port", "0", "--workers", str(workers)]
    command = [sys.executable, "-P", "-m", "fathomer", "serve", *options]
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
