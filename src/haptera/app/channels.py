"""The channels of a replica's group, for a program that waits.

    with Channels.of_environment() as channels:
        start = channels.start()
        for event in channels:
            ...

A connection that breaks is made anew, and nothing is lost or doubled by that.
"""

import os
import select
import socket
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Self

from haptera.app.channel_events import (
    MESSAGE_BYTES_MAX,
    ChannelMessage,
    ChannelsError,
    ChannelStart,
    Event,
    Hole,
    StateWanted,
)
from haptera.app.channel_talk import ChannelTalk, FrameBuffer

__all__ = [
    "MESSAGE_BYTES_MAX",
    "ChannelMessage",
    "ChannelStart",
    "Channels",
    "ChannelsError",
    "Event",
    "Hole",
    "StateWanted",
]

# After a break, the next try to connect.
AGAIN_S: Final = 0.1
READ_BYTES_MAX: Final = 1 << 18


def connected(path: Path) -> socket.socket:
    """A socket connected to a path, by its folder: the path of a socket has 107 bytes at most."""
    link = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        place = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            link.connect(f"/proc/self/fd/{place}/{path.name}")
        finally:
            os.close(place)
    except OSError:
        link.close()
        raise
    return link


class Channels:
    """The channels of a group, for one process of one replica; for one thread."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._talk = ChannelTalk()
        self._link: socket.socket | None = None
        self._frames = FrameBuffer()

    @classmethod
    def of_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """The channels of the replica that haptera started this process as.

        Raises:
            KeyError: it has none.
        """
        return cls(Path(environment["HAPTERA_CHANNELS"]))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._break()

    def start(self) -> ChannelStart:
        """The place to begin at, with the state of a sibling; waits until that is known.

        Raises:
            ChannelsError: the group's policy is to fail, or it was called before.
        """
        if self._talk.start is not None:
            raise ChannelsError("start() is called once")
        while self._talk.start is None:
            self._next(None)
        return self._talk.start

    def offer_state(self) -> None:
        """Say that this program answers `StateWanted`."""
        self._send(self._talk.offered())

    def emit(self, data: bytes) -> None:
        """Say something; waits where too much is not stored yet."""
        self._send(self._talk.emitted(data))

    def supply(self, state: bytes) -> None:
        """Give a sibling the state after all events so far."""
        for one in self._talk.supplied(state):
            self._send(one)

    def __iter__(self) -> Iterator[Event]:
        while True:
            if (event := self._next(None)) is not None:
                yield event

    def next(self, within_s: float | None = None) -> Event | None:
        """The next event, or None if none comes within the time."""
        return self._next(None if within_s is None else time.monotonic() + within_s)

    def fileno(self) -> int:
        """For a selector: what becomes readable when there may be an event."""
        return self._connected().fileno()

    def _next(self, until: float | None) -> Event | None:
        while True:
            try:
                while (one := self._frames.frame()) is not None:
                    if (event := self._talk.received(*one)) is not None:
                        return event
                    if one[0]["op"] == "start":
                        return None
                if not self._receives(until):
                    return None
            except ConnectionError:
                self._break()

    def _receives(self, until: float | None) -> bool:
        """True if something came before that time."""
        link = self._connected()
        within_s = None if until is None else max(0.0, until - time.monotonic())
        if not select.select([link], [], [], within_s)[0]:
            return False
        data = link.recv(READ_BYTES_MAX)
        if not data:
            raise ConnectionError
        self._frames.feed(data)
        return True

    def _send(self, said: bytes) -> None:
        try:
            self._connected().sendall(said)
        except ConnectionError:
            self._break()
            self._connected()  # which says again all that is not confirmed

    def _connected(self) -> socket.socket:
        """The connection, made anew where there is none."""
        while self._link is None:
            try:
                self._link = connected(self._path)
                for one in self._talk.opening():
                    self._link.sendall(one)
            except OSError:
                self._break()
                time.sleep(AGAIN_S)
        return self._link

    def _break(self) -> None:
        """Forget the connection, and what came of it that the program was not given."""
        if self._link is not None:
            self._link.close()
        self._link, self._frames = None, FrameBuffer()
