"""Connections without a network: what happens to one at the very end."""

import asyncio

import uvicorn
from uvicorn.server import ServerState

from fathomer.serve.limits import Limits
from fathomer.serve.server import strict_protocol

REQUEST = b"GET / HTTP/1.1\r\nhost: x\r\n\r\n"


class Wire(asyncio.Transport):
    """Keep what is written, and whether it was closed."""

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
    protocol = strict_protocol(Limits())
    config = uvicorn.Config(hello, http=protocol, log_config=None)
    made = protocol(config=config, server_state=ServerState(), app_state={})
    wire = Wire()
    made.connection_made(wire)
    return made, wire


def run(scenario):
    asyncio.run(asyncio.wait_for(scenario(), 20))


def test_a_request_on_its_way_when_the_end_begins_is_answered():
    async def scenario():
        made, wire = connection()
        made.shutdown()
        assert not wire.is_closing()
        made.data_received(REQUEST)
        await wire.closed.wait()
        assert wire.written.endswith(b"\r\n\r\nhello")
        assert b"\r\nconnection: close\r\n" in wire.written

    run(scenario)


def test_at_the_end_a_resting_connection_is_closed_after_a_while():
    async def scenario():
        made, wire = connection()
        made.data_received(REQUEST)
        while not wire.written.endswith(b"hello"):
            await asyncio.sleep(0)
        assert not wire.is_closing()
        made.shutdown()
        await wire.closed.wait()
        assert b"connection: close" not in wire.written

    run(scenario)


def test_what_is_being_answered_at_the_end_tells_the_client_to_go():
    async def scenario():
        made, wire = connection()
        made.data_received(REQUEST)
        made.shutdown()
        await wire.closed.wait()
        assert wire.written.count(b"hello") == 1
        assert b"\r\nconnection: close\r\n" in wire.written

    run(scenario)
