"""What every request passes: the token, strict headers on the answer, and the clock."""

import hmac
import time
from collections.abc import Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fathomer.serve.metrics import Metrics
from fathomer.serve.problems import Problem

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", _POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"x-frame-options", b"DENY"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]
GUARDED = ("/v1/predict", "/v1/model", "/metrics")
"""What needs the token; the page holds nothing secret, and balancers ask for health without one."""


class Gate:
    """Let requests through that carry the token, if one is asked for.

    They go to the application, or past its layers to whom ``direct`` names for method and path.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        direct: Mapping[tuple[str, str], ASGIApp],
        metrics: Metrics,
        paths: Iterable[str],
        token: str | None,
    ) -> None:
        self.app = app
        self._direct = direct
        self._metrics = metrics
        self._paths = frozenset(paths)
        self._expected = f"bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def send_strictly(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            app = self._direct.get((scope["method"], scope["path"]), self.app)
            if not self._may_pass(scope):
                app = _no_token
            await app(scope, receive, send_strictly)
        finally:
            # Only paths that exist become labels: a stranger cannot fill the memory with others.
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.request(path, status, time.perf_counter() - started)

    def _may_pass(self, scope: Scope) -> bool:
        if self._expected is None or scope["path"] not in GUARDED:
            return True
        given = next((value for name, value in scope["headers"] if name == b"authorization"), b"")
        kind, _, token = given.partition(b" ")
        return hmac.compare_digest(kind.lower() + b" " + token.strip(), self._expected)


async def _no_token(scope: Scope, receive: Receive, send: Send) -> None:
    problem = Problem(
        401,
        "unauthorized",
        "This service asks for a token: Authorization: Bearer <token>.",
        headers={"www-authenticate": "Bearer", "connection": "close"},
    )
    await problem.response()(scope, receive, send)
