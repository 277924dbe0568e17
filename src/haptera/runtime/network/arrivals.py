"""Reads datagrams with the time at which each arrived, as the kernel notes it.

Linux, socket(7), SO_TIMESTAMP and its variant in ns, which the kernel's networking/timestamping
describes. What waited in the socket while the process was stopped is no news, though read just now.
"""

import socket
import struct
from typing import Final

from haptera.runtime.clock import now_ns, wall_offset_ns

# A small datagram is charged about 1 kB of this: room for a burst of some 10,000 hellos.
RECEIVE_BYTES: Final = 16 << 20
# Linux has these, Python's socket module does not; the first for more than rmem_max, where we may.
_SO_RCVBUFFORCE, _SO_TIMESTAMPNS = 33, 35
_TIMESPEC: Final = "@ll"  # of the wall clock
_SPACE: Final = socket.CMSG_SPACE(struct.calcsize(_TIMESPEC))
# Where the first that is read waited for less, so did all after it: they get its time, unread.
WAITED_NS_MAX: Final = 50_000_000


class ArrivalReader:
    """Reads a socket, in which it makes room. `arrived_at` is of what was read last, or 50 ms less.

    A wall clock that is set while something waits makes that seem to have come as early as it can
    have, when there was nothing to be read, or just now.
    """

    def __init__(self, bound: socket.socket) -> None:
        try:
            bound.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, RECEIVE_BYTES)
        except PermissionError:
            bound.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BYTES)
        bound.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
        self._socket = bound
        # Not the socket itself: asyncio would describe it in words each time that it is not heard.
        self.descriptor = bound.fileno()
        self._empty_at = self.arrived_at = self.begin()

    def begin(self) -> int:
        """What is read from now on may have waited; returns what time it is."""
        self._now, self._ahead = now_ns(), wall_offset_ns()
        self._is_late = True
        return self._now

    def read(self, bytes_max: int) -> tuple[bytes, tuple[str, int]]:
        """The next datagram, and who sent it; what is longer is cut off.

        Raises:
            OSError: there is none, or nobody listens where an earlier one was sent to.
        """
        try:
            if not self._is_late:
                return self._socket.recvfrom(bytes_max)
            datagram, notes, _, address = self._socket.recvmsg(bytes_max, _SPACE)
        except BlockingIOError:
            self._empty_at = self._now
            raise
        self.arrived_at = min(self._now, max(self._empty_at, self._noted(notes)))
        self._is_late = self._now - self.arrived_at > WAITED_NS_MAX
        return datagram, address

    def _noted(self, notes: list[tuple[int, int, bytes]]) -> int:
        for level, kind, stamp in notes:
            if (level, kind) == (socket.SOL_SOCKET, _SO_TIMESTAMPNS):
                seconds, ns = struct.unpack(_TIMESPEC, stamp)
                return int(seconds) * 1_000_000_000 + int(ns) - self._ahead
        return self._now
