"""The processes of a training run: one, or several that divide every batch among them.

All processes run the same loop over the same batches, so their weights stay equal. The gradients are
added up explicitly, in one message per step, rather than by PyTorch's DistributedDataParallel: that
averages over processes, but texts must count the same however they are divided, and a process without
a text in a batch must still take part. Only the first process (rank 0) reads and writes files, makes
decisions and prints.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import timedelta
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor

from fathomer.errors import ConfigError, TrainingError
from fathomer.spool import PIECE, Spool

TIMEOUT = timedelta(hours=6)
"""How long to wait for a process that is alive, such as the first one while it prepares the texts."""
JOIN_TIMEOUT = timedelta(minutes=5)
"""How long to look for the first process, which may start later or have been killed already."""
END_TIMEOUT = timedelta(seconds=10)
"""How long to wait for the first process to report that it has ended."""
_TORCHRUN = ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT")


class ProcessLostError(TrainingError):
    """Another process of the run has ended."""


class Processes:
    """A run on a single process."""

    rank = 0
    count = 1

    def connect(self) -> None:
        """Wait until all processes are there."""

    def device(self, name: str) -> str:
        """Return the device of this process."""
        return name

    def share(self, indices: Sequence[int], lengths: NDArray[np.int64]) -> Sequence[int]:  # noqa: ARG002
        """Return the texts of a batch that this process computes."""
        return indices

    def add_up(self, weights: Sequence[torch.nn.Parameter], sums: Tensor) -> Tensor:  # noqa: ARG002
        """Add up the gradients of the weights over all processes, and return the sums so added."""
        return sums

    def decide(self, decision: Callable[[], Any]) -> Any:
        """Return what the first process decides; the others do not evaluate it."""
        return decision()


ALONE = Processes()


class ProcessGroup(Processes):
    """Several processes, connected by PyTorch: gloo on CPUs, nccl on CUDA devices."""

    def __init__(self, store: Any, rank: int, count: int, *, device: str) -> None:
        self.rank, self.count = rank, count
        self.children: list[subprocess.Popen[bytes]] = []
        self._store, self._name = store, device
        self._device = torch.device(self.device(device) if device.startswith("cuda") else "cpu")

    def device(self, name: str) -> str:
        """Return the device of this process; every process of a machine has its own CUDA device."""
        return f"cuda:{os.environ.get('LOCAL_RANK', 0)}" if name == "cuda" else name

    def connect(self) -> None:
        """Wait until all processes are there; a child that ends before that is an error."""
        with _reporting_lost_processes():
            here = self._store.add("here", 1)
            while not self.rank and here < self.count:
                if any(child.poll() is not None for child in self.children):
                    raise ProcessLostError("a training process could not be started")
                time.sleep(0.05)  # a wait inside PyTorch could not be interrupted by Ctrl-C
                here = self._store.add("here", 0)
            dist.init_process_group(
                "nccl" if self._device.type == "cuda" else "gloo",
                store=dist.PrefixStore("group", self._store),  # type: ignore[attr-defined]
                rank=self.rank,
                world_size=self.count,
                timeout=TIMEOUT,
            )

    def share(self, indices: Sequence[int], lengths: NDArray[np.int64]) -> Sequence[int]:
        """Return the texts of a batch that this process computes."""
        return divide(indices, lengths, self.count)[self.rank]

    def add_up(self, weights: Sequence[torch.nn.Parameter], sums: Tensor) -> Tensor:
        """Add up the gradients of the weights over all processes, and return the sums so added."""
        found = [torch.zeros_like(each) if each.grad is None else each.grad for each in weights]
        flat = torch.cat([*(each.flatten() for each in found), sums])
        with _reporting_lost_processes():
            dist.all_reduce(flat)
        *gradients, total = torch.split(flat, [*(each.numel() for each in found), len(sums)])
        for weight, gradient in zip(weights, gradients, strict=True):
            weight.grad = gradient.view_as(weight)
        return total

    def decide(self, decision: Callable[[], Any]) -> Any:
        """Return what the first process decides, as plain values; the others do not evaluate it."""
        if self.rank:
            length = int(self._broadcast(np.zeros(8, dtype=np.uint8)).view(np.int64)[0])
            return json.loads(self._broadcast(np.zeros(length, dtype=np.uint8)).tobytes())
        value = decision()
        content = np.frombuffer(json.dumps(value).encode(), dtype=np.uint8)
        self._broadcast(np.array([len(content)], dtype=np.int64).view(np.uint8))
        self._broadcast(content)
        return value

    def array(self, values: NDArray[Any] | None) -> NDArray[Any]:
        """Return the array of the first process; a large one goes to disk."""
        dtype, shape = self.decide(lambda: values is not None and (values.dtype.str, values.shape))
        spool, size = Spool(), np.dtype(dtype).itemsize * int(np.prod(shape))
        content = None if values is None else np.ascontiguousarray(values).reshape(-1).view("u1")
        for start in range(0, size, PIECE):
            end = min(size, start + PIECE)
            piece = np.zeros(end - start, dtype=np.uint8) if content is None else content[start:end]
            received = self._broadcast(piece)
            if content is None:
                spool.append(received.tobytes())
        return spool.array(dtype).reshape(shape) if values is None else values

    def _broadcast(self, content: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Return the bytes of the first process; they are equally many in all of them."""
        sent = torch.from_numpy(content.copy()).to(self._device)
        with _reporting_lost_processes():
            dist.broadcast(sent, src=0)
        return sent.numpy(force=True)

    def first_is_lost(self) -> bool:
        """Whether the first process was killed; only the second process reports it."""
        if self.rank != 1:
            return False
        try:
            self._store.wait(["ended"], END_TIMEOUT)
        except RuntimeError:  # it did not report, or its store is gone as well
            return True
        return False

    def close(self) -> None:
        """Leave the group; the first process ends the others, which have nothing to save."""
        with suppress(RuntimeError):
            if not self.rank:
                self._store.set("ended", "")
            if dist.is_initialized():
                dist.destroy_process_group()
        for child in self.children:
            child.kill()
            child.wait()


