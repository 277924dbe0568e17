"""Taking connections from a listening socket, also when the process is short of descriptors."""

import asyncio
import logging
import resource
import socket
from typing import Final

# When no connection can be accepted, it is tried again this much later.
AGAIN_S: Final = 0.25
# Descriptors that no connection gets: for the store, logs, modules and their pipes.
DESCRIPTORS_RESERVED: Final = 256
_DESCRIPTORS_WANTED: Final = 65_536

_log = logging.getLogger(__name__)


class Accepting:
    """Accepts one connection after the other; that it cannot is logged once, until it can."""

    def __init__(self, listener: socket.socket) -> None:
        listener.settimeout(0)
        self._listener = listener
        self._works = True

    async def next(self) -> tuple[socket.socket, str]:
        """The next connection and its address; the loop has its turn before each."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(0)
            try:
                connection, address = await loop.sock_accept(self._listener)
            except ConnectionError:  # gone before it was taken
                continue
            except OSError as error:
                self._note(error)
                await asyncio.sleep(AGAIN_S)
                continue
            self._note(None)
            # A Unix socket's other end has no address.
            return connection, address[0] if address else ""

    def _note(self, error: OSError | None) -> None:
        if (error is None) is self._works:
            return
        self._works = error is None
        if error is None:
            _log.warning("connections are accepted again")
        else:
            _log.error("no connection can be accepted: %s", error.strerror)


def make_room() -> None:
    """Let this process have as many descriptors as it may."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = min(hard, _DESCRIPTORS_WANTED) if hard != resource.RLIM_INFINITY else soft
    if wanted > soft:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share_of(connections_max: int, of_max: int) -> int:
    """How many connections one socket may have of the `of_max` that all would like.

    Fewer than it would like, where the process may not have so many descriptors.
    """
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    left = max(soft - DESCRIPTORS_RESERVED, soft // 4)
    return max(2, min(connections_max, left * connections_max // of_max))
