"""The application: routes under /v1, metrics, and the page for people."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute
from pydantic import ValidationError
from pydantic_core import from_json
from starlette.exceptions import HTTPException
from starlette.types import Receive, Scope, Send

from fathomer import __version__
from fathomer.artifact import versions
from fathomer.errors import did_you_mean
from fathomer.predictor import Prediction, Predictor
from fathomer.serve import problems, schema
from fathomer.serve.batcher import Batcher, Pending, QueueFullError
from fathomer.serve.body import read_body
from fathomer.serve.gate import Gate
from fathomer.serve.limits import Limits
from fathomer.serve.metrics import Metrics
from fathomer.serve.problems import Problem, beyond, json_response
from fathomer.serve.reference import reference_page
from fathomer.text.tokenizer import Words

logger = logging.getLogger(__name__)

PAGE = Path(__file__).parent / "page"
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_PUBLIC = ("/v1/health/live", "/v1/health/ready", "/docs", "/openapi.json")
"""What needs no token, beside the page."""
_SHORT = 10_000
"""Characters that are split at once; more are split in a thread, lest all others wait."""


class DirectRoute(APIRoute):
    """Give requests to the endpoint as they are: it reads them and writes the answer itself."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Skip what FastAPI would solve, validate and serialise; it costs more than all of ours."""
        return self.endpoint


