"""The DHCP server: hears one interface, and answers machines that have an offer."""

import asyncio
import logging
import socket
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from functools import partial
from typing import Final, cast

from haptera.modules.netboot import answers, dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import OTHERS, BootOffer, Here, Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.sdk import HapteraError

SERVER_PORT: Final = 67
CLIENT_PORT: Final = 68
# Where a machine that has its address asks what to boot (Intel's PXE 2.1, 2.2.4).
BOOT_SERVER_PORT: Final = 4011

_log = logging.getLogger(__name__)


# What a machine that has an offer is answered.
Answer = Callable[[DhcpMessage, BootOffer, Here], DhcpMessage | None]


class DhcpServer(asyncio.DatagramProtocol):
    """One socket on one interface."""

    def __init__(self, offers: Offers, here: Here, strangers: Strangers, answer: Answer) -> None:
        self._offers = offers
        self._here = here
        self._strangers = strangers
        self._answer = answer
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        request = dhcp.parse(data)
        if request is None or request.op != dhcp.REQUEST:
            return
        # Where another server gives addresses, who does not boot is none of our business.
        if self._here.proxies and not answers.boots(request):
            return
        offer = self._offers.for_mac(request.mac)
        if offer is None:
            if self._strangers.hear(request):
                _log.warning("%s requests an address, but has no offer", request.mac.hex(":"))
            return
        if request.type == dhcp.DECLINE and request.address(dhcp.SERVER) == self._here.address:
            offer.reached = "declined its address: another machine has it"
            _log.warning("%s declined %s, which another machine has", offer.node, offer.address)
            return
        self._note(request, offer)
        reply = self._answer(request, offer, self._here)
        if reply is None:
            return
        if reply.type == dhcp.ACK:
            offer.reached = "has an address"
        elif self._here.proxies:
            offer.reached = "was told what to boot"
        asks_us_alone = self._answer is answers.boot_server_answer
        to = addr if asks_us_alone else _destination(request, reply)
        self._transport.sendto(dhcp.encode(reply), to)

    def _note(self, request: DhcpMessage, offer: BootOffer) -> None:
        """Note the machine's progress, by its requests."""
        if (other := answers.taken_from(request, self._here)) is not None:
            offer.reached = f"{OTHERS}, {other}"
            _log.warning("%s %s: stop that one, or have it leave it out", offer.node, offer.reached)
        elif answers.begins(request, offer):
            offer.begin_anew()
        elif request.type == dhcp.DISCOVER:
            offer.asks()


async def serve_dhcp(
    offers: Offers, here: Here, interface: str, strangers: Strangers
) -> Sequence[asyncio.DatagramTransport]:
    """Listen, as a proxy at both of its ports; needs root.

    Raises:
        HapteraError: another server listens there, or there is no such interface.
    """
    ports: dict[int, Answer] = {SERVER_PORT: answers.answer}
    if here.proxies:
        ports = {SERVER_PORT: answers.proxy_answer, BOOT_SERVER_PORT: answers.boot_server_answer}
    loop = asyncio.get_running_loop()
    with ExitStack() as unused:
        listeners = {port: unused.enter_context(_listener(interface, port)) for port in ports}
        unused.pop_all()
    return [
        (
            await loop.create_datagram_endpoint(
                partial(DhcpServer, offers, here, strangers, answer), sock=listeners[port]
            )
        )[0]
        for port, answer in ports.items()
    ]


def _listener(interface: str, port: int) -> socket.socket:
    listener = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        listener.setblocking(False)  # noqa: FBT003  it takes no name
        listener.bind(("", port))
    except OSError as error:
        listener.close()
        raise HapteraError(
            f"DHCP cannot be served: {error.strerror}",
            where=f"port {port} on {interface}",
            do="run the parent as root, name its interface, and stop other DHCP servers there",
        ) from None
    return listener


def _destination(request: DhcpMessage, reply: DhcpMessage) -> tuple[str, int]:
    """A relay passes it on; one with an address is answered there; others hear a broadcast.

    A question about options of an address is answered there, a relay or not (RFC 2131, 4.3.5).
    """
    if request.type == dhcp.INFORM and request.client != dhcp.NOWHERE:
        return str(request.client), CLIENT_PORT
    if request.relay != dhcp.NOWHERE:
        return str(request.relay), SERVER_PORT
    if request.client != dhcp.NOWHERE and reply.type != dhcp.NAK:
        return str(request.client), CLIENT_PORT
    return "255.255.255.255", CLIENT_PORT
