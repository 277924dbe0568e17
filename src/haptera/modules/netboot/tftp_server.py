"""The TFTP server: gives a machine that has an offer its first loader, and nothing else."""

import asyncio
import logging
import socket
from pathlib import Path
from typing import Final, cast

from haptera.modules.netboot import tftp
from haptera.modules.netboot.offers import BootOffer, Here, Offers
from haptera.modules.netboot.shares import Shares
from haptera.modules.netboot.tftp import Ack, Error, Read, Terms, TftpWrite
from haptera.modules.regular import open_regular
from haptera.sdk import HapteraError, Refused
from haptera.sdk.boundary import Boundary

PORT: Final = 69
TRANSFERS_MAX: Final = 256
# Firmware has one at a time; what it asked for before it was reset is sent for some seconds yet.
TRANSFERS_EACH_MAX: Final = 4
# A packet is sent again after so long, so often.
AGAIN_S: Final = 1.0
TRIES_MAX: Final = 5
FILE_BYTES_MAX: Final = 16 << 20

Address = tuple[str, int]

_log = logging.getLogger(__name__)


class TftpServer(asyncio.DatagramProtocol):
    """Takes requests; each transfer has a socket of its own."""

    def __init__(self, offers: Offers, here: Here) -> None:
        self._offers = offers
        self._here = here
        self._transfers: dict[Address, asyncio.Task[None]] = {}
        self._shares = Shares[Address](all_max=TRANSFERS_MAX, each_max=TRANSFERS_EACH_MAX)
        self._transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)

    def connection_lost(self, exc: Exception | None) -> None:
        for task in self._transfers.values():
            task.cancel()

    def datagram_received(self, data: bytes, addr: Address) -> None:
        offer = self._offers.for_address(addr[0])
        # Who has no offer is not answered at all; a request that was sent twice is under way.
        if offer is None or addr in self._transfers:
            return
        match tftp.parse(data):
            case Read(name, options):
                self._begin(offer, name, dict(options), addr)
            case TftpWrite():
                self._refuse(addr, Error(tftp.ACCESS_DENIED, "nothing can be written here"))
            case _:
                pass

    def _begin(self, offer: BootOffer, name: str, options: dict[str, str], addr: Address) -> None:
        path = offer.loader(name)
        if path is None:
            self._refuse(addr, Error(tftp.NOT_FOUND, "not offered"))
            return
        loser = self._shares.enter(addr[0], addr)
        if loser == addr:
            return  # It asks again.
        if loser is not None:
            self._transfers.pop(loser).cancel()
        sends = self._by_itself(offer, path, options, addr)
        task = asyncio.get_running_loop().create_task(sends)
        self._transfers[addr] = task
        task.add_done_callback(lambda _: self._ended(addr, task))

    def _ended(self, addr: Address, task: asyncio.Task[None]) -> None:
        """Give its place back, unless it has given way, and perhaps begun anew."""
        if self._transfers.get(addr) is task:
            del self._transfers[addr]
            self._shares.leave(addr[0], addr)

    async def _by_itself(
        self, offer: BootOffer, path: Path, options: dict[str, str], addr: Address
    ) -> None:
        with Boundary(f"{offer.node}: {path.name} to {addr[0]}"):
            await self._send(offer, path, options, addr)

    async def _send(
        self, offer: BootOffer, path: Path, options: dict[str, str], addr: Address
    ) -> None:
        try:
            content = await asyncio.to_thread(_read, path)
            await _transfer(content, options, (str(self._here.address), 0), addr)
        except (OSError, Refused, TransferError) as error:
            offer.reached = f"has not got its loader: {error}"
            _log.warning("%s: %s to %s: %s", offer.node, path.name, addr[0], error)
        else:
            offer.give_loader()

    def _refuse(self, addr: Address, error: Error) -> None:
        self._transport.sendto(tftp.error_packet(error), addr)


class TransferError(Exception):
    """The client gave up, or fell silent."""


async def serve_tftp(offers: Offers, here: Here) -> asyncio.DatagramTransport:
    """Listen; needs root.

    Raises:
        HapteraError: another server listens there, or the address is not this machine's.
    """
    loop = asyncio.get_running_loop()
    try:
        transport, _ = await loop.create_datagram_endpoint(
            lambda: TftpServer(offers, here), local_addr=(str(here.address), PORT)
        )
    except OSError as error:
        raise HapteraError(
            f"TFTP cannot be served: {error.strerror}",
            where=f"{here.address}, port {PORT}",
            do="give the module an address of this machine, and stop other TFTP servers there",
        ) from None
    return transport


async def _transfer(content: bytes, options: dict[str, str], local: Address, peer: Address) -> None:
    terms = tftp.negotiate(options, len(content))
    link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with link:
        link.setblocking(False)  # noqa: FBT003  it takes no name
        link.bind(local)
        link.connect(peer)
        await _Transfer(link, content, terms).run()


class _Transfer:
    """One file on its way, a window of blocks at a time."""

    def __init__(self, link: socket.socket, content: bytes, terms: Terms) -> None:
        self._link = link
        self._content = content
        self._terms = terms
        # The last block is shorter than the others, so that one may be empty.
        self._blocks = len(content) // terms.block_bytes + 1

    async def run(self) -> None:
        done = 0
        if self._terms.told:
            await self._until_acked([tftp.options_packet(self._terms.told)], 0, 0)
        while done < self._blocks:
            end = min(done + self._terms.window, self._blocks)
            done = await self._until_acked(self._packets(done, end), done, end)

    def _packets(self, done: int, end: int) -> list[bytes]:
        size = self._terms.block_bytes
        return [
            tftp.data_packet(at + 1, self._content[at * size : (at + 1) * size])
            for at in range(done, end)
        ]

    async def _until_acked(self, packets: list[bytes], done: int, end: int) -> int:
        """Send these, again where need be; how many blocks have come then."""
        loop = asyncio.get_running_loop()
        for _ in range(TRIES_MAX):
            for packet in packets:
                await loop.sock_sendall(self._link, packet)
            try:
                async with asyncio.timeout(AGAIN_S):
                    return await self._acked(done, end)
            except TimeoutError:
                continue
        raise TransferError("it fell silent")

    async def _acked(self, done: int, end: int) -> int:
        loop = asyncio.get_running_loop()
        while True:
            match tftp.parse(await loop.sock_recv(self._link, tftp.PACKET_BYTES_MAX)):
                case Ack(block):
                    # Numbers wrap round; a late one is of none of these blocks.
                    moved = (block - done) & 0xFFFF
                    if (end == done and moved == 0) or 0 < moved <= end - done:
                        return done + moved
                case Error(_, text):
                    raise TransferError(f"it gave up: {text[:80]}")
                case _:
                    pass


def _read(path: Path) -> bytes:
    with open_regular(path) as file:
        return file.read(FILE_BYTES_MAX)
