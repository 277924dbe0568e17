"""Claims between neighbours: what this side asks of them, and what it grants them."""

from collections.abc import Callable, Mapping

from haptera.core.act.contradiction import NEWER_NS
from haptera.core.safety.budgets import Budgets, Where
from haptera.core.safety.gate import HEEDS_H
from haptera.core.safety.permits import Permits
from haptera.core.safety.room import LEVEL_H, Lender, RoomAsks, RoomLoans, Untold
from haptera.core.state.limits import MS
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.links import Spoken
from haptera.core.sync.neighbours import Neighbours
from haptera.model.entity import EntityId
from haptera.model.parts import Context


class ClaimExchange:
    """Permits are asked for downwards, room in budgets upwards; the answers go the other way.

    Each side says in all that it sends what it asks and what it grants, for as long as that stands.
    """

    def __init__(
        self,
        side: Side,
        timers: Timers,
        budgets: Budgets,
        where: Callable[[EntityId], Where],
        permits: Permits,
        near: Neighbours,
        next_id: Callable[[], str],
    ) -> None:
        self._side = side
        self._near = near
        self.permits = permits
        self.asks = RoomAsks(side, near.room_permits, next_id)
        self._untold = Untold()
        lender = Lender(side, timers, budgets, where, self.asks, self._untold)
        self.loans = RoomLoans(lender, near.peer, permits)
        self.subtrees = RoomLoans(lender, near.parent_below, None)
        self._granted = permits.gates.permits()

    def spoken(self, node: str) -> Spoken:
        """The asks and permits on the link about a node."""
        if self._side.node is None:
            return Spoken(self.permits.asks(node), permits=self.loans.permits(node))
        return Spoken(room_asks=self.asks.standing(), permits=self.permits.gates.permits())

    def tell(self, turn: Turn) -> None:
        """Neighbours hear of what changed before the turn ends."""
        granted, self._granted = self._granted, self.permits.gates.permits()
        self.asks.settle(turn.now)
        said = self.asks.take_changed() or granted != self._granted
        to = {*self.permits.take_changed(), *self.loans.take_changed()}
        self._near.tell(turn, to, said=said)

    def lived_on(self, node: str, at: int) -> bool:
        """True where the agent of a node, if none has enrolled since, lived past this time."""
        peer = self._near.peer(node)
        heard_at = None if peer is None else peer.heard_at
        return heard_at is not None and heard_at > at + NEWER_NS

    def heed(self, turn: Turn) -> None:
        """On an agent: do what the parent asks, or what its silence demands."""
        if (parent := self._near.parent) is not None:
            self.permits.gates.heed(turn, parent)

    def reconcile(self, turn: Turn, entity: EntityId) -> None:
        """Lend places for this entity to those who ask for them, now that no step is under way."""
        if self.loans.asked(entity):
            self.loans.reconcile(turn, str(entity.node))
        for parent in self.subtrees.askers(entity):
            self.subtrees.reconcile(turn, parent)

    def recall(
        self, incarnations: Mapping[str, int], late_ms: Callable[[Context], int], now: int
    ) -> None:
        """An earlier process may have lent room to these nodes' agents, and to parents below.

        It was for steps that take so long where they run, late effects included.
        """
        if self._side.node is not None:
            return
        quiet_until = now + HEEDS_H * self._side.hello_ns
        over_at = quiet_until + late_ms(Context.SELF) * MS
        self._untold.expect(incarnations, self._near.peer, quiet_until, over_at)
        levels = self._near.charge.levels()
        quiet_until += len(levels) * LEVEL_H * self._side.hello_ns
        over_at = quiet_until + max(map(late_ms, Context)) * MS
        directly = dict.fromkeys(sorted(levels[0])) if levels else {}
        self._untold.expect(directly, self._near.parent_below, quiet_until, over_at)

    def unsure(self, now: int) -> str | None:
        """The reason for which it is not known yet what is under way below."""
        return self._untold.why(now)
