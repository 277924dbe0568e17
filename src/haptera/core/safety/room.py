"""Room in a parent's budgets for what agents disturb themselves: asked for by them, lent by it.

An agent that is cut off begins nothing disruptive, for nobody else knows what is disturbed
elsewhere. A parent takes its place back from an agent that is lost, once it can no longer be used.
"""

from collections.abc import Callable, Mapping
from typing import Final

from haptera.core.safety.budgets import Budgets, Where
from haptera.core.safety.gate import HEEDS_H
from haptera.core.safety.permits import Permits
from haptera.core.state.entity.verdict import Lacking
from haptera.core.state.limits import MS
from haptera.core.state.side import PARENT, Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import LOST_AFTER, Peer, Tier
from haptera.model.entity import EntityId
from haptera.model.messages import Ask, Permit, RoomAsk

ROOM: Final = "room in the budget"


class RoomAsks:
    """On an agent: what it asks of its parent, from before a step until its outcome is known."""

    def __init__(
        self, side: Side, peer: Callable[[str], Peer | None], next_id: Callable[[], str]
    ) -> None:
        self._side = side
        self._peer = peer
        self._next_id = next_id
        self._asks: dict[EntityId, RoomAsk] = {}
        self._changed = False

    def lacking(self, entity: EntityId, late_ms: int, now: int) -> Lacking | None:
        """What the parent has against a step now; asks it where that has not been done."""
        if entity not in self._asks:
            self._put(RoomAsk(self._next_id(), entity, late_ms))
        ask = self._asks[entity]
        parent = self._peer(PARENT)
        if parent is None or not parent.fresh(now, self._side.hello_ns):
            text = "the parent is silent, and nobody else knows what is disturbed elsewhere"
            return Lacking(text, "the parent, to be heard")
        said = next((one for one in parent.permits if one.id == ask.id), None)
        if said is None:
            return Lacking("the parent is asked for room in its budgets", ROOM)
        return None if said.granted else Lacking(said.text, ROOM)

    def begins(self, entity: EntityId) -> None:
        """Its step is called."""
        ask = self._asks[entity]
        self._put(RoomAsk(ask.id, entity, ask.late_ms, begun=True))

    def takes_up(self, id_: str, entity: EntityId, late_ms: int) -> None:
        """Its step may have begun in an earlier process."""
        self._put(RoomAsk(id_, entity, late_ms, begun=True))

    def leave(self, entity: EntityId) -> None:
        """Nothing disruptive is under way on it, or meant."""
        if self._asks.pop(entity, None) is not None:
            self._changed = True

    def standing(self) -> tuple[RoomAsk, ...]:
        """All that stand, oldest first."""
        return tuple(self._asks.values())

    def entities(self) -> tuple[EntityId, ...]:
        return tuple(self._asks)

    def take_changed(self) -> bool:
        """Whether something else is asked than when this was last asked."""
        changed, self._changed = self._changed, False
        return changed

    def _put(self, ask: RoomAsk) -> None:
        self._asks[ask.entity] = ask
        self._changed = True