class Service:
    """Answer the routes with one model; with several copies of it if there are ``workers``."""

    def __init__(
        self, predictor: Predictor, limits: Limits, workers: Sequence[Predictor] = ()
    ) -> None:
        self.predictor = predictor
        self.limits = limits
        self.metrics = Metrics()
        self.batcher = Batcher(workers or [predictor], limits, observe=self.metrics.batch)
        self.metrics.watch(self.batcher)
        self.request_model = schema.request_model(limits, max_depth=predictor.max_depth)

    async def answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request for labels without the layers around a route: they cost more than ours."""
        try:
            response = await self.predict(Request(scope, receive))
        except Problem as problem:
            response = problem.response()
        except Exception:
            logger.exception("a request could not be answered")
            response = problems.crash().response()
        await response(scope, receive, send)

    async def predict(self, request: Request) -> Response:
        """Label texts; one answer per text, in order."""
        body = await read_body(request, self.limits)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self.limits.deadline_seconds
        try:
            self.batcher.check_room()  # before any work is done for it
            asked = self._parse(body)
            async with asyncio.timeout_at(deadline):
                words = await self._split(asked.texts)
            pending = self.batcher.submit(asked.texts, words, max_depth=asked.max_depth)
        except QueueFullError as full:
            raise self._busy(*full.args) from None
        except TimeoutError:
            raise self._late() from None
        predictions = await self._answered(pending, request, deadline - loop.time())
        answers = [prediction.to_dict(words=asked.depths) for prediction in predictions]
        return json_response({"predictions": answers})

    def _parse(self, body: bytes) -> schema.PredictRequest:
        try:
            content = from_json(body)
        except ValueError as error:
            raise Problem(422, "invalid", f"Invalid JSON: {error}") from None
        if isinstance(content, dict):  # a line for each of many unknown keys would take its time
            for key in content:
                if key not in self.request_model.model_fields:
                    hint = did_you_mean(key[:100], self.request_model.model_fields)
                    raise Problem(422, "invalid", f"{key[:100]}: no such key; {hint}")
        try:
            asked = self.request_model.model_validate(content)
        except ValidationError as error:
            raise problems.not_as_described(error, self.limits) from None
        if not self.predictor.knows_depth and (asked.depths or asked.max_depth):
            raise Problem(422, "no_depth", "The words have no depth in this model.")
        return asked

    async def _split(self, texts: list[str]) -> list[Words]:
        if sum(map(len, texts)) <= _SHORT:
            return self._split_parts([texts])
        # One after another: a body has room for far more words than will be read.
        return await asyncio.to_thread(self._split_parts, [[text] for text in texts])

    def _split_parts(self, parts: list[list[str]]) -> list[Words]:
        words: list[Words] = []
        for texts in parts:
            words += self.predictor.split(texts)
            self._check_counts([len(text.ids) for text in words])
        return words

    def _check_counts(self, counts: list[int]) -> None:
        for number, count in enumerate(counts):
            if count > self.limits.words_per_text:
                message = f"texts.{number}: {count} words; at most {self.limits.words_per_text}."
                raise beyond(self.limits, "words_per_text", message)
        if sum(counts) > self.limits.words_per_request:
            message = f"More than {self.limits.words_per_request} words at a time."
            raise beyond(self.limits, "words_per_request", message)

    async def _answered(
        self, pending: Pending, request: Request, seconds: float
    ) -> list[Prediction]:
        """Wait for the answer, unless the time is over or nobody waits for it any more."""
        gone = asyncio.ensure_future(request.receive())  # after the body only a farewell comes
        waiting: set[asyncio.Future[Any]] = {pending.answer, gone}
        try:
            await asyncio.wait(
                waiting, timeout=max(0, seconds), return_when=asyncio.FIRST_COMPLETED
            )
        finally:
            disconnected = gone.done()
            gone.cancel()
            if not pending.answer.done():
                self.batcher.drop(pending)
                pending.answer.cancel()
        if pending.answer.cancelled():
            raise self._late() if not disconnected else Problem(499, "disconnected", "Gone.")
        if pending.answer.exception():  # the batcher has logged it
            raise problems.crash()
        return pending.answer.result()

    def _busy(self, limit: str) -> Problem:
        self.metrics.rejected(limit)
        message = "Too much waits for the model; try again soon."
        return beyond(self.limits, limit, message, status=429, headers={"retry-after": "1"})

    def _late(self) -> Problem:
        message = f"There was no answer within {self.limits.deadline_seconds:g} seconds."
        return beyond(self.limits, "deadline_seconds", message, status=504)

    def describe(self) -> dict[str, Any]:
        """Describe the model and the limits."""
        artifact = self.predictor.artifact
        model = artifact.recipe.model
        return {
            "labels": list(artifact.labels),
            "max_depth": model.max_depth if self.predictor.knows_depth else None,
            "size": {
                "parameters": sum(p.numel() for p in artifact.network.parameters()),
                "known_words": model.vocab_size,
                "hidden_size": model.hidden_size,
                "max_words": artifact.recipe.text.max_words,
            },
            "metrics": {k: v for k, v in artifact.metrics.items() if k in ("held_out", "test")},
            "versions": versions(),
            "limits": self.limits.to_dict(),
        }


def create_app(
    predictor: Predictor,
    *,
    workers: Sequence[Predictor] = (),
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
) -> Gate:
    """Build the service; ``token`` is asked of every client that wants answers.

    Texts are read by ``workers``, if there are any, in place of ``predictor``. With ``hosts``, requests
    for other names on the Internet are refused.
    """
    service = Service(predictor, limits or Limits(), workers)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.batcher.start()
        yield
        service.batcher.close()

    app = FastAPI(
        title="Fathomer",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirection would name whatever host the client has named
    )
    app.router.route_class = DirectRoute
    app.add_exception_handler(Problem, problems.on_problem)
    app.add_exception_handler(HTTPException, problems.on_http_error)
    app.add_exception_handler(Exception, problems.on_crash)
    _add_routes(app, service)
    page = _add_page(app)
    return Gate(
        app,
        # To the application this route is a description; its requests go past it.
        direct={("POST", "/v1/predict"): service.answer},
        metrics=service.metrics,
        paths=[getattr(route, "path", "") for route in app.routes],
        public=[*page, *_PUBLIC],
        token=token,
        hosts=hosts,
    )


def _add_routes(app: FastAPI, service: Service) -> None:
    refusals: dict[int | str, dict[str, Any]] = {
        status: {"model": schema.ErrorAnswer} for status in (401, 408, 413, 422, 429, 504)
    }
    body = {"application/json": {"schema": service.request_model.model_json_schema()}}
    app.post(
        "/v1/predict",
        response_model=schema.PredictAnswer,
        responses=refusals,
        openapi_extra={"requestBody": {"required": True, "content": body}},
    )(service.predict)

    @app.get("/v1/model", response_model=schema.ModelAnswer, responses={401: refusals[401]})
    async def model(_: Request) -> Response:
        """Describe the model, its scores, versions and the limits of the service."""
        return json_response(service.describe())

    @app.get("/v1/health/live", response_model=schema.HealthAnswer)
    async def live(_: Request) -> Response:
        """Tell that the process answers."""
        return json_response({"status": "live"})

    @app.get(
        "/v1/health/ready",
        response_model=schema.HealthAnswer,
        responses={503: {"model": schema.ErrorAnswer}},
    )
    async def ready(_: Request) -> Response:
        """Tell whether requests are taken."""
        if not service.batcher.ready:
            raise Problem(503, "not_ready", "The service takes no requests.")
        return json_response({"status": "ready"})

    @app.get("/metrics", include_in_schema=False)
    async def metrics(_: Request) -> Response:
        return Response(service.metrics.page(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def reference(_: Request) -> Response:
        return Response(reference_page(app.openapi()), media_type="text/html")


def _add_page(app: FastAPI) -> list[str]:
    """Serve the files of the page from memory: nothing else can be asked for. Give their addresses."""
    addresses = []
    for path in sorted(PAGE.glob("*")):
        if path.suffix not in _MEDIA:
            continue
        address = "/" if path.name == "index.html" else f"/{path.name}"
        file = partial(_give, path.read_bytes(), _MEDIA[path.suffix])
        app.add_route(address, file, methods=["GET"], include_in_schema=False)
        addresses.append(address)
    return addresses


async def _give(content: bytes, media: str, _: Request) -> Response:
    return Response(content, media_type=media)
