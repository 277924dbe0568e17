"""Every route and method of the published API, asked with every sort of token there is."""

import base64
import http.client
import json
import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from haptera.daemon.settings import API_PORT
from tests.attacks.rig import Attacked
from tests.faults.rig import PARENT_HOST
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.campaign, pytest.mark.timeout(480)]

PUBLISHED = Path(__file__).parents[2] / "docs/reference/openapi.json"
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "TRACE", "CONNECT")
ALLOWS = {
    "read": {"read"},
    "write": {"read", "write"},
    "exec": {"read", "write", "exec"},
    "admin": {"read", "write", "exec", "admin", "report"},
    "report": {"report"},
}
FOR_S = 600
# What is named is not there, or belongs to nobody: to be let in changes nothing.
NAMED = {"entity": "node:n3", "node": "n9", "revision": "999999"}
QUERIES = {
    "/v1/past": "at=5",
    "/v1/replica": "as=below",
    "/v1/freezes": "selector=n2",
}
_PARAMETER = re.compile(r"\{(\w+)\}")
# Of these a limited token is told, or writes, its own part.
OF_ITS_OWN = {
    *("/v1/entities", "/v1/status", "/v1/summary", "/v1/events", "/v1/history", "/v1/happenings"),
    *("/v1/past", "/v1/caller", "/v1/bulk", "/v1/audit", "/v1/freezes", "GET /v1/brake"),
    *("/v1/rolls", "/v1/samples", "/v1/readings", "/v1/lemons"),
}


@dataclass(frozen=True)
class Operation:
    method: str
    path: str
    scope: str | None
    query: str = ""

    @property
    def target(self) -> str:
        path = _PARAMETER.sub(lambda found: quote(NAMED.get(found[1], "none")), self.path)
        return f"{path}?{self.query}" if self.query else path


def operations() -> Iterator[Operation]:
    for path, methods in json.loads(PUBLISHED.read_text())["paths"].items():
        for method, told in methods.items():
            asked = method.upper(), path
            query = QUERIES.get(path, "") if (path, method) != ("/v1/freezes", "get") else ""
            query = query if (path, method) != ("/v1/freezes", "post") else ""
            yield Operation(*asked, told.get("x-scope"), query)
            if "x-scope-of-dry-run" in told:
                yield Operation(*asked, told["x-scope-of-dry-run"], "dry_run=1")


class Asker:
    """One connection, opened anew where the other side ends it."""

    def __init__(self) -> None:
        self._link = http.client.HTTPConnection(PARENT_HOST, API_PORT, timeout=60)

    def close(self) -> None:
        self._link.close()

    def ask(self, operation: Operation, *headers: tuple[str, str]) -> int:
        # A place in the stream that is none: that it is looked at shows that one was let in.
        nonsense = [("Last-Event-ID", "nonsense")] if operation.path == "/v1/events" else []
        body = b"" if operation.method in ("GET", "HEAD") else b"{}"
        self._link.putrequest(operation.method, operation.target, skip_accept_encoding=True)
        for name, text in (*headers, *nonsense, ("Content-Length", str(len(body)))):
            self._link.putheader(name, text)
        self._link.endheaders(body)
        with self._link.getresponse() as response:
            response.read()
            return response.status


def made(attacked: Attacked, name: str, scope: str, **more: Any) -> dict[str, Any]:
    body = {"name": name, "scope": scope, "for_s": FOR_S, **more}
    status, told = attacked.parent.ask("POST", "/v1/tokens", body)
    assert status == 201, told
    answer: dict[str, Any] = told
    return answer


def bearer(text: str) -> list[tuple[str, str]]:
    return [("Authorization", f"Bearer {text}")]


