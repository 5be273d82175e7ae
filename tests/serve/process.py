"""A real service in a process of its own, and plain ways to talk to it."""

import http.client
import json
import socket
import subprocess
import sys
from contextlib import contextmanager
from typing import NamedTuple


class Service(NamedTuple):
    process: subprocess.Popen
    port: int

    def ask(self, method, path, body=None, headers=None):
        """Send a request; give status, headers in lower case, and the body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body=body, headers=headers or {})
            answer = connection.getresponse()
            found = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, found, answer.read()
        finally:
            connection.close()

    def predict(self, texts, **settings):
        """Ask for answers; give status and content."""
        body = json.dumps({"texts": texts, **settings})
        status, _, content = self.ask("POST", "/v1/predict", body)
        return status, json.loads(content)

    def raw(self, data):
        """Send bytes, and give all that comes back until the service hangs up."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=20) as connection:
            connection.sendall(data)
            received = b""
            while part := connection.recv(65536):
                received += part
            return received


@contextmanager
def service(folder, *options):
    """Start ``fathomer serve`` on a free port; end it with SIGTERM."""
    command = [sys.executable, "-m", "fathomer", "serve", str(folder), "--port", "0", *options]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        line = process.stderr.readline()
        assert line.startswith("serving "), line + process.stderr.read()
        yield Service(process, int(line.rsplit(":", 1)[1]))
    finally:
        process.terminate()
        try:
            process.communicate(timeout=60)
        finally:
            process.kill()
