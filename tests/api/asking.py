"""Asking an application without a socket between."""

import asyncio
import json
from dataclasses import dataclass

from haptera.api.app import make_app
from haptera.api.requests.callers import PEER
from haptera.site import Sites


@dataclass
class Answer:
    status: int
    headers: dict
    body: bytes
    pieces: int

    @property
    def json(self):
        return json.loads(self.body)


def app_of(backend, **terms):
    """The application over this backend, of a cluster `quick`."""
    return make_app(backend, Sites("quick"), cluster="quick", **terms)


def ask(app, method, path, *, token=None, body=b"", headers=None, host="127.0.0.1:4270", peer=None):
    """One request, one answer; `peer` is who the connection says is at its other end."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    headers = {"host": host, **(headers or {})}
    return asyncio.run(asked(app, method, path, token, body, headers, peer))


async def asked(app, method, path, token, body, headers, peer=None):
    if token is not None:
        headers["authorization"] = f"Bearer {token}"
    path, _, query = path.partition("?")
    scope = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query.encode("utf-8"),
        "headers": [(name.encode(), str(value).encode()) for name, value in headers.items()],
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 4270),
        "scheme": "http",
        "root_path": "",
        "http_version": "1.1",
        "state": {PEER: peer},
    }
    sent, chunks = [], [body[at : at + 65536] for at in range(0, len(body), 65536)] or [b""]

    async def receive():
        if not chunks:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunks.pop(0), "more_body": bool(chunks)}

    async def send(message):
        sent.append(message)

    await app(scope, receive, send)
    start = sent[0]
    return Answer(
        start["status"],
        {name.decode(): value.decode() for name, value in start["headers"]},
        b"".join(message.get("body", b"") for message in sent[1:]),
        len(sent) - 1,
    )
