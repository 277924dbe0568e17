"""Room in a parent's budgets for what is disturbed below it: asked for there, lent here.

Agents ask for what they disturb themselves, and parents below for all that they and their agents
do. Who is cut off begins nothing disruptive, for nobody else knows what is disturbed elsewhere. A
parent takes its place back from who is lost, once it can no longer be used.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from msgspec.structs import replace

from haptera.core.safety.budgets import BUDGET_HOUR_NS, OWN_AGENT, ROOM, Budgets, Where
from haptera.core.safety.gate import HEEDS_H
from haptera.core.safety.permits import Permits
from haptera.core.state.entity.decision import (
    ASSENT,
    Assent,
    Awaited,
    ClaimAnswer,
    Delay,
    Denial,
)
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.state.timers import Timers
from haptera.core.state.turn import Turn
from haptera.core.sync.peers import LOST_AFTER, Peer, Tier
from haptera.kinds.rules.budget import Per
from haptera.model.entity import EntityId
from haptera.model.messages import Ask, Permit, RoomAsk

# In H: for so long may a permit of the parent above be used below after that one was last heard:
# it is heeded for 2 H, and withdrawn within another.
LEVEL_H: Final = 3

Heard = Callable[[str], Peer | None]


class RoomAsks:
    """What this side asks of the parent above, from before a step until its outcome is known.

    A parent asks for its own steps and for those that it lends room to; the root asks nobody.
    `permits` tells what the parent above says now; None where it is silent.
    """

    def __init__(
        self,
        side: Side,
        permits: Callable[[int], tuple[Permit, ...] | None],
        next_id: Callable[[], str],
    ) -> None:
        self._side = side
        self._permits = permits
        self._next_id = next_id
        # In words: who is asked, and who says what is passed on.
        self._above = "the parent" if side.node is not None else "the parent above"
        self._asks: dict[EntityId, RoomAsk] = {}
        # The last of each entity that began and is over; and those that were harmless, until the
        # parent says nothing to them any more, so that it knows.
        self._over: dict[EntityId, RoomAsk] = {}
        self._harmless: dict[str, RoomAsk] = {}
        self._changed = False

    def claim(self, entity: EntityId, late_ms: int) -> None:
        """Ask the parent for room for a step, where that has not been done."""
        if entity not in self._asks and not self._side.is_root:
            self._put(self._next_id(), entity, late_ms)

    def answer(self, entity: EntityId, now: int) -> Assent | Delay:
        """The parent's answer to a step on this entity, as of now."""
        if self._side.is_root:
            return ASSENT
        ask = self._asks.get(entity)
        permits = self._permits(now)
        if permits is None:
            text = f"{self._above} is silent, and only it knows what is disrupted elsewhere"
            return Delay(text, f"{self._above}, to be heard", on=Awaited.ROOM)
        said = next((one for one in permits if ask is not None and one.id == ask.id), None)
        if said is None:
            text = f"{self._above} is asked for room in its budgets"
        elif said.granted:
            return ASSENT
        else:
            text = self._told(said.text)
        return Delay(text, ROOM, on=Awaited.ROOM)

    def begins(self, entity: EntityId) -> None:
        """Its step is called."""
        if (ask := self._asks.get(entity)) is not None and not ask.begun:
            self._asks[entity] = RoomAsk(ask.id, entity, ask.late_ms, begun=True)
            self._changed = True

    def takes_up(self, id_: str, entity: EntityId, late_ms: int) -> None:
        """Its step may have begun in an earlier process, or where nobody asked us for room."""
        if entity not in self._asks and not self._side.is_root:
            self._put(id_, entity, late_ms)
        self.begins(entity)

    def leave(self, entity: EntityId) -> None:
        """Nothing disruptive is under way on it, or meant."""
        if (ask := self._asks.pop(entity, None)) is not None:
            self._changed = True
            if ask.begun:
                self._over[entity] = ask

    def discount(self, entity: EntityId) -> None:
        """Its last step that began is over, and disturbed nobody: it counts in no hour."""
        if (ask := self._asks.get(entity)) is not None and ask.begun:
            self.leave(entity)
        if (ask := self._over.pop(entity, None)) is not None:
            self._harmless[ask.id] = replace(ask, harmless=True)
            self._changed = True

    def settle(self, now: int) -> None:
        """Keep saying what was harmless until the parent answers nothing to it any more."""
        if self._harmless and (permits := self._permits(now)) is not None:
            open_ = {one.id for one in permits}
            self._harmless = {id_: one for id_, one in self._harmless.items() if id_ in open_}

    def standing(self) -> tuple[RoomAsk, ...]:
        """All that stand, oldest first, and then those that were harmless."""
        return (*self._asks.values(), *self._harmless.values())

    def entities(self) -> tuple[EntityId, ...]:
        return tuple(self._asks)

    def holds(self, entity: EntityId) -> bool:
        """True where room is requested for this entity."""
        return entity in self._asks

    def lacks_permits(self, now: int) -> bool:
        """Whether anything is asked that the parent above has not granted."""
        granted = {one.id for one in self._permits(now) or () if one.granted}
        return any(one.id not in granted and not one.begun for one in self._asks.values())

    def take_changed(self) -> bool:
        """Whether something else is asked than when this was last asked."""
        changed, self._changed = self._changed, False
        return changed

    def _put(self, id_: str, entity: EntityId, late_ms: int) -> None:
        # Who asks us may go by what we said for a while after we are lost.
        level_ns = LEVEL_H * self._side.hello_ns if self._side.node is None else 0
        self._over.pop(entity, None)
        self._asks[entity] = RoomAsk(id_, entity, late_ms + level_ns // MS)
        self._changed = True

    def _told(self, text: str) -> str:
        """What the parent above says, once for all levels."""
        if self._side.node is not None or text.startswith("above: "):
            return text
        return f"above: {text}"


class Expected(NamedTuple):
    """Somebody who was lent room by an earlier process."""

    name: str
    incarnation: int | None
    heard: Heard
    quiet_until: int
    over_at: int

    def may_use(self, now: int) -> bool:
        """Whether it may still, as far as is known."""
        peer = self.heard(self.name)
        if self.incarnation is not None and (peer is None or peer.incarnation != self.incarnation):
            return False
        at = None if peer is None else peer.heard_at
        return (at is None or at < self.quiet_until) and now < self.over_at


class Untold:
    """Who may use what an earlier process lent, and has not said since what it does.

    Places are not durable. So a parent that was just started lends nothing before what an earlier
    process lent is either reported, or over.
    """

    def __init__(self) -> None:
        self._open: list[Expected] = []

    def expect(
        self, names: Mapping[str, int | None], heard: Heard, quiet_until: int, over_at: int
    ) -> None:
        """These, as `heard`, were lent room: those of an incarnation, or parents below (None).

        What they say counts from `quiet_until` on, and is not waited for longer than `over_at`.
        """
        self._open += [
            Expected(name, incarnation, heard, quiet_until, over_at)
            for name, incarnation in names.items()
        ]

    def why(self, now: int) -> str | None:
        """Whom that is waited for, in words."""
        while self._open:
            name = self._open[-1].name
            if self._open[-1].may_use(now):
                return f"this parent was just started, and {name} has not reported what it does"
            self._open.pop()
        return None


@dataclass(frozen=True, slots=True)
class Lender:
    """What a parent lends from: `where` tells in what an entity counts, `asks` all above."""

    side: Side
    timers: Timers
    budgets: Budgets
    where: Callable[[EntityId], Where]
    asks: RoomAsks
    untold: Untold


class RoomLoans:
    """On a parent: a place in its budgets for each step that those below mean, or have begun.

    To agents, as `permits` has it, it is lent once the gates at the parent permit it too: a batch
    system drains the node first. Parents below, without `permits`, have gates of their own.
    """

    def __init__(self, lender: Lender, heard: Heard, permits: Permits | None) -> None:
        self._lender = lender
        self._side, self._budgets = lender.side, lender.budgets
        self._heard = heard
        self._permits = permits
        # By who asks: what is said to each ask.
        self._said: dict[str, dict[RoomAsk, Permit]] = {}
        self._changed: dict[str, None] = {}
        # When each that began lately was counted, by who asked and its id.
        self._counted: dict[tuple[str, str], int] = {}

    def reconcile(self, turn: Turn, name: str) -> None:
        """Lend what this one asks for and there is room for; take back what it leaves."""
        before = self._said.pop(name, {})
        held = {one.entity for one, said in before.items() if said.granted}
        asks = []
        for one in self._asked(name):
            if one.harmless:
                self._discount(name, one)
            elif self._stands(name, one, turn.now, held):
                asks.append(one)
        for entity in {one.entity for one in before} - {one.entity for one in asks}:
            self._take_back(turn, name, entity)
        if asks:
            self._said[name] = {
                one: _permit(one, self._lend(turn, name, one, before.get(one))) for one in asks
            }
            key = "subtree" if self._permits is None else "room"
            self._lender.timers.set((key, name), turn.now + self._side.hello_ns)
        if before != self._said.get(name, {}):
            self._changed[name] = None

    def asked(self, entity: EntityId) -> bool:
        """Whether its node's agent asks for room for it, and may have some."""
        said = self._said.get(entity.node or "", {})
        return any(one.entity == entity for one in said)

    def askers(self, entity: EntityId) -> list[str]:
        """The parents below that ask for room for it."""
        return [name for name, said in self._said.items() if any(a.entity == entity for a in said)]

    def permits(self, name: str) -> tuple[Permit, ...]:
        """What is said to who asks: nothing, once it is lost."""
        peer = self._heard(name)
        if peer is None or peer.tier is Tier.LOST:
            return ()
        return tuple(self._said.get(name, {}).values())

    def take_changed(self) -> tuple[str, ...]:
        """Those to whom something else is said than when this was last asked."""
        names, self._changed = tuple(self._changed), {}
        return names

    def _asked(self, name: str) -> tuple[RoomAsk, ...]:
        peer = self._heard(name)
        return () if peer is None else peer.room_asks

    def _stands(self, name: str, ask: RoomAsk, now: int, held: set[EntityId]) -> bool:
        """Whether it counts; of who is lost, as long as its step may take effect.

        It may begin for a while on what it last heard, and we may not hear that it has.
        """
        peer = self._heard(name)
        assert peer is not None
        if peer.tier is not Tier.LOST:
            return True
        heeds_ns = HEEDS_H * self._side.hello_ns + LOST_AFTER * self._side.hello_ns // 10
        return ask.entity in held and now < peer.silent_since + heeds_ns + ask.late_ms * MS

    def _lend(self, turn: Turn, name: str, ask: RoomAsk, before: Permit | None) -> ClaimAnswer:
        """A grant where it has its place by now."""
        where = self._lender.where(ask.entity)
        if ask.begun:
            has_place = before is not None and before.granted
            return ASSENT if has_place else self._concede(turn, name, ask, where)
        place = self._place(turn, name, ask, where)
        if isinstance(place, Assent):
            return ASSENT if Per.SERVICE in where else self._permitted(turn, ask)
        if self._permits is not None:
            self._permits.put_theirs(turn, ask.entity, None)
        return place

    def _place(self, turn: Turn, name: str, ask: RoomAsk, where: Where) -> Assent | Delay:
        """A place here, and then above; or why there is none, and in how many minutes there is."""
        if (why := self._lender.untold.why(turn.now)) is not None:
            return Delay(why)
        here = self._budgets.hold(ask.entity, where, turn.now, self._by(name))
        if isinstance(here, Delay) and here.until is not None:
            return Delay(f"{here.why}: room in {-((turn.now - here.until) // (60 * S))} min")
        if isinstance(here, Delay):
            return here
        self._lender.asks.claim(ask.entity, ask.late_ms)
        return self._lender.asks.answer(ask.entity, turn.now)

    def _concede(self, turn: Turn, name: str, ask: RoomAsk, where: Where) -> Assent | Delay:
        """A step that has begun has its place, whatever the room.

        But a node has no more places than its own budget allows: a broken one might claim them all.
        """
        room = self._budgets.answer_of_node(ask.entity, where)
        if isinstance(room, Delay):
            return room
        self._budgets.grant(ask.entity, where, self._by(name))
        self._count(name, ask, where, turn.now)
        self._lender.asks.takes_up(ask.id, ask.entity, ask.late_ms)
        if Per.SERVICE not in where:
            self._ask_gates(turn, ask)
        return ASSENT

    def _count(self, name: str, ask: RoomAsk, where: Where, now: int) -> None:
        self._budgets.begin(ask.entity, where, now)
        lately = {one: at for one, at in self._counted.items() if at > now - BUDGET_HOUR_NS}
        self._counted = {**lately, (name, ask.id): now}

    def _discount(self, name: str, ask: RoomAsk) -> None:
        """Take back a step that has disturbed nobody: it counts in no hour, here and above."""
        at = self._counted.pop((name, ask.id), None)
        if at is not None:
            self._budgets.take_back(ask.entity, self._lender.where(ask.entity), at)
            self._lender.asks.discount(ask.entity)

    def _take_back(self, turn: Turn, name: str, entity: EntityId) -> None:
        if self._permits is not None:
            self._permits.put_theirs(turn, entity, None)
        self._budgets.leave(turn, entity, self._by(name))
        if not self._budgets.holds(entity):
            self._lender.asks.leave(entity)

    def _by(self, name: str) -> str:
        return name if self._permits is None else OWN_AGENT

    def _ask_gates(self, turn: Turn, ask: RoomAsk) -> None:
        if self._permits is not None:
            self._permits.put_theirs(turn, ask.entity, Ask(ask.id, "", ask.late_ms))

    def _permitted(self, turn: Turn, ask: RoomAsk) -> ClaimAnswer:
        """The gates' answer to it; while one refuses, the place is others'."""
        if self._permits is None:
            return ASSENT
        self._ask_gates(turn, ask)
        answer = self._permits.answer_theirs(ask.entity, turn.now)
        if isinstance(answer, Denial):
            self._budgets.leave(turn, ask.entity, OWN_AGENT)
            if not self._budgets.holds(ask.entity):
                self._lender.asks.leave(ask.entity)
        return answer


def _permit(ask: RoomAsk, answer: ClaimAnswer) -> Permit:
    if isinstance(answer, Assent):
        return Permit(ask.id, granted=True)
    return Permit(ask.id, granted=False, text=answer.why)
