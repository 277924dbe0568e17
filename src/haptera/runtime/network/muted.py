"""Senders that a socket ignores for a while: the kernel drops their datagrams unread.

A classic BPF program on the socket (socket(7), SO_ATTACH_FILTER; Linux,
Documentation/networking/filter.rst) looks at the receiver index of each datagram and at where it is
from. It takes no privilege. Where there is no such thing, nothing is dropped.
"""

import contextlib
import ctypes
import socket
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv6Address, ip_address
from struct import Struct
from typing import Final, NamedTuple

from haptera.wire.frame import INDEX_OFFSET

# So many lines at once; a program of all of them is well within what the kernel takes.
MUTED_MAX: Final = 64
# Python's socket module has none of these.
_SO_ATTACH_FILTER, _SO_DETACH_FILTER = 26, 27
_LOAD_WORD, _LOAD_HALF, _JUMP_IF_EQUAL, _RETURN = 0x20, 0x28, 0x15, 0x06
_ALL: Final = (1 << 32) - 1
# A program sees a datagram from its UDP header on, and its IP header from here on.
_UDP_BYTES: Final = 8
_IP_HEADER: Final = 0xFFF0_0000
_SOURCE_OF_IPV4, _SOURCE_OF_IPV6 = 12, 8
_INSTRUCTION: Final = Struct("=HBBI")
_PROGRAM: Final = Struct("@HP")


class MutedLine(NamedTuple):
    """The datagrams for one session that come from an address, or from `elsewhere` than there."""

    receiver: int
    host: str
    port: int
    elsewhere: bool


class Muted:
    """The lines of one socket that are dropped before they get to it."""

    def __init__(self, bound: socket.socket) -> None:
        self._socket = bound
        self._lines: dict[MutedLine, None] = {}

    def add(self, line: MutedLine) -> bool:
        """Drop this line from now on; False where that was so, or there are too many."""
        if line in self._lines or len(self._lines) >= MUTED_MAX:
            return False
        self._lines[line] = None
        self._attach()
        return True

    def remove(self, line: MutedLine) -> None:
        """Take it again."""
        del self._lines[line]
        self._attach()

    def _attach(self) -> None:
        with contextlib.suppress(OSError):
            if not self._lines:
                self._socket.setsockopt(socket.SOL_SOCKET, _SO_DETACH_FILTER, 0)
                return
            code = [*(one for line in self._lines for one in _drop(line)), (_RETURN, 0, 0, _ALL)]
            packed = b"".join(_INSTRUCTION.pack(*one) for one in code)
            held = ctypes.create_string_buffer(packed)
            program = _PROGRAM.pack(len(code), ctypes.addressof(held))
            self._socket.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, program)


def _drop(line: MutedLine) -> Iterator[tuple[int, int, int, int]]:
    """Instructions that take nothing of a datagram of this line, and go on with any other.

    Each is what to do, how many to leave out if so, how many if not, and a value.
    """
    session = (_LOAD_WORD, _UDP_BYTES + INDEX_OFFSET, line.receiver)
    tests = [session, *_from(line.host, line.port)]
    for number, (load, offset, wanted) in enumerate(tests, start=1):
        to_next = 2 * (len(tests) - number) + 1
        to_drop = to_next - 1
        if_equal = to_next if line.elsewhere and number == len(tests) else 0
        if_not = to_drop if line.elsewhere and number > 1 else to_next
        yield load, 0, 0, offset
        yield _JUMP_IF_EQUAL, if_equal, if_not, wanted
    yield _RETURN, 0, 0, 0


def _from(host: str, port: int) -> Iterator[tuple[int, int, int]]:
    """What is loaded from where, and what it is in a datagram from there."""
    address = ip_address(host.partition("%")[0])
    known = (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address
    place = _SOURCE_OF_IPV4 if isinstance(known, IPv4Address) else _SOURCE_OF_IPV6
    for at in range(0, len(known.packed), 4):
        word = int.from_bytes(known.packed[at : at + 4])
        yield _LOAD_WORD, _IP_HEADER + place + at, word
    yield _LOAD_HALF, 0, port
