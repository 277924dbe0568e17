"""How many machines a second do the boot servers bring as far as their initramfs, all at once?

    .venv/bin/python -m benchmarks.boot [NODES MB]      as root, in a network namespace of its own

Each machine is a network namespace with a cable to one bridge. From there it speaks as firmware and
then as iPXE do: DHCP, its loader by TFTP, DHCP again, then script, kernel and initramfs by HTTP.
The baseline, in the same run, is dnsmasq for DHCP and TFTP beside busybox's HTTP server.
"""

import asyncio
import ctypes
import os
import secrets
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv4Address
from pathlib import Path
from urllib.parse import urlsplit

from haptera.model.entity import node_id
from haptera.modules.netboot import dhcp
from haptera.modules.netboot.content import NetbootSettings, make_offer
from haptera.modules.netboot.dhcp import DhcpMessage
from haptera.modules.netboot.dhcp_server import serve_dhcp
from haptera.modules.netboot.http_server import serve_http
from haptera.modules.netboot.offers import Offers
from haptera.modules.netboot.strangers import Strangers
from haptera.modules.netboot.tftp_server import serve_tftp
from haptera.sdk import Boot, HostPath, Target

ROUNDS = 3
SERVER, BITS, HTTP_PORT = "10.98.0.1", 16, 4281
LOADERS = Path("/usr/lib/ipxe")
AGAIN_S, TRIES_MAX, WITHIN_S = 2.0, 10, 300.0
NEW_NETWORK = 0x40000000
FIRMWARE = {dhcp.VENDOR_CLASS: b"PXEClient:Arch:00000:UNDI:002001", dhcp.ARCHITECTURE: b"\0\0"}
IPXE = {**FIRMWARE, dhcp.IPXE: b"\xeb\3\1\0\0", dhcp.USER_CLASS: b"iPXE"}
libc = ctypes.CDLL(None, use_errno=True)


@dataclass
class Machine:
    """One machine, by descriptors of its namespace."""

    number: int
    namespace: int

    @property
    def name(self) -> str:
        return f"n{self.number}"

    @property
    def address(self) -> IPv4Address:
        return IPv4Address(f"10.98.{1 + self.number // 250}.{1 + self.number % 250}")

    @property
    def mac(self) -> bytes:
        return bytes.fromhex("525400") + self.number.to_bytes(3, "big")

    def socket(self, kind: int, port: int = 0) -> socket.socket:
        """A socket there: what is made in a namespace stays in it."""
        enter(self.namespace)
        made = socket.socket(socket.AF_INET, kind)
        enter(HOME)
        made.setblocking(False)  # noqa: FBT003  it takes no name
        if port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
            made.bind(("", port))
        return made


HOME = os.open("/proc/self/ns/net", os.O_RDONLY)


def enter(namespace: int) -> None:
    assert libc.setns(namespace, NEW_NETWORK) == 0, os.strerror(ctypes.get_errno())


def ip(lines: list[str]) -> None:
    subprocess.run(["ip", "-batch", "-"], input="\n".join(lines), text=True, check=True)


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """So many namespaces, each with a cable to the bridge."""
    ip(["link set lo up", "link add br0 type bridge stp_state 0 forward_delay 0"])
    ip([f"address add {SERVER}/{BITS} dev br0", "link set br0 up"])
    made: list[Machine] = []
    for number in range(count):
        assert libc.unshare(NEW_NETWORK) == 0
        made.append(Machine(number, os.open("/proc/self/ns/net", os.O_RDONLY)))
        enter(HOME)
    pid = os.getpid()
    for one in made:
        ip(
            [
                f"link add v{one.number} type veth peer name eth0"
                f" address {one.mac.hex(':')} netns /proc/{pid}/fd/{one.namespace}",
                f"link set v{one.number} master br0 up",
            ]
        )
        enter(one.namespace)
        ip(["link set eth0 up", f"address add {one.address}/{BITS} dev eth0"])
        ip(["route add default dev eth0"])
        enter(HOME)
    yield made
    for one in made:
        os.close(one.namespace)


# One machine


