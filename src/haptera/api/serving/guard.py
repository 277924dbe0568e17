"""What holds for every request and answer: its host, its one length, the headers of safety."""

import re
from collections.abc import Collection
from http import HTTPStatus
from ipaddress import ip_address
from typing import Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from haptera.api.requests.problems import problem
from haptera.model.errors import Code, HapteraError

_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(?::[0-9]{1,5})?")

HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';"
        " img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Guard:
    """Answers only requests for an address or a known name.

    A page elsewhere can have its own name point here (DNS rebinding), but not an address.
    """

    def __init__(self, app: ASGIApp, hosts: Collection[str]) -> None:
        self._app = app
        self._hosts = frozenset(name.lower() for name in hosts) | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        headers = Headers(scope=scope)
        host = headers.get("host", "")
        app = self._app if self._known(host) else _misdirected(host)
        if "transfer-encoding" in headers and "content-length" in headers:
            app = _of_two_lengths()
        await app(scope, receive, send_with_headers)

    def _known(self, host: str) -> bool:
        found = _HOST.fullmatch(host)
        if found is None:
            return False
        name = found["name"].strip("[]").lower()
        return name in self._hosts or _is_address(name)


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


def _of_two_lengths() -> ASGIApp:
    """Who passed it on may have believed the other one (RFC 9112, 6.3): nothing more is read."""
    error = HapteraError(
        "Content-Length and Transfer-Encoding are both given", do="send one of them"
    )
    return problem(error, HTTPStatus.BAD_REQUEST, {"Connection": "close"})


def _misdirected(host: str) -> ASGIApp:
    status = HTTPStatus.MISDIRECTED_REQUEST
    error = HapteraError(
        f"{host!r} is not a host name of this server",
        where="the header Host",
        do="use the address",
        code=Code.MISDIRECTED,
    )
    return problem(error, status, None)
