"""A real server on loopback, in a thread of its own, for tests that speak through sockets."""

import asyncio
import contextlib
import os
import threading

from haptera.api.requests.callers import ENTRY
from haptera.api.serving.server import Server, listen, listen_unix
from tests.api.asking import app_of
from tests.api.fake_backend import FakeBackend
from tests.network import NETWORK

# With a planted bug it is waited for in vain.
WITHIN_S = float(os.environ.get("WAITED_WITHIN_S", "60"))
OWN = f"{NETWORK}.48.1"


class Serving:
    """`do` runs a function in the server's loop, where the backend lives."""

    def __init__(self, backend, streams, host, port, loop):
        self.backend = backend
        self.streams = streams
        self.host = host
        self.port = port
        self._loop = loop

    @property
    def url(self):
        if isinstance(self.port, str):
            return f"unix:{self.port}"
        return f"http://{self.host}:{self.port}"

    def do(self, function, *arguments, **named):
        async def run():
            return function(*arguments, **named)

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(WITHIN_S)


@contextlib.contextmanager
def serving(
    *changes, host="127.0.0.1", port=0, path=None, mode=0o600, entry=ENTRY, tallies=None, **limits
):
    """Serve a fake backend that holds these changes, on a port or on a Unix socket's path.

    Who serves at a port again does so at OWN, where nobody else can have taken it meanwhile.
    `limits` are the server's.
    """
    listener = listen(host, port) if path is None else listen_unix(path, mode)
    port = listener.getsockname()[1] if path is None else str(path)
    ready, started = threading.Event(), []

    async def run():
        backend = FakeBackend()
        if changes:
            backend.write(*changes)
        app = app_of(backend, tallies=tallies, entry=entry)
        server, loop = Server(app, listener, **limits), asyncio.get_running_loop()
        started.append((Serving(backend, app.state.streams, host, port, loop), server))
        ready.set()
        await server.run()

    thread = threading.Thread(target=asyncio.run, args=(run(),))
    thread.start()
    assert ready.wait(WITHIN_S)
    one, server = started[0]
    try:
        yield one
    finally:
        one.do(server.stop)
        thread.join(WITHIN_S)
        listener.close()
        assert not thread.is_alive(), "the server did not end"
