"""The DHCP server under what nobody asked for: floods, strangers, and bytes that mean nothing."""

import logging
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.modules.netboot import dhcp
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.dhcp_server import DhcpServer
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


def served(wire: Wire) -> DhcpServer:
    offers = Offers()
    loaders = {0: Path("/usr/lib/ipxe/undionly.kpxe")}
    offers.open(
        BootOffer("n01", MAC, IPv4Address("10.9.0.11"), loaders, {}, {}, {}, "once", float("inf"))
    )
    server = DhcpServer(offers, HERE, Strangers(None, lambda: 0.0))
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


@given(st.binary(max_size=600))
def test_bytes_that_mean_nothing_are_not_answered(data: bytes) -> None:
    server = served(wire := Wire())
    server.datagram_received(data, ("10.9.0.99", 68))
    assert wire.sent == []
