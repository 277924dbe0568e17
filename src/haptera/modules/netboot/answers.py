"""What a DHCP client is answered: an address and a file, where it has an offer; else nothing.

Beside a site's own server (proxyDHCP: Intel's PXE 2.1, 2.2.4 and 2.4; UEFI 2.10, 24.7.3) it is a
file only: in an offer without an address, and once more to who asks for it at port 4011.

What an answer has to have, and must not have, is in RFC 2131 (table 3 and 4.3), 2132 (9.8, 9.10),
3046, 4578 and 6842; tests/modules/test_netboot_obligations.py has them line by line.
"""

from collections.abc import Mapping
from dataclasses import replace
from ipaddress import IPv4Address
from typing import Final

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import BootOffer, Here

LEASE_S: Final = 3_600
# Of the field in a message's head, with its end; a longer name is in the option only.
FILE_BYTES_MAX: Final = 128
# What every client takes, also one that does not say how much; with the heads of IP and UDP.
SIZE_BYTES_MIN: Final = 576
_HEADS_BYTES: Final = 28
# What is also in the head of the message, or not needed to boot: left out where room is short.
_SPARED: Final = (dhcp.HOST_NAME, dhcp.TFTP_SERVER, dhcp.BOOT_FILE)
# Whatever comes, these go back as they are: a client, or a relay, knows its answer by them.
_ECHOED: Final = (
    dhcp.CLIENT_ID, dhcp.ARCHITECTURE, dhcp.CARD, dhcp.MACHINE_ID, dhcp.RELAY_AGENT,
)  # fmt: skip
# iPXE's, as it sends it, and as RFC 3004 would have it.
_IPXE_CLASSES: Final = (b"iPXE", b"\x04iPXE")
_NOT_YOURS: Final = b"another address is this machine's"
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
            reply = _leased(_given(request, offer, here, dhcp.OFFER), offer)
        case dhcp.ASK if _is_for(request, here):
            asked = request.address(dhcp.REQUESTED_ADDRESS) or request.client
            if asked == dhcp.NOWHERE:
                return None
            reply = (
                _leased(_given(request, offer, here, dhcp.ACK), offer)
                if asked == offer.address
                else _refused(request, here)
            )
        case dhcp.INFORM:
            reply = _given(request, offer, here, dhcp.ACK)
        case _:
            return None
    return _fitted(request, reply)


def boots(request: DhcpMessage) -> bool:
    """Whether it is firmware or a loader that asks, not an operating system."""
    return request.options.get(dhcp.VENDOR_CLASS, b"").startswith((_PXE, _HTTP_BOOT))


def begins(request: DhcpMessage, offer: BootOffer) -> bool:
    """Whether this is the first request of a boot: firmware's, or one after a whole boot."""
    is_search = request.type == dhcp.DISCOVER and boots(request)
    return is_search and (offer.script_given or not _is_ipxe(request))


def proxy_answer(request: DhcpMessage, offer: BootOffer, here: Here) -> DhcpMessage | None:
    """The boot file of a machine that has an offer, when it looks for an address."""
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
    return _fitted(request, _with_file(_message(request, here, kind), request, here, file))


def taken_from(request: DhcpMessage, here: Here) -> IPv4Address | None:
    """The other server whose address a machine takes, where only ours should give any."""
    other = request.address(dhcp.SERVER) if request.type == dhcp.ASK else None
    return None if here.proxies or other == here.address else other


def _is_for(request: DhcpMessage, here: Here) -> bool:
    """A client that took another server's offer says so."""
    return request.options.get(dhcp.SERVER, here.address.packed) == here.address.packed


def _message(request: DhcpMessage, here: Here, kind: int) -> DhcpMessage:
    options = {dhcp.MESSAGE_TYPE: bytes([kind]), dhcp.SERVER: here.address.packed}
    options |= {one: request.options[one] for one in _ECHOED if one in request.options}
    return DhcpMessage(
        dhcp.REPLY,
        request.transaction,
        request.mac,
        options,
        client=request.client if kind == dhcp.ACK else dhcp.NOWHERE,
        relay=request.relay,
        broadcast=request.broadcast,
    )


def _refused(request: DhcpMessage, here: Here) -> DhcpMessage:
    """Behind a relay the client has no address where it is: the relay must broadcast this."""
    bare = _message(request, here, dhcp.NAK)
    return replace(
        bare,
        options={**bare.options, dhcp.MESSAGE: _NOT_YOURS},
        broadcast=request.broadcast or request.relay != dhcp.NOWHERE,
    )


def _leased(reply: DhcpMessage, offer: BootOffer) -> DhcpMessage:
    """With an address; who has one already, and asks for the rest, gets none."""
    lease = {dhcp.LEASE_TIME: LEASE_S.to_bytes(4, "big")}
    return replace(reply, options={**reply.options, **lease}, yours=offer.address)


def _given(request: DhcpMessage, offer: BootOffer, here: Here, kind: int) -> DhcpMessage:
    bare = _message(request, here, kind)
    options = {
        **bare.options,
        dhcp.SUBNET_MASK: here.interface.netmask.packed,
        dhcp.HOST_NAME: offer.node.encode("ascii"),
    }
    if here.router is not None:
        options[dhcp.ROUTER] = here.router.packed
    given = replace(bare, options=options, server=here.address)
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
    is_ipxe = _is_ipxe(request)
    if is_ipxe and offer.loader_given:
        return here.url(offer.nonce, SCRIPT)
    loaders = offer.native if is_ipxe else offer.loaders
    path = next((loaders[one] for one in request.architectures if one in loaders), None)
    if path is not None and request.options.get(dhcp.VENDOR_CLASS, b"").startswith(_HTTP_BOOT):
        # By its name: UEFI tells by `.efi` that it may run it.
        return here.url(offer.nonce, path.name)
    return None if path is None else path.name


def _is_ipxe(request: DhcpMessage) -> bool:
    return dhcp.IPXE in request.options or request.options.get(dhcp.USER_CLASS) in _IPXE_CLASSES


def _fitted(request: DhcpMessage, reply: DhcpMessage) -> DhcpMessage | None:
    """The answer in the order and the size that the client asked for; None where it cannot be."""
    told = request.options.get(dhcp.SIZE_MAX, b"")
    asked_bytes = int.from_bytes(told, "big") if len(told) == 2 else 0
    size_bytes_max = max(asked_bytes, SIZE_BYTES_MIN) - _HEADS_BYTES
    order = _order(reply.options, request.options.get(dhcp.PARAMETERS, b""))
    fitted = replace(reply, options={code: reply.options[code] for code in order})
    for spared in _SPARED:
        if len(dhcp.encode(fitted)) <= size_bytes_max:
            break
        # A name that is too long for the head has no other place.
        if spared != dhcp.BOOT_FILE or fitted.file:
            kept = {code: value for code, value in fitted.options.items() if code != spared}
            fitted = replace(fitted, options=kept)
    return fitted if len(dhcp.encode(fitted)) <= size_bytes_max else None


def _order(options: Mapping[int, bytes], asked: bytes) -> list[int]:
    """What the message is, then what was asked for in its order; a mask is before a router."""
    first = bytes([dhcp.MESSAGE_TYPE, dhcp.SERVER])
    mask = bytes([dhcp.SUBNET_MASK])
    wanted = first + asked.replace(bytes([dhcp.ROUTER]), mask + bytes([dhcp.ROUTER]))
    return [code for code in dict.fromkeys([*wanted, *options]) if code in options]
