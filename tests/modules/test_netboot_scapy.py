"""DHCP and TFTP against scapy, which has codecs of its own: each reads what the other writes."""

from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot import dhcp, tftp
from haptera.modules.netboot.answers import answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.offers import BootOffer, Here
from haptera.modules.netboot.tftp import Ack, Error, Read, TftpWrite
from tests.modules.test_netboot_codecs import ADDRESSES, MESSAGES

with pytest.MonkeyPatch.context() as patch:
    # When imported, it writes caches to the home folder, unless these cannot be made.
    for variable in ("XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        patch.setenv(variable, str(Path(__file__) / "none"))
    from scapy.layers.dhcp import BOOTP, DHCP
    from scapy.layers.tftp import TFTP, TFTP_ACK, TFTP_ERROR, TFTP_RRQ, TFTP_WRQ
    from scapy.layers.tftp import TFTP_Option as TftpOption
    from scapy.layers.tftp import TFTP_Options as TftpOptions

# The bytes of an option, and what scapy makes of them.
Value = tuple[bytes, object]

_ADDRESS = ADDRESSES.map(lambda one: (one.packed, str(one)))
_SECONDS = st.integers(0, 2**32 - 1).map(lambda one: (one.to_bytes(4, "big"), one))
_TYPE = st.integers(1, 8).map(lambda one: (bytes([one]), one))
_TEXT = st.binary(max_size=50).map(lambda one: (one, one))
_LONG = st.binary(min_size=256, max_size=600).map(lambda one: (one, one))
# Whatever haptera writes or reads, by the name that scapy has for it.
SORTS: Final[dict[int, tuple[str | int, st.SearchStrategy[Value]]]] = {
    dhcp.SUBNET_MASK: ("subnet_mask", _ADDRESS),
    dhcp.ROUTER: ("router", _ADDRESS),
    dhcp.HOST_NAME: ("hostname", _TEXT),
    dhcp.VENDOR_OPTIONS: ("vendor_specific", _TEXT | _LONG),
    dhcp.REQUESTED_ADDRESS: ("requested_addr", _ADDRESS),
    dhcp.LEASE_TIME: ("lease_time", _SECONDS),
    dhcp.MESSAGE_TYPE: ("message-type", _TYPE),
    dhcp.SERVER: ("server_id", _ADDRESS),
    dhcp.VENDOR_CLASS: ("vendor_class_id", _TEXT),
    dhcp.TFTP_SERVER: ("tftp_server_name", _TEXT),
    dhcp.BOOT_FILE: ("boot-file-name", _TEXT),
    dhcp.USER_CLASS: ("user_class", _TEXT),
    dhcp.RELAY_AGENT: ("relay_agent_information", _TEXT),
    dhcp.ARCHITECTURE: ("pxe_client_architecture", _TEXT),
    dhcp.MACHINE_ID: ("pxe_client_machine_identifier", _TEXT),
    # Of iPXE, without a name.
    dhcp.IPXE: (175, _TEXT),
}
HEADS = MESSAGES.map(lambda message: replace(message, options={}))
OPTIONS = st.fixed_dictionaries({}, optional={code: values for code, (_, values) in SORTS.items()})
NAMES = st.text(st.characters(min_codepoint=1, max_codepoint=127), max_size=40)


@given(HEADS, OPTIONS)
def test_scapy_reads_what_is_written(head: DhcpMessage, options: dict[int, Value]) -> None:
    read = BOOTP(dhcp.encode(replace(head, options=wire(options))))
    assert read.fields == fields(head)
    ordered = sorted(options.items(), key=lambda option: option[0] == dhcp.RELAY_AGENT)
    written = [piece for code, value in ordered for piece in pieces(code, value)]
    assert [one for one in read[DHCP].options if one != "pad"] == [*written, "end"]


@given(HEADS, OPTIONS, st.binary(min_size=64, max_size=64), st.data())
def test_what_scapy_writes_is_read(
    head: DhcpMessage, options: dict[int, Value], server_name: bytes, data: st.DataObject
) -> None:
    """Also where options are in the fields of names, as far as there is room, and padded."""
    area, in_file, in_name = Area(dhcp.BYTES_MAX), Area(128), Area(64)
    for code, value in options.items():
        chosen = data.draw(st.sampled_from([area, in_file, in_name]))
        padding = ["pad"] * data.draw(st.integers(0, 2))
        if not chosen.takes([*pieces(code, value), *padding]):
            assert area.takes(pieces(code, value))
    overload = bool(in_file.options) + 2 * bool(in_name.options)
    if overload:
        options[dhcp.OVERLOAD] = bytes([overload]), overload
        assert area.takes([("dhcp-option-overload", overload)])
    if in_file.options:
        head = replace(head, file=b"")
    names = {"file": in_file.packed() or head.file, "sname": in_name.packed() or server_name}
    written = BOOTP(**fields(head) | names) / DHCP(options=[*area.options, "end"])
    assert dhcp.parse(bytes(written)) == replace(head, options=wire(options))


def test_firmware_of_scapy_is_answered_as_it_reads() -> None:
    here, address = Here(IPv4Interface("10.9.0.1/24"), 4281), IPv4Address("10.9.0.11")
    loader = Path("/usr/lib/ipxe/snponly.efi")
    head = DhcpMessage(dhcp.REQUEST, 7, bytes(6), relay=IPv4Address("10.8.0.1"), hops=1)
    echoed = [
        ("pxe_client_machine_identifier", bytes(range(17))),
        ("relay_agent_information", b"\1\4eth0"),
    ]
    asked = [
        ("message-type", "discover"),
        ("param_req_list", [1, 3, 43, 54, 60, 66, 67, 97]),
        ("max_dhcp_size", 1472),
        *echoed,
        ("pxe_client_architecture", b"\0\7"),
        ("pxe_client_network_interface", b"\1\3\20"),
        ("vendor_class_id", b"PXEClient:Arch:00007:UNDI:003016"),
        "end",
    ]
    request = dhcp.parse(bytes(BOOTP(**fields(head)) / DHCP(options=asked)))
    assert request is not None
    offer = BootOffer("n01", request.mac, address, {7: loader}, {}, {}, {}, "once", 1.0)
    given = answer(request, offer, here)
    assert given is not None
    read = BOOTP(dhcp.encode(given))
    assert read.fields == fields(head) | {
        "op": 2, "hops": 0, "yiaddr": "10.9.0.11", "siaddr": "10.9.0.1",
        "file": b"snponly.efi".ljust(128, b"\0"),
    }  # fmt: skip
    assert [one for one in read[DHCP].options if one != "pad"] == [
        ("message-type", 2),
        ("server_id", "10.9.0.1"),
        # As asked for; then the rest.
        ("subnet_mask", "255.255.255.0"),
        ("vendor_specific", bytes([6, 1, 8, 255])),
        ("vendor_class_id", b"PXEClient"),
        ("tftp_server_name", b"10.9.0.1"),
        ("boot-file-name", b"snponly.efi\0"),
        echoed[0],
        ("pxe_client_architecture", b"\0\7"),
        ("pxe_client_network_interface", b"\1\3\20"),
        ("hostname", b"n01"),
        (175, bytes([176, 1, 1])),
        ("lease_time", 3600),
        echoed[1],
        "end",
    ]


@given(st.integers(0, 70_000), st.binary(), NAMES, st.dictionaries(NAMES, NAMES, min_size=1))
def test_scapy_reads_what_tftp_writes(
    number: int, content: bytes, text: str, told: dict[str, str]
) -> None:
    block, code = number % 2**16, number % 9
    data = TFTP(tftp.data_packet(number, content))
    assert (data.op, data.payload.block, bytes(data.payload.payload)) == (3, block, content)
    error = TFTP(tftp.error_packet(Error(code, text)))
    assert (error.op, error.errorcode, error.errormsg) == (5, code, text.encode())
    granted = TFTP(tftp.options_packet(told))
    read = [(one.oname.decode(), one.value.decode()) for one in granted[TftpOptions].options]
    assert (granted.op, read) == (6, [*told.items()])


@given(st.integers(0, 2**16 - 1), NAMES, st.dictionaries(NAMES.map(str.lower), NAMES, max_size=15))
def test_what_scapy_writes_of_tftp_is_read(number: int, name: str, options: dict[str, str]) -> None:
    asked = TftpOptions(
        options=[TftpOption(oname=key.upper(), value=value) for key, value in options.items()]
    )
    for packet, read in (
        (TFTP_RRQ(filename=name, mode="Octet") / asked, Read(name, options)),
        (TFTP_WRQ(filename=name) / asked, TftpWrite()),
        (TFTP_ACK(block=number), Ack(number)),
        (TFTP_ERROR(errorcode=number, errormsg=name), Error(number, name)),
    ):
        assert tftp.parse(bytes(TFTP() / packet)) == read


class Area:
    """Where options are: their own part of a message, or a field that is lent to them."""

    def __init__(self, bytes_max: int) -> None:
        self.options: list[object] = []
        self._bytes_max = bytes_max

    def takes(self, options: list[object]) -> bool:
        """Take them, if all of them have room."""
        longer = [*self.options, *options]
        fits = len(DHCP(options=[*longer, "end"])) <= self._bytes_max
        self.options = longer if fits else self.options
        return fits

    def packed(self) -> bytes:
        return bytes(DHCP(options=[*self.options, "end"])) if self.options else b""


def fields(head: DhcpMessage) -> dict[str, Any]:
    """The head of a message, by scapy's names."""
    return {
        "op": head.op,
        "htype": 1,
        "hlen": 6,
        "hops": head.hops,
        "xid": head.transaction,
        "secs": head.seconds,
        "flags": 0x8000 if head.broadcast else 0,
        "ciaddr": str(head.client),
        "yiaddr": str(head.yours),
        "siaddr": str(head.server),
        "giaddr": str(head.relay),
        "chaddr": head.mac.ljust(16, b"\0"),
        "sname": bytes(64),
        "file": head.file.ljust(128, b"\0"),
        "options": b"c\x82Sc",
    }


def pieces(code: int, value: Value) -> list[object]:
    """An option as scapy has it: a long one is in several (RFC 3396)."""
    (name, _), (_, read) = SORTS[code], value
    if not isinstance(read, bytes):
        return [(name, read)]
    return [(name, read[at : at + 255]) for at in range(0, max(len(read), 1), 255)]


def wire(options: dict[int, Value]) -> dict[int, bytes]:
    return {code: data for code, (data, _) in options.items()}
