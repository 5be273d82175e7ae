"""The machine that was measured on, and the peak memory of a function."""

import ctypes
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from fathomer import __version__

Result = TypeVar("Result")

# Flags that PyTorch does not report, on which the speed of int8 and bfloat16 products depends.
_NAMED_FLAGS = ("avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "avx512_bf16", "i8mm", "asimddp")


def describe_machine() -> dict[str, Any]:
    """Return the processor, threads and versions on which results depend."""
    cpu = _cpu_info()
    flags = (cpu.get("flags") or cpu.get("Features") or "").split()
    return {
        "processor": cpu.get("model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "instruction_set": [
            torch.backends.cpu.get_cpu_capability(),
            *(flag for flag in _NAMED_FLAGS if flag in flags),
        ],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "torch": torch.__version__,
        "fathomer": __version__,
    }


def _cpu_info() -> dict[str, str]:
    """Return Linux's description of the first core; empty on other systems."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def peak_memory(run: Callable[[], Result]) -> tuple[Result, float | None]:
    """Run a function; return its result and the most megabytes it added to the process.

    These are None on systems other than Linux.
    """
    try:
        _release_memory()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # reset the peak
        before = _resident("VmHWM")
    except (OSError, AttributeError):
        return run(), None
    result = run()
    return result, (_resident("VmHWM") - before) / 1000


def _release_memory() -> None:
    """Return freed memory to the system, so that reusing it counts as well."""
    ctypes.CDLL(None).malloc_trim(0)


def _resident(name: str) -> int:
    """Return an entry of /proc/self/status in kilobytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise OSError(f"/proc/self/status has no {name}")
