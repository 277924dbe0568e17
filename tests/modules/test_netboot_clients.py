"""The boot servers as real clients see them, over a cable of the kernel's between namespaces."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from haptera.modules.netboot.dhcp_server import serve_dhcp
from haptera.modules.netboot.http_server import serve_http
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.modules.netboot.tftp_server import serve_tftp
from haptera.runtime.clock import wall_s
from tests.network import another_network, why_no_networks

pytestmark = [pytest.mark.net, pytest.mark.campaign]

CARD, PEER = "haptera-boot0", "haptera-boot1"
HERE = Here(IPv4Interface("10.98.7.1/24"), 4281, IPv4Address("10.98.7.254"))
LOADER = Path("/usr/lib/ipxe/undionly.kpxe")
ADDRESS = IPv4Address("10.98.7.11")
MAC, STRANGER = "52:54:00:00:07:01", "52:54:00:00:07:02"
# What udhcpc calls with what it got.
TOLD = """#!/bin/sh
[ "$1" != bound ] || echo "$ip $mask $serverid $siaddr $boot_file $hostname $router"
"""


@pytest.fixture
def machine() -> Iterator[int]:
    """A process in a namespace of its own, with the other end of the cable."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    for tool, package in {"busybox": "busybox-static", "ip": "iproute2"}.items():
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt install {package}")
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    with another_network() as other:
        try:
            ends = ("name", PEER, "netns", str(other))
            run("ip", "link", "add", CARD, "type", "veth", "peer", *ends)
            run("ip", "address", "add", str(HERE.interface), "dev", CARD)
            run("ip", "link", "set", CARD, "up")
            yield other
        finally:
            subprocess.run(["ip", "link", "delete", CARD], check=False, capture_output=True)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


async def ask(machine: int, mac: str, folder: Path, tries: str = "60") -> str:
    """What busybox's client gets for this card, if anything."""
    script = folder / "told"
    script.write_text(TOLD)
    script.chmod(0o700)
    inside = ["nsenter", "-t", str(machine), "-n"]
    run(*inside, "ip", "link", "set", PEER, "address", mac, "up")
    client = await asyncio.create_subprocess_exec(
        *inside,
        *("busybox", "udhcpc", "-i", PEER, "-f", "-q", "-n", "-t", tries, "-T", "1"),
        *("-s", str(script), "-O", "bootfile"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    told, _ = await client.communicate()
    return told.decode().strip()


@pytest.fixture
def offers() -> Offers:
    one = Offers()
    mac = bytes.fromhex(MAC.replace(":", ""))
    content = {"script": b"#!ipxe\nboot\n"}
    one.open(
        BootOffer("n01", mac, ADDRESS, {0: LOADER}, {}, {}, content, "once", float("inf")),
    )
    return one


async def test_busyboxs_client_gets_what_is_offered_and_another_card_nothing(
    machine: int, offers: Offers, tmp_path: Path
) -> None:
    strangers = Strangers(None, wall_s)
    (server,) = await serve_dhcp(offers, HERE, CARD, strangers)
    try:
        assert await ask(machine, MAC, tmp_path) == (
            "10.98.7.11 24 10.98.7.1 10.98.7.1 undionly.kpxe n01 10.98.7.254"
        )
        offer = offers.of("n01")
        assert offer is not None
        assert offer.reached == "has an address"
        assert await ask(machine, STRANGER, tmp_path, "2") == ""
    finally:
        server.close()


async def test_iscs_client_gets_what_is_offered(
    machine: int, offers: Offers, tmp_path: Path
) -> None:
    needed("dhclient", "isc-dhcp-client")
    leases = tmp_path / "leases"

    (server,) = await serve_dhcp(offers, HERE, CARD, Strangers(None, wall_s))
    inside = ["nsenter", "-t", str(machine), "-n"]
    run(*inside, "ip", "link", "set", PEER, "address", MAC, "up")
    client = await asyncio.create_subprocess_exec(
        *(*inside, "dhclient", "-4", "-d", "-1", "-sf", "/bin/true", "-cf", "/dev/null"),
        *("-lf", str(leases), "-pf", str(tmp_path / "pid"), PEER),
        stderr=asyncio.subprocess.PIPE,
    )
    assert client.stderr is not None
    try:
        async with asyncio.timeout(60):
            while b"bound to" not in await client.stderr.readline():
                pass
    finally:
        client.kill()
        await client.wait()
        server.close()
    lease = leases.read_text()
    for line in (
        "fixed-address 10.98.7.11;",
        'filename "undionly.kpxe";',
        "option subnet-mask 255.255.255.0;",
        "option routers 10.98.7.254;",
        "option dhcp-server-identifier 10.98.7.1;",
    ):
        assert line in lease, lease


async def test_dhcping_is_answered_for_an_address_in_use(machine: int, offers: Offers) -> None:
    needed("dhcping", "dhcping")
    inside = ["nsenter", "-t", str(machine), "-n"]
    run(*inside, "ip", "link", "set", PEER, "address", MAC, "up")
    run(*inside, "ip", "address", "add", f"{ADDRESS}/24", "dev", PEER)

    (server,) = await serve_dhcp(offers, HERE, CARD, Strangers(None, wall_s))
    client = await asyncio.create_subprocess_exec(
        *(*inside, "dhcping", "-t", "30", "-s", str(HERE.address)),
        *("-c", str(ADDRESS), "-h", MAC),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        said, _ = await client.communicate()
    finally:
        server.close()
    assert (client.returncode, said.decode()) == (0, f"Got answer from: {HERE.address}\n")


async def test_tftp_hpa_and_curl_fetch_what_is_offered_and_nothing_else(
    machine: int, offers: Offers, tmp_path: Path
) -> None:
    needed("tftp", "tftp-hpa")
    needed("curl", "curl")
    inside = ["nsenter", "-t", str(machine), "-n"]
    run(*inside, "ip", "link", "set", PEER, "address", MAC, "up")
    run(*inside, "ip", "address", "add", f"{ADDRESS}/24", "dev", PEER)
    got, there = tmp_path / "got", str(HERE.address)

    async def typed(*words: str) -> tuple[int | None, str]:
        client = await asyncio.create_subprocess_exec(
            *(*inside, *words),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        said, _ = await client.communicate()
        return client.returncode, said.decode()

    listener = await serve_tftp(offers, HERE)
    server = await serve_http(offers, HERE, wall_s)
    fetch = ("tftp", "-m", "binary", there, "-c", "get")
    try:
        assert (await typed(*fetch, LOADER.name, str(got)))[0] == 0
        _, said = await typed(*fetch, "../../../etc/hostname", str(tmp_path / "none"))
        assert "not offered" in said
        url = f"{HERE.url('once', 'script')}"
        assert await typed("curl", "-sf", url) == (0, "#!ipxe\nboot\n")
        assert await typed("curl", "-sf", "-r", "2-5", url) == (0, "ipxe")
        code, _ = await typed("curl", "-sf", "--path-as-is", f"{url}/../../../etc/hostname")
        assert code == 22  # an error by HTTP
    finally:
        listener.close()
        server.close()
    assert got.read_bytes() == LOADER.read_bytes()  # noqa: ASYNC240 - it has ended


def needed(tool: str, package: str) -> None:
    if shutil.which(tool) is None:
        pytest.skip(f"{tool} is missing: apt install {package}")
