"""A service in a process of its own, and simple clients for it."""

import http.client
import json
import re
import select
import socket
from contextlib import contextmanager
from typing import NamedTuple

from tests.forked import Forked

LOOPBACK = "127.0.0.1"
PREDICT = b"POST /v1/predict HTTP/1.1\r\nhost: x\r\n"
"""Request line and first header of a prediction request."""


def post(body):
    """Return the bytes of a prediction request."""
    return PREDICT + b"content-length: %d\r\n\r\n" % len(body) + body


def question(*texts, **settings):
    """Return the bytes of a prediction request for these texts."""
    return post(json.dumps({"texts": texts, **settings}, ensure_ascii=False).encode())


class Service(NamedTuple):
    """A running service."""

    process: Forked
    port: int

    def connect(self):
        """Open a connection that can be used for several requests."""
        return http.client.HTTPConnection(LOOPBACK, self.port, timeout=60)

    def connect_raw(self):
        """Open a plain socket."""
        return socket.create_connection((LOOPBACK, self.port), timeout=20)

    def ask(self, method, path, body=None, headers=None):
        """Send a request; return the status, the headers in lower case and the body."""
        connection = self.connect()
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def predict(self, texts, **settings):
        """Request predictions; return the status and the content."""
        body = json.dumps({"texts": texts, **settings})
        status, _, content = self.ask("POST", "/v1/predict", body)
        return status, json.loads(content)

    def raw(self, data):
        """Send bytes; return all that comes back until the service closes the connection."""
        with self.connect_raw() as connection:
            connection.sendall(data)
            return read_all(connection)


def read_all(connection):
    """Return everything that arrives on a socket until it is closed."""
    received = b""
    while part := connection.recv(65536):
        received += part
    return received


def readable(connection, seconds):
    """Whether the other side sends something or closes the connection within some seconds."""
    return bool(select.select([connection], [], [], seconds)[0])


@contextmanager
def service(model, *options, folder="."):
    """Start ``fathomer serve`` in a folder, on a free port; stop it with SIGTERM."""
    with Forked("serve", str(model), "--port", "0", *options, folder=folder) as process:
        try:
            line = process.stderr.readline()
            assert line.startswith("serving "), line + process.stderr.read()
            yield Service(process, int(line.rsplit(":", 1)[1]))
        finally:
            process.terminate()
            try:
                process.wait(timeout=60)
            finally:
                process.kill()


def accepted(running):
    """Return how many requests are queued or answered."""
    metrics = running.ask("GET", "/metrics")[2]
    numbers = re.findall(
        rb'^fathomer_(?:queue_requests|requests_total{path="/v1/predict",.*}) (\S+)$', metrics, re.M
    )
    return sum(map(float, numbers))
