"""TFTP and HTTP as a machine fetches from them, and as others try to, on real sockets."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from ipaddress import IPv4Address, IPv4Interface
from pathlib import Path

import pytest

from haptera.modules.netboot import tftp
from haptera.modules.netboot.http_server import CONNECTIONS_MAX, STRANGERS_MAX, serve_http
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.tftp_server import TRANSFERS_MAX, serve_tftp
from tests.network import NETWORK

HERE = Here(IPv4Interface(f"{NETWORK}.78.1/24"), 4281)
MACHINE = f"{NETWORK}.78.11"
STRANGER = f"{NETWORK}.78.12"
NEIGHBOUR = f"{NETWORK}.78.13"
KERNEL = bytes(range(256)) * 400
LOADER = b"loader" * 1000

Connected = tuple[asyncio.StreamReader, asyncio.StreamWriter]

pytestmark = [pytest.mark.net, pytest.mark.campaign]


@asynccontextmanager
async def servers(folder: Path) -> AsyncIterator[Offers]:
    """Both, with one machine that has an offer, and another one."""
    (folder / "kernel").write_bytes(KERNEL)
    (folder / "ipxe.pxe").write_bytes(LOADER)
    (folder / "secret").write_text("s3cret")
    offers = Offers()
    for number, address in enumerate((MACHINE, NEIGHBOUR)):
        offers.open(
            BootOffer(
                f"n0{number + 1}",
                bytes([0, 0, 0, 0, 0, number]),
                IPv4Address(address),
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


async def test_http_gives_a_machine_its_own_and_each_invitation_once(tmp_path: Path) -> None:
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


async def test_http_gives_others_nothing(tmp_path: Path) -> None:
    async with servers(tmp_path):
        assert await get("/once/invitation", source=STRANGER) == (404, b"")
        assert await get("/twice/script") == (404, b"")
        assert await get("/once/secret") == (404, b"")
        for path in ("/once/../secret", "/", "//once/script", "/once/script/", "/once"):
            assert await get(path) == (404, b""), path
        assert await get("once/script") == (400, b"")
        assert await get("/once/script", method="POST") == (405, b"")
        assert await get("/once/script") == (200, b"#!ipxe\n")


async def test_who_has_no_offer_takes_no_connection_from_who_has(tmp_path: Path) -> None:
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


@asynccontextmanager
async def connected(source: str = MACHINE) -> AsyncIterator[Connected]:
    reader, writer = await asyncio.open_connection(
        str(HERE.address), HERE.http_port, local_addr=(source, 0)
    )
    try:
        yield reader, writer
    finally:
        writer.close()


async def answers(data: bytes) -> list[bytes]:
    """The answers to this, each from its status on, until the server ends the connection."""
    async with connected() as (reader, writer):
        writer.write(data)
        return (await reader.read()).split(b"HTTP/1.1 ")[1:]


GET_SCRIPT = b"GET /once/script HTTP/1.1\r\nHost: boot\r\n"
LAST = b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        b"\r\n",
        b"Content-Length: 5\r\n\r\nGET /",
        b"Transfer-Encoding: chunked\r\n\r\n3;a=b\r\nGET\r\nA\r\n0123456789\r\n0\r\nEnd: a\r\n\r\n",
        b"\r\n\r\n\r\n\r\n",  # blank lines before the next request
    ],
)
async def test_requests_in_a_row_are_answered_in_a_row_whatever_their_bodies(
    body: bytes, tmp_path: Path
) -> None:
    async with servers(tmp_path):
        clock = GET_SCRIPT.replace(b"script", b"clock") + body
        first, second, third = await answers(GET_SCRIPT + body + clock + GET_SCRIPT + LAST)
        assert [one[:3] for one in (first, second, third)] == [b"200"] * 3
        assert first.endswith(b"\r\n\r\n#!ipxe\n")
        assert second.endswith(b"\r\n\r\n1800000000\n")
        assert b"Connection: close" not in first
        assert b"Connection: close" in third
        assert b"Date: Fri, 15 Jan 2027 08:00:00 GMT\r\n" in first


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (GET_SCRIPT + b"Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n0\r\n\r\n", b"400"),
        (GET_SCRIPT + b"Transfer-Encoding: chunked\r\n\r\n0x3\r\n\r\n", b"400"),
        (GET_SCRIPT + b"Transfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n", b"400"),
        (GET_SCRIPT + b"Content-Length: 99999999\r\n\r\n", b"413"),
        (GET_SCRIPT + b"Transfer-Encoding: chunked\r\n\r\nfffffff\r\n", b"400"),
        (GET_SCRIPT + b"Other: a\r\n b\r\n\r\n", b"400"),
        (b"POST /once/script HTTP/1.1\r\nHost: boot\r\n\r\n", b"405"),
        (b"BREW /once/script HTTP/1.1\r\nHost: boot\r\n\r\n", b"501"),
        (b"GET /" + b"a" * 9_000 + b" HTTP/1.1\r\nHost: boot\r\n\r\n", b"414"),
        (GET_SCRIPT + b"Other: " + b"a" * 9_000 + b"\r\n\r\n", b"431"),
    ],
)
async def test_behind_what_is_refused_nothing_is_read(
    data: bytes, status: bytes, tmp_path: Path
) -> None:
    async with servers(tmp_path):
        (answer,) = await answers(data + GET_SCRIPT + LAST)
        assert answer[:3] == status
        assert b"\r\nConnection: close\r\n" in answer
        assert (b"\r\nAllow: GET, HEAD\r\n" in answer) is (status == b"405")


async def test_a_client_that_waits_to_send_its_body_is_told_to(tmp_path: Path) -> None:
    async with servers(tmp_path), connected() as (reader, writer):
        writer.write(GET_SCRIPT + b"Expect: 100-continue\r\nContent-Length: 2\r\n" + LAST)
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(b"{}")
        assert (await reader.read()).startswith(b"HTTP/1.1 200 OK\r\n")


async def test_a_client_that_has_said_all_gets_all(tmp_path: Path) -> None:
    async with servers(tmp_path), connected() as (reader, writer):
        writer.write(GET_SCRIPT.replace(b"script", b"kernel") + b"\r\n")
        writer.write_eof()
        assert (await reader.read()).endswith(KERNEL)


async def test_downloads_that_one_machine_does_not_read_leave_room_for_another(
    tmp_path: Path,
) -> None:
    async with servers(tmp_path), AsyncExitStack() as unread:
        for _ in range(CONNECTIONS_MAX + 8):
            _, writer = await unread.enter_async_context(connected())
            writer.write(GET_SCRIPT.replace(b"script", b"kernel") + b"\r\n")
        assert await get("/once/kernel", source=NEIGHBOUR) == (200, KERNEL)
        # Nor does it starve itself, as after a reset.
        assert await get("/once/kernel") == (200, KERNEL)


async def test_reads_that_one_machine_does_not_acknowledge_leave_room_for_another(
    tmp_path: Path,
) -> None:
    async with servers(tmp_path):
        with ExitStack() as unread:
            loop = asyncio.get_running_loop()
            for _ in range(TRANSFERS_MAX):
                link = unread.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
                link.setblocking(False)
                link.bind((MACHINE, 0))
                link.sendto(b"\0\1ipxe.pxe\0octet\0", (str(HERE.address), 69))
                await loop.sock_recv(link, 600)
            assert await fetch("ipxe.pxe", source=NEIGHBOUR) == LOADER
            assert await fetch("ipxe.pxe") == LOADER


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


async def test_tftp_gives_a_machine_its_loader_and_nothing_else(tmp_path: Path) -> None:
    async with servers(tmp_path) as offers:
        assert await fetch("ipxe.pxe", source=STRANGER, within_s=0.5) is None
        for name in ("secret", "../secret", str(tmp_path / "secret"), "kernel", ""):
            assert await fetch(name) == tftp.Error(tftp.NOT_FOUND, "not offered"), name
        offer = offers.of("n01")
        assert offer is not None
        assert not offer.loader_given
        assert await fetch("ipxe.pxe") == LOADER
        assert await fetch("ipxe.pxe", b"blksize\x001024\0tsize\x000\0") == LOADER
