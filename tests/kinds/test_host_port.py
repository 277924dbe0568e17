"""Addresses of devices, however people write them."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.kinds.host_port import HostPort
from haptera.model.errors import HapteraError

SOURCE = Path(__file__).resolve().parents[2] / "src" / "haptera"


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("10.0.1.7", "10.0.1.7", 623),
        ("10.0.1.7:6230", "10.0.1.7", 6230),
        ("bmc-1.example", "bmc-1.example", 623),
        ("bmc_1:99", "bmc_1", 99),
        ("2001:db8::21", "2001:db8::21", 623),
        ("2001:db8::21:623", "2001:db8::21:623", 623),
        ("[2001:db8::21]", "2001:db8::21", 623),
        ("[2001:db8::21]:99", "2001:db8::21", 99),
        ("fe80::1%eth0", "fe80::1%eth0", 623),
        ("[fe80::1%eth0]:99", "fe80::1%eth0", 99),
        ("::ffff:10.0.1.7", "::ffff:10.0.1.7", 623),
    ],
)
def test_an_address_is_read_with_or_without_a_port(text: str, host: str, port: int) -> None:
    assert HostPort.parse(text, 623) == HostPort(host, port)


@pytest.mark.parametrize(
    "text",
    ["", ":623", "a:", "a:0", "a:65536", "a:6x", "a:²", "[::1", "::1]", "[::1]x", "[::1]:", "[]:1",
     "[10.0.0.1]:1", "[a]:1", "52:54:00:00:00:01", "-oProxy", "a b", "a/b", "::1%", "a\n"],
)  # fmt: skip
def test_what_is_no_address_is_told_with_how_to_write_one(text: str) -> None:
    with pytest.raises(HapteraError, match="is not the address of a device") as told:
        HostPort.parse(text, 623)
    assert "[ADDRESS]:PORT" in str(told.value.do)


def test_without_a_default_the_port_has_to_be_there() -> None:
    with pytest.raises(HapteraError):
        HostPort.parse("2001:db8::21", None)


@given(st.ip_addresses().map(str) | st.just("bmc1"), st.integers(1, 65_535))
def test_what_is_written_is_read_as_it_was(host: str, port: int) -> None:
    one = HostPort(host, port)
    assert HostPort.parse(str(one), None) == one
    assert HostPort.parse(host, port) == one


# Addresses that haptera itself writes and reads, host and port in two fields or by rpartition.
OWN = {
    "lab/breaking.py": "the address of a BMC of the lab, which the lab wrote",
    "lab/redfish_bmc.py": "an argument that the lab wrote",
    "lab/layout.py": "a loopback address of IPv4, by its own check",
}


def test_nobody_else_splits_an_address_at_its_last_colon() -> None:
    split = re.compile(r"""rpartition\(["']:["']\)|rsplit\(["']:["']""")
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if split.search(path.read_text())
    }
    assert found == set(OWN)


# Addresses of IPv4 alone.
JOINED = {
    "lab/cloud.py": "a loopback address of the lab",
    "lab/machine_bmc.py": "a loopback address of the lab",
    "modules/netboot/offers.py": "machines boot over IPv4 only",
}


def test_nobody_else_joins_a_host_and_a_port() -> None:
    joined = re.compile(r"""\{[^{}]+\}:\{[^{}]*port[^{}]*\}|["']\{\}:\{\}["']""", re.IGNORECASE)
    found = {
        str(path.relative_to(SOURCE))
        for path in SOURCE.rglob("*.py")
        if joined.search(path.read_text()) and path.stem != "host_port"
    }
    assert found == set(JOINED)
