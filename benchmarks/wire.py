"""A small HTTP client for load tests: raw bytes over kept connections, so that it eats little CPU.

Closed loop: each connection asks again as soon as it is answered. Open loop: requests leave by the
clock, whether or not earlier ones are answered, and their time counts from when they were due.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import NamedTuple, cast

LOOPBACK = "127.0.0.1"


class Reply(NamedTuple):
    """Hold what came back for a request: which one it was, status, body, and seconds it took."""

    request: int
    status: int
    body: bytes
    seconds: float


LOST = 0
"""Status of a request whose connection ended before its answer."""


@dataclass
class Run:
    """Hold what happened in one run."""

    replies: list[Reply] = field(default_factory=list)
    seconds: float = 0.0
    unsent: int = 0
    """Requests for which this client had no connection left."""
    unasked: int = 0
    """Bytes that came without a request: answers given twice."""

    @property
    def statuses(self) -> dict[int, int]:
        """Count the replies by status."""
        return dict(sorted(Counter(reply.status for reply in self.replies).items()))

    @property
    def good_per_second(self) -> float:
        """Give the rate of the good answers: what is refused or lost is no work done."""
        return sum(reply.status == 200 for reply in self.replies) / self.seconds

    def quantile(self, part: float) -> float:
        """Give the time that this part of the good answers did not exceed."""
        times = sorted(reply.seconds for reply in self.replies if reply.status == 200)
        return times[min(len(times) - 1, int(part * len(times)))] if times else float("nan")


def post(path: str, body: bytes) -> bytes:
    """Write a request."""
    head = f"POST {path} HTTP/1.1\r\nhost: {LOOPBACK}\r\ncontent-length: {len(body)}\r\n"
    return head.encode("ascii") + b"content-type: application/json\r\n\r\n" + body


class Connection(asyncio.Protocol):
    """Send one request at a time, and tell its reply."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._received = bytearray()
        self._waiting: asyncio.Future[tuple[int, bytes]] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the way back."""
        self._transport = cast(asyncio.Transport, transport)

    def connection_lost(self, _: Exception | None) -> None:
        """Count the request that was on its way as lost."""
        self._transport = None
        self._finish(LOST, b"")

    def data_received(self, data: bytes) -> None:
        """Collect a reply until it is whole."""
        if self._waiting is None:
            self._run.unasked += len(data)
            return
        self._received += data
        head_end = self._received.find(b"\r\n\r\n")
        if head_end < 0:
            return
        head = bytes(self._received[:head_end]).lower()
        _, _, length = head.partition(b"content-length:")
        end = head_end + 4 + int(length.split(b"\r\n", 1)[0])
        if len(self._received) < end:
            return
        body = bytes(self._received[head_end + 4 : end])
        self._run.unasked += len(self._received) - end
        self._received.clear()
        if b"\r\nconnection: close" in head and self._transport is not None:
            self._transport.close()  # nothing more would be answered on it
        self._finish(int(head[9:12]), body)

    def _finish(self, status: int, body: bytes) -> None:
        if self._waiting and not self._waiting.done():
            self._waiting.set_result((status, body))
        self._waiting = None

    @property
    def open(self) -> bool:
        """Tell whether the server has not closed it."""
        return self._transport is not None and not self._transport.is_closing()

    async def ask(self, request: bytes) -> tuple[int, bytes]:
        """Send a request, and wait for status and body."""
        if self._transport is None:
            return LOST, b""
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._waiting

    async def close(self) -> None:
        """Hang up, and wait until that is done."""
        if self._transport is not None:
            self._transport.abort()
            await asyncio.sleep(0)


async def connect(port: int, run: Run) -> Connection:
    """Open a connection to a server on this machine."""
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(lambda: Connection(run), LOOPBACK, port)
    return connection


async def closed_loop(
    port: int,
    requests: Sequence[bytes],
    *,
    connections: int,
    seconds: float = 3600.0,
    most: int,
) -> Run:
    """Keep so many connections busy until the time is over or ``most`` requests were sent."""
    run = Run()
    numbers: Iterator[int] = iter(range(most))
    started = time.perf_counter()

    async def keep_asking() -> None:
        connection = await connect(port, run)
        for number in numbers:
            begun = time.perf_counter()
            if begun - started > seconds:
                break
            if not connection.open:  # the server may close one after a reply
                connection = await connect(port, run)
            which = number % len(requests)
            status, body = await connection.ask(requests[which])
            run.replies.append(Reply(which, status, body, time.perf_counter() - begun))
        await connection.close()

    await asyncio.gather(*(keep_asking() for _ in range(connections)))
    run.seconds = time.perf_counter() - started
    return run


async def open_loop(
    port: int,
    requests: Sequence[bytes],
    *,
    rate: float,
    seconds: float,
    connections: int,
) -> Run:
    """Send requests at a steady rate, over at most so many connections."""
    run = Run()
    idle: list[Connection] = []
    tasks: set[asyncio.Task[None]] = set()
    started = time.perf_counter()

    async def ask(number: int, due: float) -> None:
        while idle and not idle[-1].open:  # the server closes what rests for long
            idle.pop()
        connection = idle.pop() if idle else await connect(port, run)
        which = number % len(requests)
        status, body = await connection.ask(requests[which])
        run.replies.append(Reply(which, status, body, time.perf_counter() - due))
        if connection.open:
            idle.append(connection)

    for number in count():
        due = started + number / rate
        if due - started > seconds:
            break
        while (early := due - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        if len(tasks) >= connections:
            run.unsent += 1
            await asyncio.sleep(0)
            continue
        task = asyncio.create_task(ask(number, due))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    for connection in idle:
        await connection.close()
    run.seconds = time.perf_counter() - started
    return run
