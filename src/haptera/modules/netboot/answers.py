"""What a DHCP client is answered: an address and a file, where it has an offer; else nothing."""

from dataclasses import replace
from typing import Final

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import BootOffer, Here

LEASE_S: Final = 3_600
_HTTP_BOOT: Final = b"HTTPClient"
_PXE: Final = b"PXEClient"
# PXE discovery control 8: take the file that is named here, look for no boot server.
_NAMED_HERE: Final = bytes([6, 1, 8, 255])
# iPXE, in its own options: do not wait for a proxyDHCP.
_NO_PROXY: Final = bytes([176, 1, 1])
SCRIPT: Final = "script"
LOADER: Final = "loader"


def answer(request: DhcpMessage, offer: BootOffer, here: Here) -> DhcpMessage | None:
    """The answer to a machine that has an offer; None where it did not ask us."""
    if request.op != dhcp.REQUEST:
        return None
    match request.type:
        case dhcp.DISCOVER:
            return _given(request, offer, here, dhcp.OFFER)
        case dhcp.ASK if _is_for(request, here):
            wanted = request.address(dhcp.REQUESTED_ADDRESS) or request.client
            if wanted != offer.address:
                return _message(request, here, dhcp.NAK)
            return _given(request, offer, here, dhcp.ACK)
        case dhcp.INFORM:
            return replace(_given(request, offer, here, dhcp.ACK), yours=dhcp.NOWHERE)
        case _:
            return None


def _is_for(request: DhcpMessage, here: Here) -> bool:
    """A client that took another server's offer says so."""
    server = request.address(dhcp.SERVER)
    return server is None or server == here.address


def _message(request: DhcpMessage, here: Here, kind: int) -> DhcpMessage:
    options = {dhcp.MESSAGE_TYPE: bytes([kind]), dhcp.SERVER: here.address.packed}
    for echoed in (dhcp.MACHINE_ID, dhcp.RELAY_AGENT):
        if echoed in request.options:
            options[echoed] = request.options[echoed]
    return DhcpMessage(
        dhcp.REPLY,
        request.transaction,
        request.mac,
        options,
        client=request.client,
        relay=request.relay,
        broadcast=request.broadcast,
    )


def _given(request: DhcpMessage, offer: BootOffer, here: Here, kind: int) -> DhcpMessage:
    bare = _message(request, here, kind)
    options = {
        **bare.options,
        dhcp.LEASE_TIME: LEASE_S.to_bytes(4, "big"),
        dhcp.SUBNET_MASK: here.interface.netmask.packed,
        dhcp.HOST_NAME: offer.node.encode("ascii"),
    }
    if here.router is not None:
        options[dhcp.ROUTER] = here.router.packed
    file = _file(request, offer, here)
    if file is not None:
        options |= _boot_options(request, here, file)
    named = file if file is not None and len(file) < 128 else ""
    return replace(
        bare, options=options, yours=offer.address, server=here.address, file=named.encode("ascii")
    )


def _boot_options(request: DhcpMessage, here: Here, file: str) -> dict[int, bytes]:
    options = {
        dhcp.TFTP_SERVER: str(here.address).encode("ascii"),
        dhcp.BOOT_FILE: file.encode("ascii") + b"\0",
        dhcp.IPXE: _NO_PROXY,
    }
    kind = request.options.get(dhcp.VENDOR_CLASS, b"")
    if kind.startswith(_HTTP_BOOT):
        options[dhcp.VENDOR_CLASS] = _HTTP_BOOT
    elif kind.startswith(_PXE):
        options |= {dhcp.VENDOR_CLASS: _PXE, dhcp.VENDOR_OPTIONS: _NAMED_HERE}
    return options


def _file(request: DhcpMessage, offer: BootOffer, here: Here) -> str | None:
    """Our own loader first, whatever the firmware has; then the script for it."""
    is_ipxe = dhcp.IPXE in request.options or request.options.get(dhcp.USER_CLASS) == b"iPXE"
    if is_ipxe and offer.loader_given:
        return here.url(offer.nonce, SCRIPT)
    path = (offer.native if is_ipxe else offer.loaders).get(request.architecture)
    if path is not None and request.options.get(dhcp.VENDOR_CLASS, b"").startswith(_HTTP_BOOT):
        return here.url(offer.nonce, LOADER)
    return None if path is None else path.name
