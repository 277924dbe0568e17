"""Which nodes have a session with this parent: made, moved, paused, and ended."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Final

from haptera.daemon.channels.parent_channel import RENEWED_LATE_S_MAX, ParentChannel
from haptera.daemon.channels.rekeying import new_boot, rekey
from haptera.model.entity import EntityId
from haptera.runtime.network.udp import Udp
from haptera.runtime.store.sessions import SavedSession
from haptera.runtime.store.store import Store, kept
from haptera.wire.seal import SealRole, Session

# How long a node that is no longer declared still hears so, and what is to stop on it. What it asks
# over TLS is not answered even then.
GOODBYE_S: Final = 60.0
# How long its session is kept from then on, with nothing accepted by it: who declares the node
# again has its machine back without a boot. A key copied from a node is good for no longer.
PAUSED_S: Final = RENEWED_LATE_S_MAX

_log = logging.getLogger(__name__)


class Sessions:
    """The sessions of one parent process, `boot`; `declared` says of a name whether it is a node's.

    Needs a running loop.
    """

    def __init__(
        self,
        store: Store,
        udp: Udp,
        channel: ParentChannel,
        boot: int,
        declared: Callable[[str], bool],
        *,
        goodbye_s: float = GOODBYE_S,
        paused_s: float = PAUSED_S,
    ) -> None:
        self._store = store
        self._udp = udp
        self._channel = channel
        self._boot = boot
        self._declared = declared
        self._goodbye_s = goodbye_s
        self._paused_s = paused_s
        self._sessions: dict[str, SavedSession] = {}
        # Of nodes that are not declared: neither heard nor answered.
        self._paused: set[str] = set()

    def open(self) -> None:
        """Go on with all that an earlier process had."""
        for saved in self._store.sessions():
            self.join(saved)
            self._look(saved.peer)

    def hosts(self) -> list[str]:
        """The addresses of all children."""
        return [saved.address[0] for saved in self._sessions.values()]

    def level(self, peer: str) -> str | None:
        """How the token of this node's session reached it; None where that is not known."""
        saved = self._sessions.get(peer)
        return None if saved is None else saved.level

    def incarnation(self, peer: str) -> int | None:
        """Which incarnation of this node has a session; None where none has."""
        saved = self._sessions.get(peer)
        return None if saved is None else saved.agreement.incarnation

    def join(self, saved: SavedSession) -> None:
        """A child has a session: hear it from now on."""
        self._sessions[saved.peer] = saved
        self._paused.discard(saved.peer)
        self._hear(saved, self._boot)
        self._channel.join(saved)

    async def run(self) -> None:
        """Give each session other keys now and then, until cancelled."""
        await rekey(lambda: self._sessions, self._begin_anew)

    def _begin_anew(self, peer: str) -> None:
        if (saved := self._sessions.get(peer)) is not None and peer not in self._paused:
            self._hear(saved, new_boot())

    def _hear(self, saved: SavedSession, boot: int) -> None:
        session = Session(saved.agreement, SealRole.PARENT, boot, saved.peer_boot)
        self._udp.add(saved.peer, session, saved.address)
        self._channel.exchange.boots[saved.peer] = boot

    def moved(self, peer: str, address: tuple[str, int], boot: int | None) -> None:
        """A child's process or address on record changed: our next process must know."""
        saved = replace(self._sessions[peer], address=address, peer_boot=boot)
        self._sessions[peer] = saved
        self._channel.join(saved)
        self._store.save_session(saved)

    def heed(self, changed: Iterable[EntityId]) -> None:
        """Of these entities some may not be declared any more, or again."""
        for entity in changed:
            if entity.kind == "node" and entity.name in self._sessions:
                self._look(entity.name)

    async def evict(self, peer: str) -> int | None:
        """End a node's session, whose incarnation that was; None where it has none.

        Neither its datagrams count from now on, nor its certificate, nor a token that was made for
        it: it has to be booted anew.

        Raises:
            HapteraError: that cannot be written, so it is undone by a restart.
        """
        saved = self._sessions.pop(peer, None)
        if saved is None:
            return None
        self._pause(peer)
        self._paused.discard(peer)
        self._channel.leave(saved)
        _log.warning("node %s put out: incarnation %d", peer, saved.agreement.incarnation)
        kept(await asyncio.wrap_future(self._store.drop_session(peer)))
        return saved.agreement.incarnation

    async def heed_above(
        self, sessions: Iterable[SavedSession], incarnations: Mapping[str, int]
    ) -> None:
        """End what a parent above has ended, which has these sessions, and has counted so far.

        Raises:
            HapteraError: that cannot be written.
        """
        own = {peer: one.agreement.incarnation for peer, one in self._sessions.items()}
        for peer in ended_above(own, sessions, incarnations):
            await self.evict(peer)

    def beyond(self, incarnations: Mapping[str, int]) -> list[SavedSession]:
        """Those that a parent above, which has counted so far, does not know of.

        A process that dies between making a session and telling of it leaves one such behind.
        """
        return [
            saved
            for peer, saved in sorted(self._sessions.items())
            if saved.agreement.incarnation > incarnations.get(peer, saved.agreement.incarnation)
        ]

    def _look(self, peer: str) -> None:
        agreement = self._sessions[peer].agreement
        if not self._declared(peer):
            self._later(self._goodbye_s, agreement, self._pause_for_long)
        elif peer in self._paused:
            self._paused.discard(peer)
            # With a key of its own: what was sealed before counts on from where it was.
            self._begin_anew(peer)
            _log.info("node %s is declared again: its session goes on", peer)

    def _later(self, in_s: float, agreement: object, then: Callable[[str], None]) -> None:
        """Go on with a session then, unless its node was declared again, or has booted, since."""

        def unless_back() -> None:
            for peer, saved in self._sessions.items():
                if saved.agreement is agreement and not self._declared(peer):
                    then(peer)
                    return

        asyncio.get_running_loop().call_later(in_s, unless_back)

    def _pause_for_long(self, peer: str) -> None:
        if peer in self._paused:
            return
        self._pause(peer)
        _log.info("node %s is not declared: its session pauses", peer)
        self._later(self._paused_s, self._sessions[peer].agreement, self._end)

    def _pause(self, peer: str) -> None:
        self._paused.add(peer)
        self._udp.remove(peer)
        self._channel.exchange.boots.pop(peer, None)

    def _end(self, peer: str) -> None:
        self._parting = asyncio.ensure_future(self.evict(peer))


def ended_above(
    own: Mapping[str, int], sessions: Iterable[SavedSession], incarnations: Mapping[str, int]
) -> list[str]:
    """The nodes whose sessions, of these incarnations here, a parent above has put out.

    The end of a session counts as an incarnation that nobody has a session of.
    """
    there = {one.peer: one.agreement.incarnation for one in sessions}
    return sorted(
        peer
        for peer, incarnation in own.items()
        if incarnations.get(peer, 0) > max(incarnation, there.get(peer, 0))
    )
