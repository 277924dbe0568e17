"""The DHCP server under what nobody asked for: floods, strangers, and bytes that mean nothing."""

import logging
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.answers import answer, boot_server_answer, proxy_answer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.dhcp_server import Answer, DhcpServer
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.strangers import STRANGERS_MAX, Strangers

HERE = Here(IPv4Interface("10.9.0.1/24"), 4281)
MAC = bytes.fromhex("525400000001")
DISCOVER = {dhcp.MESSAGE_TYPE: bytes([dhcp.DISCOVER])}
FLOOD = 10_000


class Wire:
    """Stands for the socket: keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[tuple[bytes, tuple[str, int]]] = []

    def sendto(self, data: bytes, address: tuple[str, int]) -> None:
        self.sent.append((data, address))


def offered() -> BootOffer:
    loaders = {0: Path("/usr/lib/ipxe/undionly.kpxe")}
    address = IPv4Address("10.9.0.11")
    return BootOffer("n01", MAC, address, loaders, {}, {}, {}, "once", float("inf"))


def served(wire: Wire, here: Here = HERE, answered: Answer = answer) -> DhcpServer:
    offers = Offers()
    offers.open(offered())
    server = DhcpServer(offers, here, Strangers(None, lambda: 0.0), answered)
    server.connection_made(wire)  # type: ignore[arg-type]
    return server


def discover(mac: bytes, relay: str = "0.0.0.0") -> bytes:
    return dhcp.encode(DhcpMessage(dhcp.REQUEST, 1, mac, DISCOVER, relay=IPv4Address(relay)))


def test_a_flood_of_strangers_is_not_answered_and_fills_no_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = served(wire := Wire())
    with caplog.at_level(logging.WARNING):
        for number in range(FLOOD):
            server.datagram_received(discover(number.to_bytes(6, "big")), ("0.0.0.0", 68))
    assert wire.sent == []
    assert len(caplog.records) == STRANGERS_MAX
    server.datagram_received(discover(MAC), ("0.0.0.0", 68))
    assert [address for _, address in wire.sent] == [("255.255.255.255", 68)]


def test_a_relay_is_answered_at_its_own_address() -> None:
    server = served(wire := Wire())
    server.datagram_received(discover(MAC, "10.9.7.1"), ("10.9.7.1", 67))
    assert [address for _, address in wire.sent] == [("10.9.7.1", 67)]


FIRMWARE = {dhcp.VENDOR_CLASS: b"PXEClient:Arch:00000"}
LOADER = {**FIRMWARE, dhcp.IPXE: b"\xeb\3\1\0\0"}


@pytest.mark.parametrize(
    ("asked", "had_script", "reached"),
    [
        # A reset: whatever it had before is of another boot.
        (FIRMWARE, True, "requests an address"),
        (FIRMWARE, False, "requests an address"),
        (LOADER, True, "requests an address"),
        # Our own loader, and what is no boot.
        (LOADER, False, "has its initramfs"),
        ({}, True, "has its initramfs"),
    ],
)
def test_what_a_machine_has_reached_is_of_this_boot(
    asked: dict[int, bytes], had_script: bool, reached: str
) -> None:
    offers = Offers()
    offers.open(offer := offered())
    offer.give_loader()
    offer.reached, offer.script_given = "has its initramfs", had_script
    server = DhcpServer(offers, HERE, Strangers(None, lambda: 0.0), answer)
    server.connection_made(Wire())  # type: ignore[arg-type]
    request = DhcpMessage(dhcp.REQUEST, 1, MAC, DISCOVER | asked)
    server.datagram_received(dhcp.encode(request), ("0.0.0.0", 68))
    assert (offer.reached, offer.loader_given) == (reached, reached == "has its initramfs")


PROXY = replace(HERE, proxies=True)
VENDORS = st.sampled_from([b"PXEClient", b"PXEClient:Arch:00000", b"HTTPClient", b"udhcp", b""])
ASKED = st.fixed_dictionaries(
    {dhcp.MESSAGE_TYPE: st.integers(0, 9).map(lambda kind: bytes([kind]))},
    optional={
        dhcp.VENDOR_CLASS: VENDORS | st.binary(max_size=40),
        dhcp.ARCHITECTURE: st.sampled_from([b"\0\0", b"\0\x10", b"\0\x0b"]) | st.binary(max_size=4),
        dhcp.IPXE: st.binary(max_size=20),
        dhcp.SERVER: st.binary(min_size=4, max_size=4),
        dhcp.MACHINE_ID: st.binary(max_size=20),
    },
)


@given(ASKED, st.sampled_from([proxy_answer, boot_server_answer]))
def test_beside_another_server_nobody_is_given_an_address(
    options: dict[int, bytes], answered: Answer
) -> None:
    server = served(wire := Wire(), PROXY, answered)
    asked = dhcp.encode(DhcpMessage(dhcp.REQUEST, 1, MAC, options))
    server.datagram_received(asked, ("10.9.0.11", 4_321))
    boots = options.get(dhcp.VENDOR_CLASS, b"").startswith((b"PXEClient", b"HTTPClient"))
    for data, to in wire.sent:
        reply = dhcp.parse(data)
        assert reply is not None
        assert boots
        assert reply.yours == dhcp.NOWHERE
        assert not {dhcp.LEASE_TIME, dhcp.SUBNET_MASK, dhcp.ROUTER} & reply.options.keys()
        asks_us_alone = answered is boot_server_answer
        assert to == (("10.9.0.11", 4_321) if asks_us_alone else ("255.255.255.255", 68))


def test_beside_another_server_who_does_not_boot_is_no_stranger(
    caplog: pytest.LogCaptureFixture,
) -> None:
    server = served(Wire(), PROXY, proxy_answer)
    with caplog.at_level(logging.WARNING):
        server.datagram_received(discover(bytes(6)), ("0.0.0.0", 68))
    assert caplog.records == []


@given(st.binary(max_size=600))
def test_bytes_that_mean_nothing_are_not_answered(data: bytes) -> None:
    server = served(wire := Wire())
    server.datagram_received(data, ("10.9.0.99", 68))
    assert wire.sent == []
