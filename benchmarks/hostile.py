"""Clients that nobody wants: what a service must survive without a crash, a 500 or lost memory."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from random import Random

from benchmarks.wire import LOOPBACK, post

_PATIENCE = 15.0
"""Seconds after which a client gives up; the service should have closed the connection before."""
_DRIP = 0.2
_LARGE = 3_000_000

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Behaviour = Callable[[Streams, Random], Awaitable[None]]


async def random_bytes(streams: Streams, random: Random) -> None:
    """Speak no HTTP at all."""
    streams[1].write(random.randbytes(random.randint(1, 5000)) + b"\r\n\r\n")


async def random_body(streams: Streams, random: Random) -> None:
    """Send no JSON."""
    streams[1].write(post("/v1/predict", random.randbytes(random.randint(0, 5000))))


async def wrong_json(streams: Streams, random: Random) -> None:
    """Send JSON of another shape, with numbers and strings that are hard to hold."""
    body = random.choice(
        [
            b'{"texts": "alone"}',
            b'{"texts": [1, null, {}]}',
            b'{"texts": ["a"], "max_depth": 1e999}',
            b'{"texts": ["a"], "max_depth": -99999999999999999999999999}',
            b'{"texts": ["\\ud800 alone", "\\u0000"]}',
            b'{"texts": ["\xed\xa0\x80"]}',
            b'{"texts": ["a"], "texts": [NaN]}',
            b'\xff\xfe{"texts": []}',
        ]
    )
    streams[1].write(post("/v1/predict", body))


async def odd_texts(streams: Streams, random: Random) -> None:
    """Send texts that are allowed, but odd: any characters, none at all, or one long word."""
    anything = "".join(
        chr(random.choice([0, 9, 10, 0x301, 0x200D, 0x1F600, 65])) for _ in range(300)
    )
    marks = "a" + "\u0300\u0316" * random.randint(1, 4_000)  # a trap for whoever sorts them
    texts = [anything, "", "x" * random.randint(1, 20_000), marks, "<img src=x onerror=alert(1)>"]
    body = json.dumps({"texts": texts, "depths": True}, ensure_ascii=False).encode("utf-8")
    streams[1].write(post("/v1/predict", body))


async def deep_json(streams: Streams, random: Random) -> None:
    """Nest as deep as a body allows."""
    streams[1].write(post("/v1/predict", random.choice([b"[", b'{"texts":']) * 100_000))


async def huge_body(streams: Streams, random: Random) -> None:
    """Send more than is allowed, with or without saying so first."""
    if random.random() < 0.5:
        streams[1].write(post("/v1/predict", b" " * _LARGE))
    else:
        streams[1].write(
            b"POST /v1/predict HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n"
        )
        for _ in range(_LARGE // 65_536):
            streams[1].write(b"10000\r\n" + b" " * 65_536 + b"\r\n")
            await streams[1].drain()
        streams[1].write(b"0\r\n\r\n")


async def many_words(streams: Streams, _: Random) -> None:
    """Ask for as much work as fits into a body."""
    body = json.dumps({"texts": ["! " * 9_000] * 50}).encode("ascii")
    streams[1].write(post("/v1/predict", body))


async def slow_sender(streams: Streams, random: Random) -> None:
    """Send a byte at a time, of the head or of the body."""
    request = post("/v1/predict", b'{"texts": ["slow"]}')
    sent = random.choice([10, request.find(b"\r\n\r\n") + 6])
    streams[1].write(request[:sent])
    for place in range(sent, sent + 8):
        await asyncio.sleep(_DRIP)
        streams[1].write(request[place : place + 1])
        await streams[1].drain()


async def abort(streams: Streams, random: Random) -> None:
    """Hang up in the middle of a request, or before its answer."""
    request = post("/v1/predict", json.dumps({"texts": ["never mind"] * 20}).encode("ascii"))
    streams[1].write(request[: random.choice([30, len(request) - 5, len(request)])])
    await streams[1].drain()
    streams[1].transport.abort()


BEHAVIOURS: tuple[Behaviour, ...] = (
    random_bytes,
    random_body,
    wrong_json,
    odd_texts,
    deep_json,
    huge_body,
    many_words,
    slow_sender,
    abort,
)


async def attack(
    port: int, *, seconds: float, most: int, clients: int = 8, seed: int = 0
) -> dict[str, dict[str, int]]:
    """Misbehave for a while; count by behaviour what the service answered (0: it hung up)."""
    random = Random(seed)  # noqa: S311
    found: dict[str, Counter[str]] = {kind.__name__: Counter() for kind in BEHAVIOURS}
    numbers = iter(range(most))
    started = time.perf_counter()

    async def misbehave() -> None:
        for _ in numbers:
            if time.perf_counter() - started > seconds:
                break
            kind = random.choice(BEHAVIOURS)
            found[kind.__name__][str(await _one(port, kind, random))] += 1

    await asyncio.gather(*(misbehave() for _ in range(clients)))
    return {name: dict(sorted(statuses.items())) for name, statuses in found.items()}


async def _one(port: int, behave: Behaviour, random: Random) -> int:
    reader, writer = await asyncio.open_connection(LOOPBACK, port)
    status = 0
    try:
        async with asyncio.timeout(_PATIENCE):
            await behave((reader, writer), random)
            line = await reader.readline()
            status = int(line[9:12]) if line.startswith(b"HTTP/1.1 ") else 0
    except (OSError, TimeoutError):
        status = 0
    finally:
        writer.transport.abort()
    return status
