"""What was measured on: processor, instruction set, threads, versions; and memory that is taken."""

import ctypes
import os
import platform
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch

from fathomer import __version__

Answer = TypeVar("Answer")

# Beyond what PyTorch calls the processor's capability: these decide how fast int8 products are.
_NAMED_FLAGS = ("avx512_vnni", "avx_vnni", "amx_int8", "amx_bf16", "avx512_bf16", "i8mm", "asimddp")


def describe_machine() -> dict[str, Any]:
    """Record what figures depend on."""
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
    """Read what Linux knows of the first core; elsewhere there is nothing to read."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.split("\n\n")[0].splitlines())
    return {key.strip(): value.strip() for key, _, value in pairs}


def peak_memory(run: Callable[[], Answer]) -> tuple[Answer, float | None]:
    """Run something; give its answer, and the megabytes that it took at most beyond what was held.

    These are none where the system does not tell.
    """
    try:
        _give_back_memory()
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forget the peak
        before = _resident("VmHWM")
    except (OSError, AttributeError):
        return run(), None
    answer = run()
    return answer, (_resident("VmHWM") - before) / 1000


def _give_back_memory() -> None:
    """Let the C library return what was freed, so that its reuse is counted too."""
    ctypes.CDLL(None).malloc_trim(0)


def _resident(name: str) -> int:
    """Read a figure of this process's memory, in kilobytes."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith(name):
            return int(line.split()[1])
    raise OSError(f"{name} is not told")