def worthless(attacked: Attacked) -> dict[str, list[tuple[str, str]]]:
    """What has no access, by what is wrong with it."""
    admin, reader = attacked.parent.token, made(attacked, "eve", "read")["text"]
    revoked, short = made(attacked, "old", "admin"), made(attacked, "brief", "admin", for_s=1)
    assert attacked.parent.ask("DELETE", f"/v1/tokens/{revoked['token']['id']}")[0] == 200
    head, _, secret = admin.rpartition(".")
    expired = bearer(short["text"])
    with closing(Asker()) as asker:
        wait_for(lambda: asker.ask(Operation("GET", "/v1/caller", "read"), *expired) == 401)
    basic = base64.b64encode(f"admin:{admin}".encode()).decode()
    return {
        "none": [],
        "empty": [("Authorization", "")],
        "no token": [("Authorization", "Bearer")],
        "nonsense": bearer("nonsense"),
        "cut short": bearer(admin[:-1]),
        "longer": bearer(f"{admin}A"),
        "another secret": bearer(f"{head}.{'A' * len(secret)}"),
        "another's secret": bearer(f"{head}.{reader.rpartition('.')[2]}"),
        "another case": bearer(admin.swapcase()),
        "another scheme": [("Authorization", f"Token {admin}")],
        "basic": [("Authorization", f"Basic {basic}")],
        "in a cookie": [("Cookie", f"token={admin}; Authorization=Bearer {admin}")],
        "in another header": [("X-Authorization", f"Bearer {admin}"), ("X-Forwarded-User", "root")],
        "two of them": [*bearer("nonsense"), *bearer(admin)],
        "revoked": bearer(revoked["text"]),
        "expired": expired,
    }


def test_a_token_is_let_in_exactly_where_its_scope_says_so(attacked: Attacked) -> None:
    before, asked = attacked.known(), 0
    nobody = worthless(attacked)
    good = {scope: bearer(made(attacked, scope, scope)["text"]) for scope in ALLOWS}
    limited = {
        scope: bearer(made(attacked, f"n2-{scope}", scope, within="n2")["text"])
        for scope in ("read", "write", "report")
    }
    wrong: list[tuple[str, Operation, int]] = []
    with closing(Asker()) as asker:
        for operation in operations():
            for name, headers in nobody.items():
                status = asker.ask(operation, *headers)
                fits = (status == 401) == (operation.scope is not None)
                wrong += [] if fits and status < 500 else [(name, operation, status)]
                asked += 1
            if operation.scope is None:
                continue
            for scope, headers in good.items():
                status = asker.ask(operation, *headers)
                allowed = operation.scope in ALLOWS[scope]
                fits = (status == 403) != allowed
                wrong += (
                    []
                    if fits and status not in (401, *range(500, 600))
                    else [(scope, operation, status)]
                )
                asked += 1
            for scope, headers in limited.items():
                status = asker.ask(operation, *headers)
                asked_of = {operation.path, f"{operation.method} {operation.path}"}
                may = bool(asked_of & OF_ITS_OWN) and operation.scope in ALLOWS[scope]
                fits = (status == 403) != may
                wrong += [] if fits and status < 500 else [(f"n2 {scope}", operation, status)]
                asked += 1
    assert (wrong, asked > 700) == ([], True), asked
    assert attacked.known() == before


def test_what_is_not_published_is_not_answered(attacked: Attacked) -> None:
    every = list(operations())
    known = {(one.method, one.path) for one in every}
    known |= {("HEAD", path) for method, path in known if method == "GET"}
    others = [
        Operation(method, path, None)
        for path in {one.path for one in every}
        for method in METHODS
        if (method, path) not in known
    ]
    others += [
        Operation("GET", path, None)
        for path in ("/v1", "/v2/entities", "//v1/entities", "/v1/../v1/tokens",
                     "/page/../../ca.key", "/page/%2e%2e/%2e%2e/ca.key", "/docs", "/debug")
    ]  # fmt: skip
    answered = []
    with closing(Asker()) as asker:
        for operation in others:
            status = asker.ask(operation, *bearer(attacked.parent.token))
            if status not in (404, 405):
                answered.append((operation, status))
    assert answered == []
