"""Reading what a client sends: no more than agreed, and not for ever."""

import asyncio

from starlette.requests import ClientDisconnect, Request

from fathomer.serve.limits import Limits
from fathomer.serve.problems import Problem

_DISCARDED = 8
"""So many bodies' worth is read and thrown away, since many clients read no answer before their
last byte is sent. After that the connection is closed."""


async def read_body(request: Request, limits: Limits) -> bytes:
    """Collect the body, whether or not its length was announced."""
    try:
        async with asyncio.timeout(limits.body_seconds):
            return await _collect(request, limits.body_bytes)
    except TimeoutError:
        raise Problem(
            408,
            "body_seconds",
            f"The request did not arrive within {limits.body_seconds:g} seconds.",
            limit=limits.body_seconds,
            headers={"connection": "close"},
        ) from None
    except ClientDisconnect:
        raise Problem(499, "disconnected", "The client went away.") from None


async def _collect(request: Request, most: int) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size <= most:
            chunks.append(chunk)
        else:
            chunks.clear()
        if size > _DISCARDED * most:
            break
    if size > most:
        raise Problem(
            413,
            "body_bytes",
            f"The body is larger than {most} bytes.",
            limit=most,
            headers={"connection": "close"},
        )
    return b"".join(chunks)
