"""The DHCP server: hears one interface, and answers machines that have an offer."""

import asyncio
import logging
import socket
from typing import Final, cast

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.answers import answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import Here, Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.sdk import HapteraError

SERVER_PORT: Final = 67
CLIENT_PORT: Final = 68

_log = logging.getLogger(__name__)


class DhcpServer(asyncio.DatagramProtocol):
    """One socket on one interface."""

    def __init__(self, offers: Offers, here: Here, strangers: Strangers) -> None:
        self._offers = offers
        self._here = here
        self._strangers = strangers
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        request = dhcp.parse(data)
        if request is None or request.op != dhcp.REQUEST:
            return
        offer = self._offers.for_mac(request.mac)
        if offer is None:
            if self._strangers.hear(request):
                _log.warning("%s asks for an address, and has no offer", request.mac.hex(":"))
            return
        reply = answer(request, offer, self._here)
        if reply is None:
            return
        if reply.type == dhcp.ACK:
            offer.reached = "has an address"
        self._transport.sendto(dhcp.encode(reply), _destination(request, reply))


async def serve_dhcp(
    offers: Offers, here: Here, interface: str, strangers: Strangers
) -> asyncio.DatagramTransport:
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
        lambda: DhcpServer(offers, here, strangers), sock=listener
    )
    return transport


def _destination(request: DhcpMessage, reply: DhcpMessage) -> tuple[str, int]:
    """A relay passes it on; who has an address already is told there; others hear a broadcast."""
    if request.relay != dhcp.NOWHERE:
        return str(request.relay), SERVER_PORT
    if request.client != dhcp.NOWHERE and reply.type != dhcp.NAK:
        return str(request.client), CLIENT_PORT
    return "255.255.255.255", CLIENT_PORT
