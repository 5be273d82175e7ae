"""A fault of the service is a 500 that reveals nothing about its cause."""

import asyncio
import json

from fathomer.predictor import Predictor
from fathomer.serve import predict_endpoint
from fathomer.serve.routes import create_app
from tests.tiny import tiny_artifact

BODY = b'{"texts": ["good film"]}'


class FailingPredictor(Predictor):
    def predict_words(self, texts, words, **settings):
        raise RuntimeError("a secret of the model")


def ask(app):
    """Send one request without a network; return the status, headers and content."""
    messages = []
    path = "/v1/predict"
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode()}
    scope |= {"headers": [], "query_string": b"", "http_version": "1.1", "scheme": "http"}
    incoming = [{"type": "http.request", "body": BODY, "more_body": False}]

    async def receive():
        if incoming:
            return incoming.pop()
        return await asyncio.Event().wait()

    async def send(message):
        messages.append(message)

    async def scenario():
        async with app.app.router.lifespan_context(app.app):
            await asyncio.wait_for(app(scope, receive, send), 10)

    asyncio.run(scenario())
    return messages[0]["status"], dict(messages[0]["headers"]), json.loads(messages[1]["body"])


def assert_internal_error(status, headers, content):
    assert (status, content["error"]["code"]) == (500, "internal")
    assert "secret" not in str(content)
    assert headers[b"x-content-type-options"] == b"nosniff"


def test_an_exception_in_the_model_is_a_500_without_details(caplog):
    app = create_app(FailingPredictor(tiny_artifact()))
    assert_internal_error(*ask(app))
    assert "a secret of the model" in caplog.text


def test_an_exception_before_the_model_is_a_500_without_details(monkeypatch, caplog):
    async def fail(*_):
        raise RuntimeError("a secret of the service")

    monkeypatch.setattr(predict_endpoint, "read_body", fail)
    app = create_app(Predictor(tiny_artifact()))
    assert_internal_error(*ask(app))
    assert "a secret of the service" in caplog.text
