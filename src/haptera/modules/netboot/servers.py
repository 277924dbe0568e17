"""All boot servers of one process, and what the module's parts ask of them."""

import asyncio
import datetime
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from haptera.modules.netboot.advertiser import EVERY_S, Advertiser, open_advertiser
from haptera.modules.netboot.content import NetbootSettings, files_of, make_offer
from haptera.modules.netboot.dhcp_server import serve_dhcp
from haptera.modules.netboot.http_server import serve_http
from haptera.modules.netboot.offers import OFFERED_SHARE, OFFERS_MAX, Offers
from haptera.modules.netboot.strangers import Strangers, strangers_file
from haptera.modules.netboot.tftp_server import serve_tftp
from haptera.sdk import HapteraError, Target

# The end of a path tells more than its beginning.
_WHERE_MAX: Final = 60
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Booting:
    """One node, at the boot servers."""

    offers: Offers
    target: Target

    def is_offered(self) -> bool:
        """Whether its boot is under way; notes how far it has come."""
        self.offers.expire(_now())
        one = self.offers.of(self.target.entity.name)
        if one is not None:
            self.target.note(one.reached)
        return one is not None

    def missing(self) -> str | None:
        """The file that this machine needs to boot and that is not there, as short as a note."""
        try:
            files_of(self.target, self.target.settings)
        except HapteraError as error:
            where = error.where or ""
            return f"{error.what}: {'…' * (len(where) > _WHERE_MAX)}{where[-_WHERE_MAX:]}"
        return None

    def offer(self) -> None:
        """Serve this node from now on, until it has its invitation, or a boot takes no longer."""
        assert self.target.boot is not None
        self.offers.expire(_now())
        if self.offers.full():
            raise HapteraError(f"{OFFERS_MAX} machines boot already", do="let some of them finish")
        ends_at = _now() + OFFERED_SHARE * self.target.boot.good_for_s
        self.offers.open(make_offer(self.target, self.target.settings, ends_at))

    def withdraw(self) -> None:
        self.offers.close(self.target.entity.name)


class _Servers:
    """The servers of this process, once they have been started."""

    def __init__(self, run_dir: Path) -> None:
        self.offers = Offers()
        self._strangers = Strangers(strangers_file(run_dir), _wall_s)
        self._starting = asyncio.Lock()
        self._held: list[object] = []

    async def start(self, settings: NetbootSettings) -> None:
        """Start them, if they are not.

        Raises:
            HapteraError: one of them cannot be; those before it are tried anew next time.
        """
        async with self._starting:
            if not self._held:
                self._held = await self._started(settings)

    async def _started(self, settings: NetbootSettings) -> list[object]:
        here, offers = settings.here(), self.offers
        held: list[asyncio.BaseTransport | asyncio.Server | Advertiser] = []
        try:
            held += await serve_dhcp(offers, here, settings.interface, self._strangers)
            held.append(await serve_tftp(offers, here))
            held.append(await serve_http(offers, here, _wall_s))
            held.append(advertiser := open_advertiser(settings.interface))
        except BaseException:
            for one in held:
                one.close()
            raise
        advertising = asyncio.create_task(_tend(advertiser, self._strangers))
        return [*held, advertising]


_servers: _Servers | None = None


@asynccontextmanager
async def booting(target: Target) -> AsyncIterator[Booting]:
    """A node at the servers of this process, which the first one starts."""
    global _servers
    if _servers is None:
        _servers = _Servers(target.run_dir)
    await _servers.start(target.settings)
    yield Booting(_servers.offers, target)


async def _tend(advertiser: Advertiser, strangers: Strangers) -> None:
    """The work that is repeated, without a request."""
    while True:
        advertiser.advertise()
        try:
            strangers.save()
        except OSError as error:
            _log.warning("unclaimed machines cannot be recorded: %s", error)
        await asyncio.sleep(EVERY_S)


def _now() -> float:
    return asyncio.get_running_loop().time()


def _wall_s() -> float:
    # For the machine's clock, and decides nothing here.
    return datetime.datetime.now(datetime.UTC).timestamp()  # noqa: TID251
