"""Lists, requested where a digest differs though the latest version is held."""

from typing import Final

from haptera.core.state.limits import MS, RECALLED_MAX, S
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.merge import Incoming
from haptera.core.sync.peers import Peer, Tier
from haptera.model.effects import FetchList, Recall
from haptera.model.entity import EntityId
from haptera.model.events import Listed

# How long layers may differ before it is asked in what, and again once that was answered; and how
# long the answer may take.
LIST_AFTER_NS: Final = 500 * MS
LIST_AGAIN_NS: Final = 2 * S
LIST_WITHIN_NS: Final = 10 * S
# How often that is asked before all is sent again.
LISTS_MAX: Final = 3


class Lists:
    """Has the neighbour tell again what differs; all, where that cannot be found out.

    A datagram that was lost makes layers differ, too, for as long as it takes to be sent again:
    only what goes on to differ is asked about.
    """

    def __init__(self, timers: Timers, incoming: Incoming) -> None:
        self._timers = timers
        self._incoming = incoming

    def agree(self, peer: Peer) -> None:
        """The digests are the same."""
        peer.layers.lists = 0
        self.overtaken(peer)

    def overtaken(self, peer: Peer) -> None:
        """What the neighbour says is not of the version that is held: it says nothing of now."""
        peer.layers.differs = False
        self._timers.drop(("list", peer.name))

    def differ(self, turn: Turn, peer: Peer) -> None:
        """The version is the same, the digests are not."""
        if not peer.layers.differs:
            peer.layers.differs = True
            self._timers.set(("list", peer.name), turn.now + LIST_AFTER_NS)

    def ask(self, turn: Turn, peer: Peer) -> None:
        """They still differ, whatever was done about it: ask for a list, after some for all."""
        if not peer.layers.differs:
            return
        if peer.layers.lists >= LISTS_MAX:
            self._have_all(peer)
            return
        if peer.tier is not Tier.LOST:
            peer.layers.lists += 1
            turn.effects.append(FetchList(peer.name))
        self._timers.set(("list", peer.name), turn.now + LIST_WITHIN_NS)

    def handle(self, turn: Turn, peer: Peer, listed: Listed) -> None:
        """A list is there, or cannot be had; one of another epoch or process says nothing."""
        if not peer.layers.differs:
            return
        if listed.mark is None:
            self._have_all(peer)
            return
        self._timers.set(("list", peer.name), turn.now + LIST_AGAIN_NS)
        if (listed.boot, listed.mark.epoch) == (peer.boot, self._incoming.mark(peer.name).epoch):
            last, versions = listed.mark.version, listed.versions
            self._recall(turn, peer, self._incoming.reconcile(turn, peer.name, last, versions))

    def _recall(self, turn: Turn, peer: Peer, lacking: list[EntityId]) -> None:
        if len(lacking) > RECALLED_MAX:
            self._have_all(peer)
        elif lacking:
            turn.effects.append(Recall(peer.name, tuple(lacking)))

    def _have_all(self, peer: Peer) -> None:
        self.agree(peer)
        self._incoming.unconfirm(peer.name, self._incoming.mark(peer.name).epoch)
