"""The DHCP server as a real client sees it, over a cable of the kernel's between two namespaces."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from haptera.modules.netboot.dhcp_server import serve_dhcp
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.runtime.clock import wall_s
from tests.lab.rig import wait_for

pytestmark = [pytest.mark.net, pytest.mark.campaign]

CARD, PEER = "haptera-boot0", "haptera-boot1"
HERE = Here(IPv4Interface("10.98.7.1/24"), 4281, IPv4Address("10.98.7.254"))
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
    own = os.readlink("/proc/self/ns/net")
    other = subprocess.Popen(["unshare", "--net", "sleep", "100"])
    try:
        wait_for(lambda: os.readlink(f"/proc/{other.pid}/ns/net") != own)
        run(
            "ip", "link", "add", CARD, "type", "veth", "peer", "name", PEER, "netns", str(other.pid)
        )
        run("ip", "address", "add", str(HERE.interface), "dev", CARD)
        run("ip", "link", "set", CARD, "up")
        yield other.pid
    finally:
        other.kill()
        other.wait()
        subprocess.run(["ip", "link", "delete", CARD], check=False, capture_output=True)


def run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


async def ask(machine: int, mac: str, folder: Path) -> str:
    """What busybox's client gets for this card, if anything."""
    script = folder / "told"
    script.write_text(TOLD)
    script.chmod(0o700)
    inside = ["nsenter", "-t", str(machine), "-n"]
    run(*inside, "ip", "link", "set", PEER, "address", mac, "up")
    client = await asyncio.create_subprocess_exec(
        *inside,
        *("busybox", "udhcpc", "-i", PEER, "-f", "-q", "-n", "-t", "2", "-T", "1"),
        *("-s", str(script), "-O", "bootfile"),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    told, _ = await client.communicate()
    return told.decode().strip()


def test_busyboxs_client_gets_what_is_offered_and_another_card_nothing(
    machine: int, tmp_path: Path
) -> None:
    async def story() -> None:
        offers = Offers()
        loader = Path("/usr/lib/ipxe/undionly.kpxe")
        offer = BootOffer(
            *("n01", bytes.fromhex(MAC.replace(":", "")), IPv4Address("10.98.7.11")),
            *({0: loader}, {}, {}, {}, "once", float("inf")),
        )
        offers.open(offer)
        server = await serve_dhcp(offers, HERE, CARD, Strangers(None, wall_s))
        try:
            assert await ask(machine, MAC, tmp_path) == (
                "10.98.7.11 24 10.98.7.1 10.98.7.1 undionly.kpxe n01 10.98.7.254"
            )
            assert offer.reached == "has an address"
            assert await ask(machine, STRANGER, tmp_path) == ""
        finally:
            server.close()

    asyncio.run(story())
