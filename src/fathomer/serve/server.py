"""The server process: its socket, its signals, and connections within the limits."""

import asyncio
import signal
import socket
import sys
from collections.abc import Callable
from typing import ClassVar

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from fathomer.errors import ConfigError
from fathomer.serve.errors import limit_error
from fathomer.serve.limits import Limits

_SWITCH_SECONDS = 0.0005
"""Python's thread switch interval. The model's thread releases the interpreter in each of its many
small operations; at the default of 5 ms the event loop waits long for it, which raises the p99."""
_MAX_HEAD_BYTES = 65_536
"""Bytes that may arrive without completing headers or adding to a body."""
_MAX_PIPELINED = 8
"""Requests that may wait on a connection behind the one being answered."""
_CLOSE_SECONDS = 0.5
"""Grace period for a closing connection: for a request in transit, or for unsent data."""


class LimitedProtocol(HttpToolsProtocol):
    """An HTTP connection that is closed when the client is too slow or sends too much."""

    limits: ClassVar[Limits]
    too_many: ClassVar[bytes]
    """The response to a connection beyond the limit."""
    _head_timer: asyncio.TimerHandle | None = None
    _head_bytes = 0
    _send_timer: asyncio.TimerHandle | None = None
    _refused = False
    """Whether the connection is beyond the limit."""
    _shutting_down = False
    _ignoring = False
    """Whether further input is ignored, because too many requests were pipelined."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept a connection, or refuse it if there are too many."""
        super().connection_made(transport)
        if len(self.connections) > self.limits.connections:
            self._refused = True
            transport.write(self.too_many)  # without waiting for a request
            transport.write_eof()
            self.loop.call_later(_CLOSE_SECONDS, transport.abort)
            return
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Parse input, and close the connection if its headers grow too large."""
        if self._refused:
            return
        self._head_bytes += len(data)
        super().data_received(data)
        if self._head_bytes > _MAX_HEAD_BYTES:
            self._close()
        self._watch_head()

    def on_headers_complete(self) -> None:
        """Start a request, unless too many are pipelined."""
        self._head_bytes = 0
        if len(self.pipeline) >= _MAX_PIPELINED:
            self._ignoring = True
            self.cycle.keep_alive = False  # close after the last accepted request
        if self._ignoring:
            return
        super().on_headers_complete()
        if self._shutting_down:
            self.cycle.keep_alive = False

    def on_body(self, body: bytes) -> None:
        """Add to the body of the current request."""
        self._head_bytes = 0
        if not self._ignoring:
            super().on_body(body)

    def on_message_complete(self) -> None:
        """Finish reading the current request."""
        if not self._ignoring:
            super().on_message_complete()

    def pause_writing(self) -> None:
        """Wait for a client that reads slowly, but no longer than it may be idle."""
        super().pause_writing()
        if self._send_timer is None:
            self._send_timer = self.loop.call_later(self.limits.idle_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Continue once the client has read most of the response."""
        super().resume_writing()
        self._stop_send_timer()

    def on_response_complete(self) -> None:
        """Continue with the next request, or abort the connection if it does not close in time."""
        super().on_response_complete()
        if self.transport.is_closing():
            self.loop.call_later(self.limits.idle_seconds, self.transport.abort)

    def timeout_keep_alive_handler(self) -> None:
        """Close a connection that was idle for too long."""
        self._close()

    def connection_lost(self, exc: Exception | None) -> None:
        """Clean up after the connection is closed."""
        super().connection_lost(exc)
        self._stop_head_timer()
        self._stop_send_timer()

    def shutdown(self) -> None:
        """Answer accepted requests and those in transit, then close the connection."""
        if self._shutting_down or not self._idle:
            super().shutdown()
        else:
            self.loop.call_later(_CLOSE_SECONDS, self.shutdown)
        self._shutting_down = True

    @property
    def _idle(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        """Time the headers of a request from their first byte until they are complete."""
        if not self._idle:
            self._stop_head_timer()
        elif self._head_timer is None and not self.transport.is_closing():
            self._head_timer = self.loop.call_later(self.limits.body_seconds, self._close)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _stop_send_timer(self) -> None:
        if self._send_timer is not None:
            self._send_timer.cancel()
            self._send_timer = None

    def _close(self) -> None:
        """Close the connection; abort it if the client does not read what was already sent."""
        self.transport.close()
        self.loop.call_later(_CLOSE_SECONDS, self.transport.abort)


def limited_protocol(limits: Limits) -> type[asyncio.Protocol]:
    """Return a protocol class for connections of a service with these limits."""
    message = f"More than {limits.connections} connections are open."
    headers = {"connection": "close"}
    response = limit_error(limits, "connections", message, status=503, headers=headers).response()
    lines = [b"HTTP/1.1 503 Service Unavailable"]
    lines += [name + b": " + value for name, value in response.raw_headers]
    refusal = b"\r\n".join([*lines, b"", bytes(response.body)])
    return type("BoundProtocol", (LimitedProtocol,), {"limits": limits, "too_many": refusal})


def run(
    app: ASGIApp, *, limits: Limits, host: str, port: int, announce: Callable[[str], None]
) -> None:
    """Serve until SIGTERM or SIGINT, then answer the accepted requests and return."""
    sys.setswitchinterval(_SWITCH_SECONDS)
    listener = _listen(host, port)
    config = uvicorn.Config(
        app,
        http=limited_protocol(limits),
        ws="none",
        lifespan="on",
        log_level="error",  # a line for every malformed request could fill the disk
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=max(1, round(limits.idle_seconds)),
        timeout_graceful_shutdown=round(limits.body_seconds + limits.deadline_seconds) + 5,
    )
    server = uvicorn.Server(config)

    def stop(*_: object) -> None:
        server.should_exit = True

    # For a signal before uvicorn installs its handlers, and for the one that uvicorn raises again
    # after an orderly shutdown, which should exit with 0.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    announce(_url(listener))
    server.run(sockets=[listener])


def _listen(host: str, port: int) -> socket.socket:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # asyncio disables Nagle's algorithm, which delays responses by 40 ms, only if the protocol
        # of the socket is given as TCP.
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(2048)
    except (OSError, UnicodeError) as error:  # UnicodeError: a malformed host name
        reason = getattr(error, "strerror", None) or "not a valid host name"
        raise ConfigError(f"cannot listen on {host} port {port}: {reason}") from None
    return listener


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
