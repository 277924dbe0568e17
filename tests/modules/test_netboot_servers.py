"""TFTP and HTTP as a machine fetches from them, and as others try to, on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from haptera.modules.netboot import tftp
from haptera.modules.netboot.http_server import CONNECTIONS_MAX, STRANGERS_MAX, serve_http
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.tftp_server import serve_tftp
from tests.network import NETWORK

HERE = Here(IPv4Interface(f"{NETWORK}.78.1/24"), 4281)
MACHINE = f"{NETWORK}.78.11"
STRANGER = f"{NETWORK}.78.12"
KERNEL = bytes(range(256)) * 400
LOADER = b"loader" * 1000

pytestmark = [pytest.mark.net, pytest.mark.campaign]


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[Offers]:
    """Both, with one machine that has an offer."""
    (folder / "kernel").write_bytes(KERNEL)
    (folder / "ipxe.pxe").write_bytes(LOADER)
    (folder / "secret").write_text("s3cret")
    offers = Offers()
    offers.open(
        BootOffer(
            "n01",
            bytes(6),
            IPv4Address(MACHINE),
            {0: folder / "ipxe.pxe"},
            {},
            {"kernel": folder / "kernel"},
            {"script": b"#!ipxe\n", "invitation": b"{}"},
            "once",
            float("inf"),
        )
    )
    listener = await serve_tftp(offers, HERE)
    server = await serve_http(offers, HERE, lambda: 1_800_000_000.4)
    try:
        yield offers
    finally:
        listener.close()
        server.close()


async def get(
    path: str, *lines: str, method: str = "GET", source: str = MACHINE
) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection(
        str(HERE.address), HERE.http_port, local_addr=(source, 0)
    )
    head = [f"{method} {path} HTTP/1.1", "Host: boot", "Connection: close", *lines, "", ""]
    writer.write("\r\n".join(head).encode())
    answer = await reader.read()
    writer.close()
    return int(answer.split()[1]), answer.partition(b"\r\n\r\n")[2]


def test_http_gives_a_machine_its_own_and_each_invitation_once(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers(tmp_path) as offers:
            assert await get("/once/script") == (200, b"#!ipxe\n")
            assert await get("/once/kernel") == (200, KERNEL)
            assert await get("/once/kernel", method="HEAD") == (200, b"")
            assert await get("/once/kernel", "Range: bytes=3-5") == (206, KERNEL[3:6])
            assert await get("/once/kernel", "Range: bytes=102399-") == (206, KERNEL[-1:])
            assert await get("/once/kernel", "Range: bytes=102400-") == (416, b"")
            assert await get("/once/clock") == (200, b"1800000000\n")
            assert await get("/once/invitation", method="HEAD") == (200, b"")
            assert await get("/once/invitation") == (200, b"{}")
            assert offers.of("n01") is None
            assert await get("/once/invitation") == (404, b"")
            assert await get("/once/script") == (404, b"")

    asyncio.run(story())


def test_http_gives_others_nothing(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers(tmp_path):
            assert await get("/once/invitation", source=STRANGER) == (404, b"")
            assert await get("/twice/script") == (404, b"")
            assert await get("/once/secret") == (404, b"")
            for path in (
                "/once/../secret",
                "/",
                "//once/script",
                "/once/script/",
                "/once/%73cript",
            ):
                assert await get(path) == (400, b""), path
            assert await get("/once/script", method="POST") == (400, b"")
            assert await get("/once/script") == (200, b"#!ipxe\n")

    asyncio.run(story())


def test_who_has_no_offer_takes_no_connection_from_who_has(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers(tmp_path):
            silent = [
                await asyncio.open_connection(
                    str(HERE.address), HERE.http_port, local_addr=(STRANGER, 0)
                )
                for _ in range(CONNECTIONS_MAX)
            ]
            assert await get("/once/script") == (200, b"#!ipxe\n")
            for reader, _ in silent[STRANGERS_MAX:]:
                assert await reader.read() == b""
            for _, writer in silent:
                writer.close()

    asyncio.run(story())


async def fetch(
    name: str, options: bytes = b"", *, source: str = MACHINE, within_s: float = 60.0
) -> bytes | tftp.Error | None:
    """What TFTP gives for this name; None where nobody answers."""
    loop = asyncio.get_running_loop()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as link:
        link.setblocking(False)
        link.bind((source, 0))
        link.sendto(b"\0\1" + name.encode() + b"\0octet\0" + options, (str(HERE.address), 69))
        content = b""
        size = 512
        while True:
            try:
                async with asyncio.timeout(within_s):
                    data, peer = await loop.sock_recvfrom(link, 65_536)
            except TimeoutError:
                return None
            if isinstance(said := tftp.parse(data), tftp.Error):
                return said
            block = data[2:4] if data[1] == 3 else b"\0\0"
            if data[1] == 6 and b"blksize\0" in data:
                size = int(data.split(b"blksize\0")[1].split(b"\0")[0])
            content += data[4:] if data[1] == 3 else b""
            link.sendto(b"\0\4" + block, peer)
            if data[1] == 3 and len(data) < size + 4:
                return content


def test_tftp_gives_a_machine_its_loader_and_nothing_else(tmp_path: Path) -> None:
    async def story() -> None:
        async with servers(tmp_path) as offers:
            assert await fetch("ipxe.pxe", source=STRANGER, within_s=0.5) is None
            for name in ("secret", "../secret", str(tmp_path / "secret"), "kernel", ""):
                assert await fetch(name) == tftp.Error(tftp.NOT_FOUND, "not offered"), name
            offer = offers.of("n01")
            assert offer is not None
            assert not offer.loader_given
            assert await fetch("ipxe.pxe") == LOADER
            assert await fetch("ipxe.pxe", b"blksize\x001024\0tsize\x000\0") == LOADER

    asyncio.run(story())
