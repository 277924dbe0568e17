"""Unix sockets in a replica's folder, and who of the replica calls there."""

import asyncio
import os
import socket
import struct
from pathlib import Path
from typing import Final

from haptera.keeping.home import Home

_CREDENTIALS: Final = struct.Struct("3i")


def bound(folder: Path, name: str) -> socket.socket:
    """By the folder's descriptor: the path of a socket has 107 bytes at most."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    # It is bound with this mode: by its name, a program may have put another file there meanwhile.
    os.fchmod(door.fileno(), 0o600)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        (folder / name).unlink(missing_ok=True)
        door.bind(f"/proc/self/fd/{place}/{name}")
    finally:
        os.close(place)
    return door


def session_of(home: Home, writer: asyncio.StreamWriter) -> int | None:
    """The leader of the caller's session, where that is this replica's."""
    record = home.record()
    raw = writer.get_extra_info("socket").getsockopt(
        socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size
    )
    try:
        session = os.getsid(_CREDENTIALS.unpack(raw)[0])
    except ProcessLookupError:
        return None
    ours = record is not None and record.service.lives and record.service.pid == session
    return session if ours else None
