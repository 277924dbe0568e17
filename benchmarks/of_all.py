"""The longest use of the event loop by a question about all entities, at a parent of very many.

    python -m benchmarks.of_all [NODES]

In one process, without sockets: nodes with two services each, and nothing known of them. CPU time
of the loop's callbacks while each question is answered, in milliseconds: the longest, and all.
"""

import asyncio
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import thread_time
from typing import Final

from haptera.api.app import make_app
from haptera.model.changes import Change, Declare, SetDesired
from haptera.model.entity import EntityId, node_id
from haptera.model.token_scope import Scope
from haptera.runtime.garbage import old_objects_frozen
from haptera.runtime.identity.tokens import Bearer
from haptera.selectors.subscription import Subscription
from haptera.site import Sites
from tests.api.asking import asked
from tests.api.real_backend import real_backend

NODES: Final = 10_000
ON_RACK: Final = 40
OK: Final = 200
MS: Final = 1e3
ALL: Final = b'{"selector": "*", "reason": "a new floor"}'
ASKED: Final = (
    ("GET", "/v1/status", b""),
    ("GET", "/v1/status?select=condition!=converged", b""),
    ("GET", "/v1/summary", b""),
    ("GET", "/metrics", b""),
    ("GET", "/v1/parents", b""),
    ("GET", "/v1/entities", b""),
    ("GET", "/v1/export", b""),
    ("POST", "/v1/freezes", ALL),
    ("GET", "/v1/freezes", b""),
    ("DELETE", "/v1/freezes?selector=rack1n01", b""),
    ("DELETE", "/v1/freezes?selector=*", b""),
)


class Loop(asyncio.SelectorEventLoop):
    """A loop that measures each of its turns, but for the time that it waits."""

    def __init__(self) -> None:
        super().__init__()
        self.took_s: list[float] = []

    def call_soon(self, callback, *args, context=None):
        return super().call_soon(self._timed, callback, args, context=context)

    def _timed(self, callback, args) -> None:
        began = thread_time()
        try:
            callback(*args)
        finally:
            self.took_s.append(thread_time() - began)


def cluster(nodes: int) -> Iterator[Change]:
    for number in range(nodes):
        name = f"rack{number // ON_RACK}n{number % ON_RACK:02}"
        yield Declare(node_id(name), {"rack": f"r{number // ON_RACK}", "bmc": name}, "site")
        yield SetDesired(node_id(name), "power", "on", "site")
        for service in ("web", "log"):
            yield Declare(EntityId("service", service, name), {}, "site")
            yield SetDesired(EntityId("service", service, name), "run", "running", "site")


@contextmanager
def measured(loop: Loop, name: str) -> Iterator[None]:
    loop.took_s.clear()
    yield
    took_ms = [one * MS for one in loop.took_s]
    print(f"{name:48} longest {max(took_ms):6.1f} ms, all {sum(took_ms):6.0f} ms", flush=True)


async def ask_all(folder: Path, nodes: int) -> None:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, Loop)
    async with real_backend(folder, *cluster(nodes)) as backend:
        token = (await backend.tokens.mint(Bearer("ada", Scope.ADMIN), 3600.0)).text
        app = make_app(backend, Sites("crowd"), cluster="crowd")
        for method, path, body in ASKED:
            await asyncio.sleep(2)
            with measured(loop, f"{method} {path}"):
                answer = await asked(app, method, path, token, body, {"host": "localhost"})
                await asyncio.sleep(1)
            assert answer.status == OK, answer.body
        listener = backend.bus.listen(Subscription(), lambda: None)
        with measured(loop, "the beginning of a stream"):
            loop.call_soon(listener.drain, 200)
            await asyncio.sleep(0.1)


def main(nodes: int = NODES) -> None:
    with (
        tempfile.TemporaryDirectory() as name,
        old_objects_frozen(),
        asyncio.Runner(loop_factory=Loop) as runner,
    ):
        runner.run(ask_all(Path(name), nodes))


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
