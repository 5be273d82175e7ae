"""The process: a socket, signals, and connections that may not dawdle."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import ClassVar

import uvicorn
from starlette.responses import Response
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fathomer.errors import ConfigError
from fathomer.serve.limits import Limits
from fathomer.serve.problems import beyond

_SWITCH_SECONDS = 0.0005
"""How long a thread may keep the interpreter while another wants it. The model's thread gives it up
in each of its many small operations; at Python's 5 ms the slowest answers came far later."""


_HEAD_BYTES = 65_536
"""What may come without getting a request any further: heads, and what follows a last chunk."""
_PIPELINED = 8
"""Requests that may wait on a connection behind the one that is being answered."""
_FAREWELL_SECONDS = 0.5
"""How long a resting connection is kept at the end, for a request that is on its way already."""


class StrictProtocol(HttpToolsProtocol):
    """Close a connection when a request's head does not come in time, or never ends."""

    limits: ClassVar[Limits]
    crowded: ClassVar[Response]
    """Answers whoever is one too many."""
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _send_timer: asyncio.TimerHandle | None = None
    _ending = False
    _deaf = False
    """Too many requests have come at once; those that were taken are still answered."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or turn whoever is one too many away."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self.app = self.crowded
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Count what comes without getting a request any further."""
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _HEAD_BYTES:
            self._hang_up()
        self._watch_head()

    def on_headers_complete(self) -> None:
        """Take a request, unless too many wait before it."""
        self._head_bytes = 0
        if len(self.pipeline) >= _PIPELINED:
            self._deaf = True
            self.cycle.keep_alive = False  # after the last one that was taken
        if self._deaf:
            return
        super().on_headers_complete()
        if self._ending:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Take a part of a body: the request gets further."""
        self._head_bytes = 0
        if not self._deaf:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Take the end of a request."""
        if not self._deaf:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Wait for a client that does not fetch its answer, but not for ever."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self.limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the client has fetched most of it."""
        super().resume_writing()
        self._stop_sending_timer()

    def on_response_complete(self) -> None:
        """Go on with the next request, or see that a closing connection is closed some time."""
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(self.limits.idle_seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that has rested for too long."""
        self._hang_up()

    def connection_lost(self, exc: Exception | None) -> None:
        """End."""
        super().connection_lost(exc)
        self._stop_watching()
        self._stop_sending_timer()

    def shutdown(self) -> None:
        """Answer what is here or on its way, then close."""
        if self._ending or not self._resting:
            super().shutdown()
        else:
            self.loop.call_later(_FAREWELL_SECONDS, self.shutdown)
        self._ending = True

    @property
    def _resting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        """Run the clock from a head's first byte until its request is there."""
        if not self._resting:
            self._stop_watching()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.limits.body_seconds, self._hang_up)

    def _stop_watching(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _hang_up(self) -> None:
        """Close, and cut off whoever does not fetch what was sent to it before."""
        self.transport.close()
        self.loop.call_later(_FAREWELL_SECONDS, self.transport.abort)

    def _stop_sending_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None


def strict_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Make the connections of a service with these limits."""
    message = f"More than {limits.connections} connections are open."
    headers = {"connection": "close"}
    crowded = beyond(limits, "connections", message, status=503, headers=headers).response()
    return type("LimitedProtocol", (StrictProtocol,), {"limits": limits, "crowded": crowded})


def run(
    app: ASGIApp, *, limits: Limits, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT; then answer what is accepted, and return."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    listener = _listen(host, port)
    config = uvicorn.Config(
        app,
        http=strict_protocol(limits),
        ws="none",
        lifespan="on",
        log_level="error",  # a line for each mistake of a stranger would fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(limits.idle_seconds)),
        timeout_graceful_shutdown=round(limits.body_seconds + limits.deadline_seconds) + 5,
    )
    server = uvicorn.Server(config)

    def end(*_: object) -> None:
        server.should_exit = True

    # For a signal that comes before the server listens to it, and for the one that it raises again
    # when it has shut down: to have done so is no failure.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    announce(_address(listener))
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Named as TCP, or asyncio would not switch off Nagle's algorithm: it holds answers for 40 ms.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, UnicodeError) as error:  # the latter of a name that no host can have
        reason = getattr(error, "strerror", None) or "not the name of a host"
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from None
    return listener


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
