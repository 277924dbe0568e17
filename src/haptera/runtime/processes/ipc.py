"""One end of a stream of frames, in an event loop: never waits, and has a limit both ways."""

import asyncio
import socket
from collections.abc import Callable
from typing import Any, Final

from haptera.wire.frame import Reject
from haptera.wire.ipc import Frames, encode_frame

UNSENT_BYTES_MAX: Final = 4 << 20
READ_BYTES: Final = 65_536

Frame = dict[str, Any]


class FrameLink:
    """Sends frames and hands over those that arrive, until it breaks or is closed.

    `taken` gets the frames of one read; it raises ValueError where one of them means nothing.
    `broken` is called once: with the reason where the other side sent what is no frame or does
    not read, with None where it closed the link.
    """

    def __init__(
        self,
        link: socket.socket,
        taken: Callable[[list[Frame]], None],
        broken: Callable[[str | None], None],
        unsent_bytes_max: int = UNSENT_BYTES_MAX,
    ) -> None:
        link.settimeout(0)
        self._link = link
        self._taken = taken
        self._broken = broken
        self._frames = Frames()
        self._unsent_bytes_max = unsent_bytes_max
        self._unsent = bytearray()
        # Whether `_write` is to be called, soon or as soon as anything goes.
        self._writes = False
        self.arrived_bytes = 0
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(link.fileno(), self._read)

    @property
    def closed(self) -> bool:
        return self._link.fileno() < 0

    def send(self, frame: Frame) -> None:
        """Send this with all that is sent before the loop goes on; what does not go, when it goes.

        The other side is woken once, and its answers come together.
        """
        if self.closed:
            return
        self._unsent += encode_frame(frame)
        if len(self._unsent) > self._unsent_bytes_max:
            self._break("it does not read its input")
        elif not self._writes:
            self._writes = True
            self._loop.call_soon(self._write)

    def hold(self) -> None:
        """Take nothing more for now: what the other side sends waits in the socket, then there."""
        if not self.closed:
            self._loop.remove_reader(self._link.fileno())

    def go_on(self) -> None:
        """Take again what comes."""
        if not self.closed:
            self._loop.add_reader(self._link.fileno(), self._read)

    def drain(self) -> None:
        """Hand over what has arrived already; for when the other side is gone."""
        while not self.closed and self._read():
            pass

    def close(self) -> None:
        """Close the link; what was sent before goes, as far as it goes at once."""
        if not self.closed:
            self._write()
            self._loop.remove_reader(self._link.fileno())
            self._loop.remove_writer(self._link.fileno())
            self._link.close()

    def _read(self) -> bool:
        """Read once; False where nothing is there."""
        try:
            data = self._link.recv(READ_BYTES)
        except BlockingIOError:
            return False
        except ConnectionError:
            data = b""
        if not data:
            self._break(None)
            return False
        self._take(data)
        return True

    def _take(self, data: bytes) -> None:
        self.arrived_bytes += len(data)
        frames = self._frames.feed(data)
        if isinstance(frames, Reject):
            self._break("it sent a malformed frame")
            return
        try:
            self._taken(frames)
        except ValueError as error:
            self._break(str(error))

    def _write(self) -> None:
        if self.closed or not self._unsent:
            return
        try:
            sent = self._link.send(self._unsent)
        except BlockingIOError:
            sent = 0
        except ConnectionError:
            # What it said before it went is still to be read; the end of that breaks the link.
            sent = len(self._unsent)
        del self._unsent[:sent]
        self._writes = bool(self._unsent)
        if self._writes:
            self._loop.add_writer(self._link.fileno(), self._write)
        else:
            self._loop.remove_writer(self._link.fileno())

    def _break(self, text: str | None) -> None:
        self.close()
        self._broken(text)
