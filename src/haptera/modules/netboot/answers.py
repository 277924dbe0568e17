"""What a DHCP client is answered: an address and a file, where it has an offer; else nothing.

Beside a site's own server (proxyDHCP: Intel's PXE 2.1, 2.2.4 and 2.4; UEFI 2.10, 24.7.3) it is a
file only: in an offer without an address, and once more to who asks for it at port 4011.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import BootOffer, Here

LEASE_S: Final = 3_600
# Of the field in a message's head, with its end; a longer name is in the option only.
FILE_BYTES_MAX: Final = 128
_HTTP_BOOT: Final = b"HTTPClient"
_PXE: Final = b"PXEClient"
# PXE discovery control 8: take the file that is named here, look for no boot server.
_NAMED_HERE: Final = bytes([6, 1, 8, 255])
# iPXE, in its own options: do not wait for a proxyDHCP.
_NO_PROXY: Final = bytes([176, 1, 1])
SCRIPT: Final = "script"


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


def boots(request: DhcpMessage) -> bool:
    """Whether it is firmware or a loader that asks, not an operating system."""
    return request.options.get(dhcp.VENDOR_CLASS, b"").startswith((_PXE, _HTTP_BOOT))


def proxy_answer(request: DhcpMessage, offer: BootOffer, here: Here) -> DhcpMessage | None:
    """What a machine that has an offer is told to boot, when it looks for an address."""
    return _file_only(request, offer, here, {dhcp.DISCOVER: dhcp.OFFER})


def boot_server_answer(request: DhcpMessage, offer: BootOffer, here: Here) -> DhcpMessage | None:
    """The same, to a machine that has its address and asks us alone."""
    return _file_only(request, offer, here, {dhcp.ASK: dhcp.ACK, dhcp.INFORM: dhcp.ACK})


def _file_only(
    request: DhcpMessage, offer: BootOffer, here: Here, kinds: Mapping[int, int]
) -> DhcpMessage | None:
    kind = kinds.get(request.type or 0)
    file = _file(request, offer, here)
    if request.op != dhcp.REQUEST or kind is None or file is None or not boots(request):
        return None
    return _with_file(_message(request, here, kind), request, here, file)


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
    given = replace(bare, options=options, yours=offer.address, server=here.address)
    file = _file(request, offer, here)
    if file is None:
        return given
    return _with_file(
        replace(given, options={**options, dhcp.IPXE: _NO_PROXY}), request, here, file
    )


def _with_file(reply: DhcpMessage, request: DhcpMessage, here: Here, file: str) -> DhcpMessage:
    options = {
        **reply.options,
        dhcp.TFTP_SERVER: str(here.address).encode("ascii"),
        dhcp.BOOT_FILE: file.encode("ascii") + b"\0",
    }
    kind = request.options.get(dhcp.VENDOR_CLASS, b"")
    if kind.startswith(_HTTP_BOOT):
        options[dhcp.VENDOR_CLASS] = _HTTP_BOOT
    elif kind.startswith(_PXE):
        options |= {dhcp.VENDOR_CLASS: _PXE, dhcp.VENDOR_OPTIONS: _NAMED_HERE}
    named = file.encode("ascii") if len(file) < FILE_BYTES_MAX else b""
    return replace(reply, options=options, server=here.address, file=named)


def _file(request: DhcpMessage, offer: BootOffer, here: Here) -> str | None:
    """Our own loader first, whatever the firmware has; then the script for it."""
    is_ipxe = dhcp.IPXE in request.options or request.options.get(dhcp.USER_CLASS) == b"iPXE"
    if is_ipxe and offer.loader_given:
        return here.url(offer.nonce, SCRIPT)
    path = (offer.native if is_ipxe else offer.loaders).get(request.architecture)
    if path is not None and request.options.get(dhcp.VENDOR_CLASS, b"").startswith(_HTTP_BOOT):
        # By its name: UEFI tells by `.efi` that it may run it.
        return here.url(offer.nonce, path.name)
    return None if path is None else path.name
