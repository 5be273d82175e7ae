"""The endpoint ``POST /v1/predict``."""

import asyncio
import logging
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from fathomer.prediction import Prediction
from fathomer.serve.batcher import Batcher, PendingRequest, QueueFullError
from fathomer.serve.errors import ApiError, internal_error, json_response, limit_error
from fathomer.serve.limits import Limits
from fathomer.serve.metrics import ServiceMetrics
from fathomer.serve.request import RequestParser, read_body

logger = logging.getLogger(__name__)

_NOT_JSON = ApiError(
    415,
    "content_type",
    "Send JSON with the header Content-Type: application/json.",
    headers={"connection": "close"},
)
_CURL = (b"", b"application/x-www-form-urlencoded")
"""Types that programs send if none is named."""


class PredictEndpoint:
    """An ASGI application that answers prediction requests.

    It is called directly, without FastAPI's routing and validation: those take longer than
    everything else the service does for a request.
    """

    def __init__(
        self, parser: RequestParser, batcher: Batcher, limits: Limits, metrics: ServiceMetrics
    ) -> None:
        self._parser = parser
        self._batcher = batcher
        self._limits = limits
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, with an error response if it fails."""
        try:
            response = await self.predict(Request(scope, receive))
        except ApiError as error:
            response = error.response()
        except Exception:
            logger.exception("a request could not be answered")
            response = internal_error().response()
        await response(scope, receive, send)

    async def predict(self, request: Request) -> Response:
        """Classify texts: one prediction per text, in the same order."""
        if not _is_json(request):
            raise _NOT_JSON
        body = await read_body(request, self._limits)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.deadline_seconds
        try:
            self._batcher.check_room()  # before spending any time on the request
            parsed = self._parser.parse(body)
            async with asyncio.timeout_at(deadline):
                words = await self._parser.split(parsed.texts, contributions=parsed.contributions)
            pending = self._batcher.submit(
                parsed.texts,
                words,
                max_depth=parsed.max_depth,
                depth_budget=parsed.depth_budget,
                contributions=parsed.contributions,
            )
        except QueueFullError as full:
            raise self._queue_full(*full.args) from None
        except TimeoutError:
            raise self._deadline_exceeded() from None
        predictions = await self._wait(pending, request, deadline - loop.time())
        shown = parsed.depths or parsed.contributions
        answers = [prediction.to_dict(words=shown) for prediction in predictions]
        return json_response({"predictions": answers})

    async def _wait(
        self, pending: PendingRequest, request: Request, seconds: float
    ) -> list[Prediction]:
        """Wait for the predictions until the deadline passes or the client disconnects."""
        disconnect = asyncio.ensure_future(request.receive())  # the only message after the body
        waiting: set[asyncio.Future[Any]] = {pending.answer, disconnect}
        try:
            await asyncio.wait(
                waiting, timeout=max(0, seconds), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            disconnected = disconnect.done()
            disconnect.cancel()
            if not pending.answer.done():
                self._batcher.drop(pending)
                pending.answer.cancel()
        if pending.answer.cancelled():
            if disconnected:
                raise ApiError(499, "disconnected", "The client disconnected.")
            raise self._deadline_exceeded()
        if pending.answer.exception():  # already logged by the batcher
            raise internal_error()
        return pending.answer.result()

    def _queue_full(self, limit: str) -> ApiError:
        self._metrics.record_rejection(limit)
        message = "The queue is full; try again soon."
        return limit_error(self._limits, limit, message, status=429, headers={"retry-after": "1"})

    def _deadline_exceeded(self) -> ApiError:
        message = f"No answer within {self._limits.deadline_seconds:g} seconds."
        return limit_error(self._limits, "deadline_seconds", message, status=504)


def _is_json(request: Request) -> bool:
    """Whether the body is JSON; browsers send other types to foreign sites without asking them.

    A browser names the origin of such a request, so programs without one may leave the type out.
    """
    headers = dict(request.scope["headers"])
    kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
    return kind == b"application/json" or (kind in _CURL and b"origin" not in headers)
