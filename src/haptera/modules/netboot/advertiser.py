"""Answers machines that ask for IPv6 routers, so that none waits for one in vain."""

import asyncio
import socket
from contextlib import suppress
from typing import Final

from haptera.modules.netboot.advertisement import advertisement, is_solicitation
from haptera.sdk import HapteraError

ALL_NODES: Final = "ff02::1"
_ALL_ROUTERS: Final = "ff02::2"
# Others can tell that a neighbour has sent it (RFC 4861, 6.1.2).
_HOPS: Final = 255
# Unasked, for those whose question was lost.
EVERY_S: Final = 3.0
SOLICITATION_BYTES_MAX: Final = 1_500


class Advertiser:
    """One raw socket on one interface."""

    def __init__(self, interface: str) -> None:
        self._everybody = (ALL_NODES, 0, 0, socket.if_nametoindex(interface))
        self._link = _socket(interface)
        asyncio.get_running_loop().add_reader(self._link, self._read)

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._link)
        self._link.close()

    def advertise(self) -> None:
        """Tell everybody; where the interface is down for a moment, the next one is soon."""
        with suppress(OSError):
            self._link.sendto(advertisement(), self._everybody)

    def _read(self) -> None:
        with suppress(OSError):
            if is_solicitation(self._link.recv(SOLICITATION_BYTES_MAX)):
                self.advertise()


def open_advertiser(interface: str) -> Advertiser:
    """Listen; needs root.

    Raises:
        HapteraError: there is no such interface, or IPv6 is off.
    """
    try:
        return Advertiser(interface)
    except OSError as error:
        raise HapteraError(
            f"routers cannot be advertised: {error.strerror}",
            where=f"interface {interface}",
            do="run the parent as root, with IPv6 on",
        ) from None


def _socket(interface: str) -> socket.socket:
    link = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_ICMPV6)
    try:
        index = socket.if_nametoindex(interface)
        link.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_HOPS, _HOPS)
        link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_MULTICAST_IF, index)
        group = socket.inet_pton(socket.AF_INET6, _ALL_ROUTERS) + index.to_bytes(4, "little")
        link.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, group)
        link.setblocking(False)  # noqa: FBT003  it takes no name
    except OSError:
        link.close()
        raise
    return link