async def boot(machine: Machine, bytes_min: int) -> None:
    """All that comes over the network until the kernel runs."""
    loop = asyncio.get_running_loop()
    with machine.socket(socket.SOCK_DGRAM, 68) as link:
        named = await lease(loop, link, machine, FIRMWARE)
        await tftp(loop, machine, named)
        url = urlsplit(await lease(loop, link, machine, IPXE))
    assert url.scheme == "http", url
    script = (await http(loop, machine, url.path)).decode()
    names = [line.split()[1 if line.startswith("kernel") else -1] for line in script.splitlines()
             if line.startswith(("kernel", "initrd"))]  # fmt: skip
    got = [len(await http(loop, machine, urlsplit(name).path)) for name in names]
    assert sum(got) >= bytes_min, got


async def lease(
    loop: asyncio.AbstractEventLoop, link: socket.socket, machine: Machine, said: dict[int, bytes]
) -> str:
    """The file that it is told to load, with its own address."""
    offered = await exchange(
        loop, link, machine, {**said, dhcp.MESSAGE_TYPE: bytes([dhcp.DISCOVER])}
    )
    assert offered.yours == machine.address, offered
    wanted = {
        **said,
        dhcp.MESSAGE_TYPE: bytes([dhcp.ASK]),
        dhcp.REQUESTED_ADDRESS: machine.address.packed,
        dhcp.SERVER: offered.options[dhcp.SERVER],
    }
    given = await exchange(loop, link, machine, wanted)
    return (given.options.get(dhcp.BOOT_FILE) or given.file).rstrip(b"\0").decode()


async def exchange(
    loop: asyncio.AbstractEventLoop, link: socket.socket, machine: Machine, said: dict[int, bytes]
) -> DhcpMessage:
    # What servers leave out that is not asked for.
    asked = {**said, 55: bytes([1, 3, 54, 60, 66, 67])}
    number = secrets.randbits(32)
    request = dhcp.encode(DhcpMessage(dhcp.REQUEST, number, machine.mac, asked, broadcast=True))
    for _ in range(TRIES_MAX):
        await loop.sock_sendto(link, request, ("255.255.255.255", 67))
        try:
            async with asyncio.timeout(AGAIN_S):
                while True:
                    reply = dhcp.parse(await loop.sock_recv(link, 1_500))
                    if reply is not None and reply.transaction == number:
                        return reply
        except TimeoutError:
            continue
    raise TimeoutError(f"{machine.name}: no answer by DHCP")


async def tftp(loop: asyncio.AbstractEventLoop, machine: Machine, name: str) -> None:
    request = b"\0\1" + name.encode() + b"\0octet\0blksize\x001468\0tsize\x000\0"
    with machine.socket(socket.SOCK_DGRAM) as link:
        sent, to, done = request, (SERVER, 69), 0
        size = (LOADERS / name).stat().st_size
        while done <= size // 1468:
            await loop.sock_sendto(link, sent, to)
            try:
                async with asyncio.timeout(AGAIN_S):
                    data, to = await loop.sock_recvfrom(link, 2_048)
            except TimeoutError:
                continue
            block = int.from_bytes(data[2:4], "big")
            done = done + 1 if data[1] == 3 and block == done + 1 else done
            sent = b"\0\4" + done.to_bytes(2, "big")
        await loop.sock_sendto(link, sent, to)


async def http(loop: asyncio.AbstractEventLoop, machine: Machine, path: str) -> bytearray:
    with machine.socket(socket.SOCK_STREAM) as link:
        await loop.sock_connect(link, (SERVER, HTTP_PORT))
        await loop.sock_sendall(link, f"GET {path} HTTP/1.0\r\nHost: {SERVER}\r\n\r\n".encode())
        got = bytearray()
        while part := await loop.sock_recv(link, 1 << 18):
            got += part
    head, _, content = got.partition(b"\r\n\r\n")
    assert b" 200 " in head.splitlines()[0], head
    return content


# The servers


@contextmanager
def ours(folder: Path, booting: list[Machine]) -> Iterator[None]:
    """The servers of the module, in a process of their own as at a parent."""
    ready, told = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            asyncio.run(serve(folder, booting, told))
        finally:
            os._exit(1)
    os.close(told)
    assert os.read(ready, 1) == b"r"
    os.close(ready)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)


