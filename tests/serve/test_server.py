"""Shutdown of single connections, without a network."""

import asyncio

import uvicorn
from uvicorn.server import ServerState

from fathomer.serve.limits import Limits
from fathomer.serve.server import limited_protocol

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class RecordingTransport(asyncio.Transport):
    """A transport that records what is written and whether it was closed."""

    def __init__(self):
        super().__init__()
        self.written = b""
        self.closed = asyncio.Event()

    def write(self, data):
        self.written += data

    def close(self):
        self.closed.set()

    def is_closing(self):
        return self.closed.is_set()

    def resume_reading(self):
        pass


async def hello(scope, receive, send):
    headers = [(b"content-length", b"5")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"hello"})


def connection():
    protocol = limited_protocol(Limits())
    config = uvicorn.Config(hello, http=protocol, log_config=None)
    made = protocol(config=config, server_state=ServerState(), app_state={})
    transport = RecordingTransport()
    made.connection_made(transport)
    return made, transport


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_request_in_transit_at_shutdown_is_answered():
    async def scenario():
        made, transport = connection()
        made.shutdown()
        assert not transport.is_closing()
        made.data_received(REQUEST)
        await transport.closed.wait()
        assert transport.written.endswith(b"\r\n\r\nhello")
        assert b"\r\nconnection: close\r\n" in transport.written

    run(scenario)


def test_an_idle_connection_is_closed_soon_after_shutdown():
    async def scenario():
        made, transport = connection()
        made.data_received(REQUEST)
        while not transport.written.endswith(b"hello"):
            await asyncio.sleep(0)
        assert not transport.is_closing()
        made.shutdown()
        await transport.closed.wait()
        assert b"connection: close" not in transport.written

    run(scenario)


def test_an_answer_during_shutdown_closes_the_connection():
    async def scenario():
        made, transport = connection()
        made.data_received(REQUEST)
        made.shutdown()
        await transport.closed.wait()
        assert transport.written.count(b"hello") == 1
        assert b"\r\nconnection: close\r\n" in transport.written

    run(scenario)
