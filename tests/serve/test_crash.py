"""What a client hears when the service itself is at fault: nothing about its inside."""

import asyncio
import json

from fathomer.predictor import Predictor
from fathomer.serve import app as application
from tests.tiny import tiny_artifact

BODY = b'{"texts": ["good film"]}'


class Failing(Predictor):
    def predict_words(self, texts, words, *, max_depth=None):
        raise RuntimeError("a secret of the model")


def ask(app, method, path):
    """Send one request without a network; give status, headers and content."""
    messages = []
    scope = {"type": "http", "method": method, "path": path, "raw_path": path.encode()}
    scope |= {"headers": [], "query_string": b"", "http_version": "1.1", "scheme": "http"}
    asked = [{"type": "http.request", "body": BODY, "more_body": False}]

    async def receive():
        if asked:
            return asked.pop()
        return await asyncio.Event().wait()

    async def send(message):
        messages.append(message)

    async def scenario():
        async with app.app.router.lifespan_context(app.app):
            await asyncio.wait_for(app(scope, receive, send), 10)

    asyncio.run(scenario())
    return messages[0]["status"], dict(messages[0]["headers"]), json.loads(messages[1]["body"])


def test_a_model_that_fails_is_a_500_that_keeps_its_secrets(caplog):
    app = application.create_app(Failing(tiny_artifact()))
    status, headers, content = ask(app, "POST", "/v1/predict")
    assert (status, content["error"]["code"]) == (500, "internal")
    assert "secret" not in str(content)
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert "a secret of the model" in caplog.text


def test_a_mistake_before_the_model_is_a_500_that_keeps_its_secrets(monkeypatch, caplog):
    async def fail(*_):
        raise RuntimeError("a secret of the service")

    monkeypatch.setattr(application, "read_body", fail)
    app = application.create_app(Predictor(tiny_artifact()))
    status, headers, content = ask(app, "POST", "/v1/predict")
    assert (status, content["error"]["code"]) == (500, "internal")
    assert "secret" not in str(content)
    assert headers[b"x-content-type-options"] == b"nosniff"
    assert "a secret of the service" in caplog.text
