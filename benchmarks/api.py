"""What the API costs: one entity read and patched, 10,000 listed, a change told to 200 streams.

    python -m benchmarks.api [ROUNDS]

The real application, engine and store, with 10,000 nodes and nothing to act on them, served by the
daemon's own server in a process of its own; the baseline, in the same run and in turns with it, is
a bare ASGI callable in the same server that sends as many bytes, of which it makes nothing. One
client asks over one kept connection, of plain sockets. For a change told to 200 streams the time is
from the request that makes it to the last stream's having it; the baseline is told of it by a bare
queue for each stream. Figures are wall time, the median of all rounds; the ratios are what counts.
"""

import asyncio
import http.client
import json
import multiprocessing
import statistics
import sys
import tempfile
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from time import perf_counter_ns, sleep

from starlette.applications import Starlette

from haptera.api.app import make_app
from haptera.api.routes.stream import STREAMS_EACH_MAX
from haptera.api.serving.server import Server, listen
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.runtime.identity.tokens import Bearer, Scope
from haptera.site import Sites
from tests.api.real_backend import real_backend

ROUNDS = 200
LISTS = 5
NODES = 10_000
STREAMS = STREAMS_EACH_MAX
WITHIN_S = 120
# A stream sends nothing for 50 ms after it has sent something, so that changes go out together.
APART_S = 0.3
LINES = {"Accept": "application/x-ndjson"}
ONE = "/v1/entities/node:n00001"
PATCHED = f"{ONE}/desired"
LISTED = "/v1/entities?kind=node"


class Bare:
    """Sends what it was told to for a path, and to each stream whatever is posted."""

    def __init__(self, answers: dict[str, bytes]) -> None:
        self._answers = answers
        self._queues: set[asyncio.Queue[bytes]] = set()
        self.state = Starlette().state
        self.state.streams = self

    def close(self) -> None:
        """The server is about to end, and the streams with it."""
        for queue in self._queues:
            queue.put_nowait(b"")

    async def __call__(self, scope, receive, send) -> None:
        if scope["path"] == "/v1/events":
            await self._stream(send)
            return
        while (await receive()).get("more_body"):
            pass
        if scope["method"] == "POST":
            for queue in self._queues:
                queue.put_nowait(b"data: changed\n\n")
        body = self._answers.get(scope["method"] + scope["path"], b"{}")
        length = (b"content-length", str(len(body)).encode())
        await send({"type": "http.response.start", "status": 200, "headers": [length]})
        await send({"type": "http.response.body", "body": body})

    async def _stream(self, send) -> None:
        queue: asyncio.Queue[bytes] = asyncio.Queue()
        self._queues.add(queue)
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"data: first\n\n", "more_body": True})
        while event := await queue.get():
            await send({"type": "http.response.body", "body": event, "more_body": True})


