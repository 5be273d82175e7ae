"""The application: its URLs under /v1, the metrics, and the page for people."""

from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.routing import APIRoute

from fathomer import __version__
from fathomer.artifact import versions
from fathomer.predictor import Predictor
from fathomer.serve import schema
from fathomer.serve.api_docs import reference_page
from fathomer.serve.batcher import Batcher
from fathomer.serve.errors import ApiError, add_error_handlers, json_response
from fathomer.serve.limits import Limits
from fathomer.serve.metrics import ServiceMetrics
from fathomer.serve.middleware import SecurityMiddleware
from fathomer.serve.predict_endpoint import PredictEndpoint
from fathomer.serve.request import RequestParser

PAGE = Path(__file__).parent / "page"
_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
_PUBLIC = ("/v1/health/live", "/v1/health/ready", "/docs", "/openapi.json")
"""Paths that need no token, in addition to the page."""


class PlainRoute(APIRoute):
    """A route whose endpoint takes the request and returns the response itself."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the endpoint, without FastAPI's validation and serialisation around it."""
        return self.endpoint


def create_app(
    predictor: Predictor,
    *,
    workers: Sequence[Predictor] = (),
    limits: Limits | None = None,
    token: str | None = None,
    hosts: Collection[str] | None = None,
) -> SecurityMiddleware:
    """Create the ASGI application of the service.

    ``workers`` make the predictions in place of ``predictor``, if there are any. With a ``token``,
    clients must send it. With ``hosts``, requests for other domain names are refused.
    """
    limits = limits or Limits()
    metrics = ServiceMetrics()
    batcher = Batcher(workers or [predictor], limits, observe=metrics.record_batch)
    metrics.watch(batcher)
    parser = RequestParser(predictor, limits)
    endpoint = PredictEndpoint(parser, batcher, limits, metrics)
    app = _new_app(batcher)
    _add_predict(app, endpoint, parser)
    _add_model(app, describe(predictor, limits))
    _add_health(app, batcher)
    _add_metrics_and_reference(app, metrics)
    page = _add_page(app)
    return SecurityMiddleware(
        app,
        direct={("POST", "/v1/predict"): endpoint},  # its route above only documents it
        metrics=metrics,
        paths=[getattr(route, "path", "") for route in app.routes],
        public=[*page, *_PUBLIC],
        token=token,
        hosts=hosts,
    )


def _new_app(batcher: Batcher) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        batcher.start()
        yield
        batcher.close()

    app = FastAPI(
        title="Fathomer",
        version=__version__,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would repeat whatever host name the client sent
    )
    app.router.route_class = PlainRoute
    add_error_handlers(app)
    return app


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    return {status: {"model": schema.ErrorAnswer} for status in statuses}


def _add_predict(app: FastAPI, endpoint: PredictEndpoint, parser: RequestParser) -> None:
    body = {"application/json": {"schema": parser.model.model_json_schema()}}
    app.post(
        "/v1/predict",
        response_model=schema.PredictAnswer,
        responses=_errors(401, 408, 413, 415, 422, 429, 504),
        openapi_extra={"requestBody": {"required": True, "content": body}},
    )(endpoint.predict)


def _add_model(app: FastAPI, description: dict[str, Any]) -> None:
    @app.get("/v1/model", response_model=schema.ModelAnswer, responses=_errors(401))
    async def model(_: Request) -> Response:
        """Describe the model, its scores, the versions and the limits of the service."""
        return json_response(description)


def describe(predictor: Predictor, limits: Limits) -> dict[str, Any]:
    """Return what ``/v1/model`` says about the model and the limits."""
    artifact = predictor.artifact
    model = artifact.recipe.model
    return {
        "labels": list(artifact.labels),
        "max_depth": model.max_depth if predictor.knows_depth else None,
        "depth_budget": artifact.depth_budgets and artifact.depth_budgets.target,
        "size": {
            "parameters": sum(p.numel() for p in artifact.network.parameters()),
            "known_words": model.vocab_size,
            "hidden_size": model.hidden_size,
            "max_words": artifact.recipe.text.max_words,
        },
        "metrics": {k: v for k, v in artifact.metrics.items() if k in ("held_out", "test")},
        "versions": versions(),
        "limits": limits.to_dict(),
    }


def _add_health(app: FastAPI, batcher: Batcher) -> None:
    @app.get("/v1/health/live", response_model=schema.HealthAnswer)
    async def live(_: Request) -> Response:
        """Check that the process responds."""
        return json_response({"status": "live"})

    @app.get("/v1/health/ready", response_model=schema.HealthAnswer, responses=_errors(503))
    async def ready(_: Request) -> Response:
        """Check that requests are accepted."""
        if not batcher.ready:
            raise ApiError(503, "not_ready", "The service accepts no requests.")
        return json_response({"status": "ready"})


def _add_metrics_and_reference(app: FastAPI, metrics: ServiceMetrics) -> None:
    @app.get("/metrics", include_in_schema=False)
    async def prometheus(_: Request) -> Response:
        return Response(metrics.render(), media_type="text/plain; version=0.0.4")

    @app.get("/docs", include_in_schema=False)
    async def reference(_: Request) -> Response:
        return Response(reference_page(app.openapi()), media_type="text/html")


def _add_page(app: FastAPI) -> list[str]:
    """Serve the page from memory, so that no other file can be requested; return its paths."""
    paths = []
    for file in sorted(PAGE.glob("*")):
        if file.suffix not in _MEDIA_TYPES:
            continue
        path = "/" if file.name == "index.html" else f"/{file.name}"
        endpoint = partial(_send_file, file.read_bytes(), _MEDIA_TYPES[file.suffix])
        app.add_route(path, endpoint, methods=["GET"], include_in_schema=False)
        paths.append(path)
    return paths


async def _send_file(content: bytes, media_type: str, _: Request) -> Response:
    return Response(content, media_type=media_type)
