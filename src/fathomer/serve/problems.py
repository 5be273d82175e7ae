"""What goes wrong with a request, as JSON that says which limit it was."""

import json
from typing import Any

from pydantic import ValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

from fathomer.serve.limits import Limits

_LIMIT_OF = {"too_long": "texts_per_request", "string_too_long": "characters_per_text"}


class Problem(Exception):
    """Stop a request with a status, a code for programs, and a sentence for people."""

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
        """Write the problem as JSON."""
        return json_response({"error": self.content}, status=self.status, headers=self.headers)


def crash() -> Problem:
    """Say that it was not the client's fault, and no word about the inside; the log has that."""
    return Problem(500, "internal", "The service made a mistake; its log says more.")


def json_response(
    content: dict[str, Any], *, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    """Write JSON in ASCII, so that whatever strings hold can be sent."""
    body = json.dumps(content, separators=(",", ":"), allow_nan=False).encode("ascii")
    return Response(body, status, headers, media_type="application/json")


def beyond(
    limits: Limits,
    name: str,
    message: str,
    *,
    status: int = 422,
    headers: dict[str, str] | None = None,
) -> Problem:
    """Say which limit a request exceeds."""
    return Problem(status, name, message, limit=getattr(limits, name), headers=headers)


def not_as_described(error: ValidationError, limits: Limits) -> Problem:
    """Say what is wrong with a body, without repeating what was sent."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    message = f"{where}: {first['msg']}" if where else first["msg"]
    if name := _LIMIT_OF.get(first["type"]):
        return beyond(limits, name, message)
    return Problem(422, "invalid", message)


async def on_problem(_: Request, error: Exception) -> Response:
    """Answer with what a route has raised."""
    assert isinstance(error, Problem)
    return error.response()


async def on_http_error(_: Request, error: Exception) -> Response:
    """Answer what no route is there for."""
    assert isinstance(error, HTTPException)
    code = {404: "not_found", 405: "method_not_allowed"}.get(error.status_code, "http")
    headers = dict(error.headers or {})
    return Problem(error.status_code, code, str(error.detail), headers=headers).response()


async def on_crash(_: Request, __: Exception) -> Response:
    """Answer what a route did not expect."""
    return crash().response()
