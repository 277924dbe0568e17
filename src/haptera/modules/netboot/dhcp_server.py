"""The DHCP server: hears one interface, and answers machines that have an offer."""

import asyncio
import logging
import socket
from typing import Final, cast

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.answers import answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import Here, Offers
from haptera.sdk import HapteraError

SERVER_PORT: Final = 67
CLIENT_PORT: Final = 68
# Machines without an offer that are told of once each, in the module's log.
STRANGERS_MAX: Final = 256

_log = logging.getLogger(__name__)


class DhcpServer(asyncio.DatagramProtocol):
    """One socket on one interface."""

    def __init__(self, offers: Offers, here: Here) -> None:
        self._offers = offers
        self._here = here
        self._strangers: set[bytes] = set()
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        request = dhcp.parse(data)
        if request is None or request.op != dhcp.REQUEST:
            return
        offer = self._offers.for_mac(request.mac)
        if offer is None:
            self._note_stranger(request.mac)
            return
        reply = answer(request, offer, self._here)
        if reply is None:
            return
        if reply.type == dhcp.ACK:
            offer.reached = "has an address"
        self._transport.sendto(dhcp.encode(reply), _destination(request, reply))

    def _note_stranger(self, mac: bytes) -> None:
        if mac not in self._strangers and len(self._strangers) < STRANGERS_MAX:
            self._strangers.add(mac)
            _log.warning("%s asks for an address, and has no offer", mac.hex(":"))


async def serve_dhcp(offers: Offers, here: Here, interface: str) -> asyncio.DatagramTransport:
    """Listen; needs root.

    Raises:
        HapteraError: another server listens there, or there is no such interface.
    """
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        listener.setblocking(False)  # noqa: FBT003  it takes no name
        listener.bind(("", SERVER_PORT))
    except OSError as error:
        listener.close()
        raise HapteraError(
            f"DHCP cannot be served: {error.strerror}",
            where=f"port {SERVER_PORT} on {interface}",
            do="run the parent as root, name its interface, and stop other DHCP servers there",
        ) from None
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(
        lambda: DhcpServer(offers, here), sock=listener
    )
    return transport


def _destination(request: DhcpMessage, reply: DhcpMessage) -> tuple[str, int]:
    """A relay passes it on; who has an address already is told there; others hear a broadcast."""
    if request.relay != dhcp.NOWHERE:
        return str(request.relay), SERVER_PORT
    if request.client != dhcp.NOWHERE and reply.type != dhcp.NAK:
        return str(request.client), CLIENT_PORT
    return "255.255.255.255", CLIENT_PORT
