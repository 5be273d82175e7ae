"""Errors of the API: a status, a code for programs and a message for people, sent as JSON."""

import json
from typing import Any

from fastapi import FastAPI
from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fathomer.serve.limits import Limits

_LIMIT_OF_ERROR_TYPE = {"too_long": "texts_per_request", "string_too_long": "characters_per_text"}


class ApiError(Exception):
    """An error that is sent to the client as JSON."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        limit: int | float | None = None,
        headers: dict[str, str] | None = None,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = headers
        self.content: dict[str, Any] = {"code": code, "message": message}
        if limit is not None:
            self.content["limit"] = limit

    def response(self) -> Response:
        """Return the error as a JSON response."""
        return json_response({"error": self.content}, status=self.status, headers=self.headers)


NOT_FOUND = ApiError(404, "not_found", "No such path; /docs lists all of them.")


def json_response(
    content: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Return a JSON response in pure ASCII, so that any string can be encoded."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    return Response(body, status, headers, media_type="application/json")


def internal_error() -> ApiError:
    """Return the error for an unexpected exception; details go to the log only."""
    return ApiError(500, "internal", "Internal error; see the log of the service.")


def limit_error(
    limits: Limits,
    name: str,
    message: str,
    *,
    status: int = 422,
    headers: dict[str, str] | None = None,
) -> ApiError:
    """Return the error for exceeding the limit ``name``."""
    return ApiError(status, name, message, limit=getattr(limits, name), headers=headers)


def validation_error(error: ValidationError, limits: Limits) -> ApiError:
    """Return the error for a body of the wrong shape, without echoing its content."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["type"] == "list_type":
        return ApiError(422, "invalid", f'{where}: must be a list, as in {{"texts": ["A text."]}}')
    message = f"{where}: {first['msg']}" if where else first["msg"]
    if name := _LIMIT_OF_ERROR_TYPE.get(first["type"]):
        return limit_error(limits, name, message)
    return ApiError(422, "invalid", message)


def add_error_handlers(app: FastAPI) -> None:
    """Register handlers that answer every exception in the same JSON format."""
    app.add_exception_handler(ApiError, _on_api_error)
    app.add_exception_handler(HTTPException, _on_http_exception)
    app.add_exception_handler(Exception, _on_unexpected_error)


async def _on_api_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return error.response()


async def _on_http_exception(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 404:
        return NOT_FOUND.response()
    if error.status_code == 405:
        message = f"Method not allowed; use {headers['Allow']}."
        return ApiError(405, "method_not_allowed", message, headers=headers).response()
    return ApiError(error.status_code, "http", str(error.detail), headers=headers).response()


async def _on_unexpected_error(_: Request, __: Exception) -> Response:
    return internal_error().response()