def divide(indices: Sequence[int], lengths: NDArray[np.int64], parts: int) -> list[list[int]]:
    """Divide texts into parts with about equally many words; there can be more parts than texts.

    >>> divide([0, 1, 2, 3], np.array([9, 2, 4, 3]), 2)
    [[0], [2, 3, 1]]
    """
    divided: list[list[int]] = [[] for _ in range(parts)]
    words = [0] * parts
    for index in sorted(indices, key=lambda index: -lengths[index]):
        fewest = words.index(min(words))
        divided[fewest].append(index)
        words[fewest] += max(1, int(lengths[index]))
    return divided


@contextmanager
def _reporting_lost_processes() -> Iterator[None]:
    """Raise one kind of error for whatever PyTorch reports if another process has ended."""
    try:
        yield
    except RuntimeError as error:
        if isinstance(error, TrainingError):
            raise
        raise ProcessLostError("a training process has ended unexpectedly") from None


@contextmanager
def join_processes(
    number: int | None, *, device: str, module: str = "fathomer"
) -> Iterator[Processes]:
    """Join the processes that torchrun started, or start ``number`` of them on this machine.

    They run ``module`` with the same arguments.
    """
    started = all(name in os.environ for name in _TORCHRUN)
    if number and dist.is_torchelastic_launched():
        raise ConfigError("torchrun has already started the processes; leave --processes out")
    count = int(os.environ["WORLD_SIZE"]) if started else number or 1
    if count == 1:
        yield ALONE
        return
    group = _join_started(device) if started else _start(count, device, module)
    try:
        yield group
    finally:
        group.close()


def _join_started(device: str) -> ProcessGroup:
    with _reporting_lost_processes():
        joined = dist.rendezvous("env://", timeout=JOIN_TIMEOUT)  # type: ignore[attr-defined]
        store, rank, count = next(joined)
        store.set_timeout(TIMEOUT)
    return ProcessGroup(store, rank, count, device=device)


def _start(count: int, device: str, module: str) -> ProcessGroup:
    """Start the other processes with this one's arguments, in the environment of torchrun."""
    threads = os.environ.get("OMP_NUM_THREADS") or str(max(1, (os.cpu_count() or 1) // count))
    torch.set_num_threads(int(threads))
    store = dist.TCPStore(  # type: ignore[attr-defined]
        "127.0.0.1", 0, is_master=True, wait_for_workers=False
    )
    group = ProcessGroup(store, 0, count, device=device)
    fixed = {
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(store.port),
        "OMP_NUM_THREADS": threads,
        "TORCH_CPP_LOG_LEVEL": "ERROR",  # a lost connection is reported in one line, by us
    }
    for rank in range(1, count):
        numbers = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count}
        variables = {name: str(number) for name, number in numbers.items()}
        group.children.append(
            subprocess.Popen(  # noqa: S603
                [sys.executable, "-m", module, *sys.argv[1:]],
                env=os.environ | fixed | variables,
                start_new_session=True,  # Ctrl-C is for the first process only
            )
        )
    return group