class RoomLoans:
    """On a parent: a place in its budgets for each step that an agent says it means, or has begun.

    It is lent once the gates at the parent permit it too: a batch system drains the node first.
    Places are not durable. So a parent that was just started lends nothing before what an earlier
    process lent is either told of, or over.
    """

    def __init__(
        self,
        side: Side,
        timers: Timers,
        budgets: Budgets,
        where: Callable[[EntityId], Where],
        peer: Callable[[str], Peer | None],
        permits: Permits,
    ) -> None:
        self._side = side
        self._timers = timers
        self._permits = permits
        self._budgets = budgets
        self._where = where
        self._peer = peer
        self._quiet_until = self._over_at = 0
        self._untold: dict[str, int] = {}
        # By node: what is said to each ask; None where it has its place.
        self._said: dict[str, dict[RoomAsk, str | None]] = {}
        self._changed: dict[str, None] = {}

    def begin(self, incarnations: Mapping[str, int], late_ms: int, now: int) -> None:
        """An earlier process may have lent room to these nodes, for steps that take so long."""
        self._untold = dict(incarnations)
        self._quiet_until = now + HEEDS_H * self._side.hello_ns
        self._over_at = self._quiet_until + late_ms * MS

    def tend(self, turn: Turn, node: str) -> None:
        """Lend what this node's agent asks for and there is room for; take back what it leaves."""
        before = self._said.pop(node, {})
        held = {one.entity for one, text in before.items() if text is None}
        asks = [one for one in self._asked(node) if self._stands(node, one, turn.now, held)]
        for entity in {one.entity for one in before} - {one.entity for one in asks}:
            self._permits.put_theirs(turn, entity, None)
            self._budgets.leave(turn, entity)
        if asks:
            self._said[node] = {one: self._lend(turn, one, before) for one in asks}
            self._timers.set(("room", node), turn.now + self._side.hello_ns)
        if before != self._said.get(node, {}):
            self._changed[node] = None

    def asked(self, entity: EntityId) -> bool:
        """Whether its node's agent asks for room for it, and may have some."""
        said = self._said.get(entity.node or "", {})
        return any(one.entity == entity for one in said)

    def permits(self, node: str) -> tuple[Permit, ...]:
        """What is said to a node's agent: nothing, once it is lost."""
        peer = self._peer(node)
        if peer is None or peer.tier is Tier.LOST:
            return ()
        said = self._said.get(node, {})
        return tuple(Permit(one.id, text is None, text or "") for one, text in said.items())

    def take_changed(self) -> tuple[str, ...]:
        """The nodes to which something else is said than when this was last asked."""
        nodes, self._changed = tuple(self._changed), {}
        return nodes

    def _asked(self, node: str) -> tuple[RoomAsk, ...]:
        peer = self._peer(node)
        return () if peer is None else peer.room_asks

    def _stands(self, node: str, ask: RoomAsk, now: int, held: set[EntityId]) -> bool:
        """Whether it counts; of an agent that is lost, as long as its step may take effect.

        It may begin for a while on what it last heard, and we may not hear that it has.
        """
        peer = self._peer(node)
        assert peer is not None
        if peer.tier is not Tier.LOST:
            return True
        heeds_ns = HEEDS_H * self._side.hello_ns + LOST_AFTER * self._side.hello_ns // 10
        return ask.entity in held and now < peer.silent_since + heeds_ns + ask.late_ms * MS

    def _lend(self, turn: Turn, ask: RoomAsk, before: Mapping[RoomAsk, str | None]) -> str | None:
        """None where it has its place by now, else why not."""
        where = self._where(ask.entity)
        if not ask.begun:
            full = self._unsure(turn.now) or self._budgets.hold(ask.entity, where, turn.now)
            if full is None:
                return self._barred(turn, ask)
            self._permits.put_theirs(turn, ask.entity, None)
            return full
        if ask not in before:
            self._budgets.take(ask.entity, where)
            self._budgets.begin(ask.entity, where, turn.now)
            self._ask_gates(turn, ask)
        return None

    def _ask_gates(self, turn: Turn, ask: RoomAsk) -> None:
        self._permits.put_theirs(turn, ask.entity, Ask(ask.id, "", ask.late_ms))

    def _barred(self, turn: Turn, ask: RoomAsk) -> str | None:
        """What the gates have against it; while one refuses, the place is others'."""
        self._ask_gates(turn, ask)
        lacking = self._permits.refuses(ask.entity)
        if lacking is None:
            return None
        if lacking.needs is None:
            self._budgets.leave(turn, ask.entity)
        return lacking.why

    def _unsure(self, now: int) -> str | None:
        """Whether somebody may use what an earlier process lent, of which we have not heard."""
        while self._untold:
            node, incarnation = next(iter(self._untold.items()))
            if not self._may_use(node, incarnation, now):
                del self._untold[node]
            else:
                return f"this parent was just started, and {node} has not said what it does"
        return None

    def _may_use(self, node: str, incarnation: int, now: int) -> bool:
        peer = self._peer(node)
        if peer is None or peer.incarnation != incarnation:
            return False
        told = peer.heard_at is not None and peer.heard_at >= self._quiet_until
        return not told and now < self._over_at