async def serve(folder: Path, booting: list[Machine], told: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    settings = NetbootSettings(
        "br0", f"{SERVER}/{BITS}", http_port=HTTP_PORT, folder=HostPath(str(folder))
    )
    offers, here = Offers(), settings.here()
    for one in booting:
        given = {"address": str(one.address), "mac": one.mac.hex(":")}
        secret = Boot("a token", "a certificate", f"{SERVER}:4271")
        offers.open(make_offer(Target(node_id(one.name), given, boot=secret), settings, 1e12))
    await serve_dhcp(offers, here, "br0", Strangers(None, lambda: 0.0))
    await serve_tftp(offers, here)
    await serve_http(offers, here, lambda: 0.0)
    os.write(told, b"r")
    await asyncio.Event().wait()


@contextmanager
def baseline(folder: Path, booting: list[Machine]) -> Iterator[None]:
    """dnsmasq, and a static HTTP server."""
    base = f"http://{SERVER}:{HTTP_PORT}"
    script = f"#!ipxe\nkernel {base}/kernel initrd=initramfs\ninitrd {base}/initramfs\nboot\n"
    (folder / "boot.ipxe").write_text(script)
    hosts = [f"dhcp-host={one.mac.hex(':')},{one.address}" for one in booting]
    lines = ["port=0", "interface=br0", "bind-interfaces", "no-ping", "dhcp-authoritative"]
    lines += ["dhcp-range=10.98.0.0,static,255.255.0.0", "dhcp-lease-max=10000", "enable-tftp"]
    lines += [f"tftp-root={LOADERS}", "tftp-max=1000", "dhcp-match=set:ipxe,175"]
    lines += [f"dhcp-boot=tag:ipxe,{base}/boot.ipxe", "dhcp-boot=tag:!ipxe,undionly.kpxe"]
    lines += [f"dhcp-leasefile={folder / 'leases'}", "user=root", *hosts]
    (folder / "dnsmasq.conf").write_text("\n".join(lines) + "\n")
    with ExitStack() as stack:
        commands = [
            ["dnsmasq", "--no-daemon", "-C", str(folder / "dnsmasq.conf"), "--log-facility=-"],
            ["busybox", "httpd", "-f", "-p", f"{SERVER}:{HTTP_PORT}", "-h", str(folder)],
        ]
        for command in commands:
            one = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            stack.callback(one.wait)
            stack.callback(one.kill)
        wait_listening()
        yield


def wait_listening() -> None:
    """Until the baseline serves."""
    while True:
        done = subprocess.run(["ss", "-Hlntu"], capture_output=True, text=True, check=True).stdout
        if all(f":{port} " in done for port in (67, 69, HTTP_PORT)):
            return
        time.sleep(0.05)


def measure(
    servers: Callable[[Path, list[Machine]], AbstractContextManager[None]],
    folder: Path,
    booting: list[Machine],
    bytes_min: int,
) -> float:
    """Machines a second."""

    async def all_at_once() -> None:
        async with asyncio.timeout(WITHIN_S):
            await asyncio.gather(*(boot(one, bytes_min) for one in booting))

    with servers(folder, booting):
        began = time.monotonic()
        asyncio.run(all_at_once())
        return len(booting) / (time.monotonic() - began)


def main(count: int, mbytes: int) -> None:
    if libc.unshare(NEW_NETWORK) != 0:
        raise SystemExit("run it as root: it makes network namespaces")
    global HOME
    HOME = os.open("/proc/self/ns/net", os.O_RDONLY)
    sizes = {"kernel": mbytes * 4 // 11 << 20, "initramfs": mbytes * 7 // 11 << 20}
    with tempfile.TemporaryDirectory() as place, machines(count) as booting:
        folder = Path(place)
        for name, size in sizes.items():
            (folder / name).write_bytes(secrets.token_bytes(1 << 20) * (size >> 20))
        found: dict[str, list[float]] = {"ours": [], "dnsmasq + busybox": []}
        for _ in range(ROUNDS):
            for name, servers in zip(found, (ours, baseline), strict=True):
                found[name].append(measure(servers, folder, booting, sum(sizes.values())))
    print(f"{count} machines at once, {mbytes} MB each; of {ROUNDS} rounds the median (all)")
    for name, some in found.items():
        each = ", ".join(f"{one:.1f}" for one in some)
        print(f"{name}: {statistics.median(some):.1f} machines/s ({each})")
    ratio = statistics.median(a / b for a, b in zip(*found.values(), strict=True))
    print(f"ratio: {ratio:.2f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:] or ["200", "22"]))
