"""The ways in to a parent's API: its address, and a Unix socket for whoever is on its machine."""

import socket
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from haptera.api.callers import Entry
from haptera.api.server import listen, listen_unix
from haptera.daemon.settings import Settings
from haptera.runtime.peers import PeerRules

SOCKET: Final = "api.sock"
# Where rules let others in, they must be able to open the socket; who they are is asked then.
_OWN_ONLY: Final = 0o600
_EVERYBODY: Final = 0o666


@dataclass(frozen=True, slots=True)
class Doors:
    """`listeners` to serve the API on, as `entry` says; the Unix socket is at `path`."""

    url: str
    path: Path
    listeners: tuple[socket.socket, ...]
    entry: Entry

    @classmethod
    def open(cls, settings: Settings) -> Self:
        """Listen as the settings say.

        Raises:
            HapteraError: an address or a path cannot be used, or a rule lets nobody in.
        """
        rules = PeerRules.of(settings.let_in)
        beside = Path(settings.client).with_name(SOCKET)
        path = beside if settings.socket is None else Path(settings.socket)
        first = listen(settings.address, settings.api_port)
        try:
            second = listen_unix(path, _EVERYBODY if rules.rules else _OWN_ONLY)
        except BaseException:
            first.close()
            raise
        url = f"http://{settings.address}:{settings.api_port}"
        return cls(url, path, (first, second), Entry(check_peer=rules.bearer))

    def close(self) -> None:
        """Listen no more."""
        self.path.unlink(missing_ok=True)
        for listener in self.listeners:
            listener.close()