def serve_real(told: Connection) -> None:
    """Serve the application until it is told anything; tells the port and a token."""

    async def run() -> None:
        nodes = [node_id(f"n{number:05}") for number in range(NODES)]
        declared = [Declare(one, {"rack": str(at // 40)}, "site") for at, one in enumerate(nodes)]
        wished = [SetDesired(one, "power", "on", "user:bench") for one in nodes]
        with tempfile.TemporaryDirectory() as folder:
            async with real_backend(Path(folder), *declared, *wished) as backend:
                token = (await backend.tokens.mint(Bearer("bench", Scope.WRITE), 3600)).text
                app = make_app(backend, Sites("bench"), cluster="bench")
                await _serve(app, told, token)

    asyncio.run(run())


def serve_bare(told: Connection, answers: dict[str, bytes]) -> None:
    asyncio.run(_serve(Bare(answers), told, "none"))


async def _serve(app, told: Connection, token: str) -> None:
    listener = listen("127.0.0.1", 0)
    server = asyncio.create_task(Server(app, listener).run())
    told.send((listener.getsockname()[1], token))
    await asyncio.to_thread(told.recv)
    server.cancel()
    await asyncio.wait([server])


class Client:
    """One kept connection to one server."""

    def __init__(self, port: int, token: str) -> None:
        self.port = port
        self.headers = {"Authorization": f"Bearer {token}"}
        self.connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WITHIN_S)

    def ask(self, method: str, path: str, body: bytes | None = None, **headers: str) -> bytes:
        self.connection.request(method, path, body, {**self.headers, **headers})
        answer = self.connection.getresponse()
        content = answer.read()
        assert answer.status == 200, (method, path, content)
        return content


class Streams:
    """So many streams; `wait` returns once each has had something since it was asked to."""

    def __init__(self, client: Client, count: int) -> None:
        self._connections = []
        for _ in range(count):
            connection = http.client.HTTPConnection("127.0.0.1", client.port, timeout=WITHIN_S)
            connection.request("GET", "/v1/events?select=n00001", headers=client.headers)
            answer = connection.getresponse()
            assert answer.status == 200, (answer.status, answer.read())
            self._connections.append((connection, answer))
        self.take()

    def take(self) -> None:
        """Read one event of each."""
        for _, answer in self._connections:
            while not answer.readline().startswith(b"data:"):
                pass

    def close(self) -> None:
        for connection, answer in self._connections:
            answer.close()
            connection.close()


def timed(deed: Callable[[], object]) -> float:
    """How long it took, in ms."""
    began = perf_counter_ns()
    deed()
    return (perf_counter_ns() - began) / 1e6


def compared(
    name: str,
    real: Callable[[], object],
    bare: Callable[[], object],
    times: int,
    apart_s: float = 0.0,
) -> None:
    """Both in turns, so that what else the machine does meets both."""
    ours, theirs = [], []
    for _ in range(times + 1):
        sleep(apart_s)
        ours.append(timed(real))
        theirs.append(timed(bare))
    one, other = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(f"{name:<44}{one:10.2f} ms{other:10.2f} ms{one / other:8.1f}")


def run(rounds: int, real: Client, bare: Client) -> None:
    print(f"{'':<44}{'haptera':>13}{'bare':>13}{'ratio':>8}")
    values = ("on", "off")
    bodies = [json.dumps({"power": value}).encode() for value in values]
    turn = 0

    def patch() -> None:
        nonlocal turn
        turn += 1
        real.ask("PATCH", PATCHED, bodies[turn % 2])

    compared("GET one entity", lambda: real.ask("GET", ONE), lambda: bare.ask("GET", ONE), rounds)
    compared("PATCH one, durably", patch, lambda: bare.ask("PATCH", PATCHED, bodies[0]), rounds)
    for name, headers in (("as one document", {}), ("as lines", LINES)):
        compared(
            f"list {NODES:,} entities {name}",
            lambda headers=headers: real.ask("GET", LISTED, **headers),
            lambda headers=headers: bare.ask("GET", LISTED, **headers),
            LISTS,
        )
    told, heard = Streams(real, STREAMS), Streams(bare, STREAMS)
    for one in (real, bare):
        one.connection.close()  # It has been idle for longer than a server keeps it.

    def tell() -> None:
        patch()
        told.take()

    def hear() -> None:
        bare.ask("POST", "/v1/tell")
        heard.take()

    name, few = f"a change, to the last of {STREAMS} streams", max(5, rounds // 10)
    compared(name, tell, hear, few, APART_S)
    told.close()
    heard.close()


def main(rounds: int) -> None:
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve_real, args=(theirs,), daemon=True)
    process.start()
    real = Client(*ours.recv())
    answers = {
        f"GET{ONE}": real.ask("GET", ONE),
        f"PATCH{PATCHED}": real.ask("GET", ONE),
        "GET/v1/entities": real.ask("GET", LISTED),
    }
    mine, his = context.Pipe()
    other = context.Process(target=serve_bare, args=(his, answers), daemon=True)
    other.start()
    try:
        run(rounds, real, Client(*mine.recv()))
    finally:
        for pipe, one in ((ours, process), (mine, other)):
            pipe.send("end")
            one.join(10)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
