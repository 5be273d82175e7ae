"""Checks that every request passes, security headers on every response, and request metrics."""

import hmac
import ipaddress
import time
from collections.abc import Collection, Iterable, Mapping

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fathomer.serve.errors import NOT_FOUND, ApiError
from fathomer.serve.metrics import ServiceMetrics

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

_UNAUTHORIZED = ApiError(
    401,
    "unauthorized",
    "This service requires a token: Authorization: Bearer <token>.",
    headers={"www-authenticate": "Bearer", "connection": "close"},
)
_WRONG_HOST = ApiError(
    421,
    "other_host",
    "This service does not accept that host name; --allowed-host adds one.",
    headers={"connection": "close"},
)


class SecurityMiddleware:
    """Middleware that checks host, path and token before a request reaches the application.

    ``direct`` maps a method and path to an ASGI application that is called instead of ``app``.
    Paths in ``public`` need no token: the page holds no secrets, and load balancers check the
    health without one. If ``hosts`` is given, requests for other domain names are refused.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        direct: Mapping[tuple[str, str], ASGIApp],
        metrics: ServiceMetrics,
        paths: Iterable[str],
        public: Collection[str],
        token: str | None,
        hosts: Collection[str] | None = None,
    ) -> None:
        self.app = app
        self._direct = direct
        self._metrics = metrics
        self._paths = frozenset(paths)
        self._public = frozenset(public)
        self._hosts = hosts
        self._expected = f"bearer {token}".encode() if token else None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *HEADERS]
            await send(message)

        try:
            await self._choose_app(scope)(_as_get(scope), receive, send_with_headers)
        finally:
            # Only known paths become metric labels, so clients cannot fill the memory with new ones.
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.record_request(path, status, time.perf_counter() - started)

    def _choose_app(self, scope: Scope) -> ASGIApp:
        """Return the application or error response for a request.

        Paths must match exactly: routers also accept variants, which would bypass the token.
        """
        if self._hosts is not None and not _is_allowed(_host_of(scope), self._hosts):
            return _WRONG_HOST.response()
        if scope["path"] not in self._paths:
            return NOT_FOUND.response()
        if not self._is_authorized(scope):
            return _UNAUTHORIZED.response()
        return self._direct.get((scope["method"], scope["path"]), self.app)

    def _is_authorized(self, scope: Scope) -> bool:
        if self._expected is None or scope["path"] in self._public:
            return True
        kind, _, token = _header(scope, b"authorization").partition(b" ")
        return hmac.compare_digest(kind.lower() + b" " + token.strip(), self._expected)


def _header(scope: Scope, wanted: bytes) -> bytes:
    found: bytes = next((value for name, value in scope["headers"] if name == wanted), b"")
    return found


def _host_of(scope: Scope) -> str:
    """Return the host name of a request, without the port."""
    host = _header(scope, b"host").decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _is_allowed(host: str, hosts: Collection[str]) -> bool:
    """Whether ``host`` is an IP address, a name without a dot, or one of ``hosts``.

    This prevents DNS rebinding: the owner of a domain could point it at this machine, and a page
    there could then query the service through a visitor's browser.
    """
    if "." not in host or host in hosts:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _as_get(scope: Scope) -> Scope:
    """Turn HEAD into GET; the server omits the body."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
