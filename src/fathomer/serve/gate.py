"""What every request passes: host, path and token, strict headers on the answer, and the clock."""

import hmac
import ipaddress
import time
from collections.abc import Collection, Iterable, Mapping

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


class Gate:
    """Let requests through that name a path of ours, and carry the token if one is asked for.

    They go to the application, or past its layers to whom ``direct`` names for method and path.
    Only what is ``public`` needs no token: the page holds nothing secret, and balancers ask for
    health without one. If there are ``hosts``, no other name on the Internet may be asked for.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        direct: Mapping[tuple[str, str], ASGIApp],
        metrics: Metrics,
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
            await self._choose(scope)(_as_get(scope), receive, send_strictly)
        finally:
            # Only paths that exist become labels: a stranger cannot fill the memory with others.
            path = scope["path"] if scope["path"] in self._paths else "other"
            self._metrics.request(path, status, time.perf_counter() - started)

    def _choose(self, scope: Scope) -> ASGIApp:
        """Choose who answers. A path must be one of ours to the letter: routers take more."""
        if self._hosts is not None and not _is_ours(_host_of(scope), self._hosts):
            return _FOR_ANOTHER_HOST.response()
        if scope["path"] not in self._paths:
            return _NOT_FOUND.response()
        if not self._may_pass(scope):
            return _NO_TOKEN.response()
        return self._direct.get((scope["method"], scope["path"]), self.app)

    def _may_pass(self, scope: Scope) -> bool:
        if self._expected is None or scope["path"] in self._public:
            return True
        kind, _, token = _header(scope, b"authorization").partition(b" ")
        return hmac.compare_digest(kind.lower() + b" " + token.strip(), self._expected)


_NO_TOKEN = Problem(
    401,
    "unauthorized",
    "This service asks for a token: Authorization: Bearer <token>.",
    headers={"www-authenticate": "Bearer", "connection": "close"},
)
_NOT_FOUND = Problem(404, "not_found", "Not Found")
_FOR_ANOTHER_HOST = Problem(
    421,
    "other_host",
    "This service does not go by that name; --allowed-host adds one.",
    headers={"connection": "close"},
)


def _header(scope: Scope, wanted: bytes) -> bytes:
    found: bytes = next((value for name, value in scope["headers"] if name == wanted), b"")
    return found


def _host_of(scope: Scope) -> str:
    """Give the name that the client has used, without the port."""
    host = _header(scope, b"host").decode("latin-1").lower()
    name, _, port = host.rpartition(":")
    return name if name and port.isdigit() else host


def _is_ours(host: str, hosts: Collection[str]) -> bool:
    """Take addresses, names without a dot, and ``hosts``.

    By another name a page on the Internet could let its visitors' browsers ask this service: whoever
    owns a name can say that it means this machine.
    """
    if "." not in host or host in hosts:
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _as_get(scope: Scope) -> Scope:
    """Answer HEAD as GET; the server leaves the body out."""
    return {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope
