"""Real firmware at the boot servers, alone and beside a site's own DHCP server (dnsmasq)."""

import asyncio
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path
from typing import Final

import pytest

from haptera.lab.bridge import UEFI_CODE, UEFI_VARIABLES
from haptera.modules.netboot.advertiser import open_advertiser
from haptera.modules.netboot.content import ARCHITECTURES
from haptera.modules.netboot.dhcp_server import serve_dhcp
from haptera.modules.netboot.http_server import serve_http
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.modules.netboot.tftp_server import serve_tftp
from haptera.runtime.clock import wall_s
from tests.lab.rig import until, wait_for
from tests.network import another_network, why_no_networks

pytestmark = [pytest.mark.net, pytest.mark.campaign]

BRIDGE, PORT, CABLE, SITE = "haptera-br", "haptera-vm", "haptera-site0", "haptera-site1"
HERE: Final = Here(IPv4Interface("10.98.8.1/24"), 4281)
SITE_ADDRESS, ADDRESS, MAC = "10.98.8.2", IPv4Address("10.98.8.11"), "52:54:00:00:08:01"
IPXE: Final = Path("/usr/lib/ipxe")
BOOT_S_MAX: Final = 150.0
CARD: Final = f"virtio-net-pci,netdev=card,mac={MAC}"
X86_64: Final = ("qemu-system-x86_64", "-cpu", "max")
BIOS: Final = (*X86_64, "-machine", "pc", "-boot", "order=n", "-device", CARD)


@pytest.fixture
def bridge() -> Iterator[int]:
    """A bridge of ours with a port for a machine, and a process in a namespace behind a cable."""
    if os.geteuid() != 0:
        pytest.skip("network namespaces need root")
    needed = {"qemu-system-x86_64": "qemu-system-x86", "dnsmasq": "dnsmasq-base"}
    for tool, package in needed.items():
        if shutil.which(tool) is None:
            pytest.skip(f"{tool} is missing: apt install {package}")
    for file, package in {IPXE / "snponly.efi": "ipxe", UEFI_CODE: "ovmf"}.items():
        if not file.exists():
            pytest.skip(f"{file} is missing: apt install {package}")
    if (why := why_no_networks()) is not None:
        pytest.skip(why)
    with another_network() as site:
        try:
            ip(f"link add {BRIDGE} type bridge stp_state 0 forward_delay 0")
            ip(f"address add {HERE.interface} dev {BRIDGE}")
            ip(f"tuntap add dev {PORT} mode tap")
            ip(f"link add {CABLE} type veth peer name {SITE} netns {site}")
            for one in (PORT, CABLE):
                ip(f"link set {one} master {BRIDGE} up")
            ip(f"link set {BRIDGE} up")
            yield site
        finally:
            for one in (CABLE, PORT, BRIDGE):
                subprocess.run(["ip", "link", "delete", one], check=False, capture_output=True)


def ip(words: str, *before: str) -> None:
    subprocess.run([*before, "ip", *words.split()], check=True, capture_output=True)


@contextmanager
def sites_own_server(site: int, folder: Path) -> Iterator[Path]:
    """A dnsmasq that gives addresses and knows nothing of what boots; what it logs."""
    inside = ("nsenter", "-t", str(site), "-n")
    ip(f"address add {SITE_ADDRESS}/24 dev {SITE}", *inside)
    ip(f"link set {SITE} up", *inside)
    log = folder / "dnsmasq.log"
    words = [
        *("--no-daemon", "--conf-file=/dev/null", "--user=root", "--port=0", "--no-ping"),
        *(f"--interface={SITE}", "--bind-interfaces", f"--dhcp-host={MAC},{ADDRESS}"),
        *("--dhcp-range=10.98.8.0,static", f"--dhcp-leasefile={folder / 'leases'}", "--log-dhcp"),
    ]
    with log.open("wb") as to:
        server = subprocess.Popen([*inside, "dnsmasq", *words], stdout=to, stderr=to)
    try:
        wait_for(lambda: "started" in log.read_text())
        yield log
    finally:
        server.kill()
        server.wait()


def uefi(folder: Path, *, pxe: bool) -> tuple[str, ...]:
    """Firmware that boots by its own network stack: by PXE, or by HTTP only."""
    variables = folder / "variables.fd"
    shutil.copyfile(UEFI_VARIABLES, variables)
    return (
        *(*X86_64, "-machine", "q35"),
        *("-drive", f"if=pflash,format=raw,readonly=on,file={UEFI_CODE}"),
        *("-drive", f"if=pflash,format=raw,file={variables}"),
        *("-device", f"{CARD},romfile=,bootindex=1"),
        *("-fw_cfg", f"name=opt/org.tianocore/IPv4PXESupport,string={'yes' if pxe else 'no'}"),
        *("-fw_cfg", "name=opt/org.tianocore/IPv6PXESupport,string=no"),
    )


@contextmanager
def machine(firmware: tuple[str, ...], folder: Path) -> Iterator[None]:
    words = [
        *(*firmware, "-accel", "tcg", "-m", "512", "-nodefaults", "-display", "none"),
        *("-serial", f"file:{folder / 'serial'}"),
        *("-netdev", f"tap,id=card,ifname={PORT},script=no,downscript=no"),
    ]
    qemu = subprocess.Popen(words, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        qemu.kill()
        qemu.wait()


def offered() -> tuple[Offers, BootOffer]:
    offers, kind = Offers(), ARCHITECTURES["x86-64"]
    one = BootOffer(
        "n01",
        bytes.fromhex(MAC.replace(":", "")),
        ADDRESS,
        {one: IPXE / name for one, name in kind.loaders.items()},
        {one: IPXE / name for one, name in kind.native.items()},
        {},
        {"script": b"#!ipxe\nsleep 1000\n"},
        "once",
        float("inf"),
    )
    offers.open(one)
    return offers, one


async def boots(here: Here, firmware: tuple[str, ...], folder: Path) -> None:
    """Serve this machine until it has fetched its script."""
    offers, offer = offered()
    with ExitStack() as open_:
        for one in await serve_dhcp(offers, here, BRIDGE, Strangers(None, wall_s)):
            open_.callback(one.close)
        open_.callback((await serve_tftp(offers, here)).close)
        open_.callback((await serve_http(offers, here, wall_s)).close)
        open_.callback(open_advertiser(BRIDGE).close)
        open_.enter_context(machine(firmware, folder))
        try:
            await until(lambda: offer.reached == "has its script", BOOT_S_MAX)
        except TimeoutError:
            pytest.fail(f"it {offer.reached}")


@pytest.mark.parametrize("firmware", ["BIOS", "UEFI", "UEFI by HTTP"])
def test_beside_a_sites_own_server_firmware_boots_by_what_we_tell_it(
    bridge: int, firmware: str, tmp_path: Path
) -> None:
    with sites_own_server(bridge, tmp_path) as log:
        words = BIOS if firmware == "BIOS" else uefi(tmp_path, pxe=firmware == "UEFI")
        asyncio.run(boots(replace(HERE, proxies=True), words, tmp_path))
        # Every address was the site's, once for the firmware and once for the loader.
        assert log.read_text().count(f"DHCPACK({SITE}) {ADDRESS} {MAC}") >= 2


def test_firmware_boots_by_http(bridge: int, tmp_path: Path) -> None:
    asyncio.run(boots(HERE, uefi(tmp_path, pxe=False), tmp_path))
