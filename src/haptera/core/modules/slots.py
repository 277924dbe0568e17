"""Slots of modules, and the lines of looks and steps that wait for one.

A module declares how many calls it takes at once, in all and for each of its devices. A look or
step that finds no slot waits in the line of its module, or of its device; its time limit begins
when it is called. Watches and gates take no slot. A line holds each part of an entity at most
once, so it is bounded by the entities there are. Entities that may hang have a share of the slots
only, so however many these are, the others are called.
"""

import heapq
from collections import Counter
from collections.abc import Callable, Collection
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, NamedTuple

from haptera.core.state.entity.decision import ASSENT, Assent, Delay
from haptera.core.state.limits import S
from haptera.model.entity import EntityId
from haptera.model.parts import Manifest

# Calls for what is not as desired wait as if they had been asked for so much earlier.
HEAD_START_NS: Final = 10 * S


class SlotCaller(NamedTuple):
    """One part on one entity, that takes at most one slot of its module."""

    module: str
    entity: EntityId
    path: str


class Reliability(IntEnum):
    """How likely an entity answers its module: the last call failed, none was made, or it did."""

    FAILING = 0
    NEW = 1
    ANSWERING = 2


# The share of a module's slots that entities of this reliability and below hold at most, though
# one slot each: what hangs is known to do so only when its first call is over.
SHARES: Final = {Reliability.FAILING: 0.25, Reliability.NEW: 0.75, Reliability.ANSWERING: 1.0}
# In whose shares a slot counts: in its own and in those above.
_COUNTED_WITH: Final = {one: tuple(Reliability)[one:] for one in Reliability}


class SlotClaim(NamedTuple):
    """The request of a caller: a slot of this device, for an entity of this reliability.

    It `lasts` if its place in line is kept when it is not claimed, until its entity is at rest.
    """

    device: str | None
    reliability: Reliability = Reliability.ANSWERING
    lasts: bool = False


# The time since when a caller waits, and a number that breaks ties.
Ticket = tuple[int, int]
Line = list[tuple[Ticket, SlotCaller]]


@dataclass(slots=True)
class SlotWaiter:
    """A caller in line."""

    ticket: Ticket
    claim: SlotClaim


class LineKey(NamedTuple):
    """The line of a module, or of one of its devices, for entities that are as reliable."""

    module: str
    device: str | None
    reliability: Reliability


class Slots:
    """The slots of each module: taken by calls, granted to the first in line when given back.

    `manifest` tells the limits of a module. Who is granted a slot is among `take_woken`; it keeps
    the slot until it was decided on and did not take it.
    """

    def __init__(self, manifest: Callable[[str], Manifest | None]) -> None:
        self._manifest = manifest
        self._taken: dict[SlotCaller, SlotClaim] = {}
        self._granted: dict[SlotCaller, SlotWaiter] = {}
        self._waiting: dict[SlotCaller, SlotWaiter] = {}
        # The tickets of those that cannot call yet for another reason.
        self._kept: dict[SlotCaller, Ticket] = {}
        # Of each entity, its callers that wait, or were granted a slot, or keep a ticket.
        self._of: dict[EntityId, set[SlotCaller]] = {}
        # Slots in use by entities of this reliability or below.
        self._open: Counter[tuple[str, Reliability]] = Counter()
        self._busy: Counter[tuple[str, str]] = Counter()
        # Modules that answer some entity: until one does, there is nobody to leave slots to.
        self._answering: set[str] = set()
        self._lines: dict[LineKey, Line] = {}
        self._woken: set[EntityId] = set()
        self._count = 0

    def acquire(self, caller: SlotCaller, claim: SlotClaim, since: int) -> bool:
        """Take a slot, or one that was granted; False where none is free: it waits in line."""
        if claim.reliability is Reliability.ANSWERING:
            self._answering.add(caller.module)
        if (granted := self._granted.pop(caller, None)) is not None:
            self._taken[caller] = granted.claim
            self._leave(caller)
            return True
        if caller in self._waiting:
            return False
        ticket = self._kept.pop(caller, None)
        if self._has_room(caller.module, claim):
            self._count_in(caller.module, claim)
            self._taken[caller] = claim
            self._leave(caller)
            return True
        if ticket is None:
            self._count += 1
            ticket = since, self._count
        self._of.setdefault(caller.entity, set()).add(caller)
        self._waiting[caller] = SlotWaiter(ticket, claim)
        self._put(caller, self._waiting[caller])
        return False

    def answer(self, caller: SlotCaller, claim: SlotClaim) -> Assent | Delay:
        """A grant where `acquire` would give it a slot now."""
        free = caller not in self._waiting and self._has_room(caller.module, claim)
        if free or caller in self._granted:
            return ASSENT
        return Delay(self._why(caller.module, claim))

    def is_queued(self, caller: SlotCaller) -> bool:
        """Whether it waits in line, or was granted a slot that it has not taken yet."""
        return caller in self._waiting or caller in self._granted

    def stay(self, caller: SlotCaller) -> None:
        """It cannot call yet for another reason: it keeps its place in line, but takes no slot."""
        had = self._granted.get(caller) or self._waiting.get(caller)
        if had is not None:
            self._drop(caller)
            self._kept[caller] = had.ticket
            self._of.setdefault(caller.entity, set()).add(caller)

    def give_back(self, caller: SlotCaller) -> None:
        """Its call is over, or was never made; nothing where it holds no slot."""
        if caller in self._taken:
            self._free(caller.module, self._taken.pop(caller))

    def reconcile(self, entity: EntityId, claimed: Collection[str]) -> None:
        """The entity claims slots for the parts of these paths, and for no others.

        What it does not claim any more leaves the line, or keeps its place there if that lasts.
        """
        for caller in self._unclaimed(entity, claimed):
            waiting = self._granted.get(caller) or self._waiting.get(caller)
            if waiting is not None and waiting.claim.lasts:
                self.stay(caller)
            elif waiting is not None:
                self._drop(caller)

    def rest(self, entity: EntityId, claimed: Collection[str] = ()) -> None:
        """As `reconcile`, where the entity is at rest, or is gone: no place in line lasts."""
        for caller in self._unclaimed(entity, claimed):
            self._drop(caller)

    def take_woken(self) -> set[EntityId]:
        """The entities that were granted a slot since this was last asked."""
        woken, self._woken = self._woken, set()
        return woken

    @property
    def has_woken(self) -> bool:
        return bool(self._woken)

    def relimit(self, module: str) -> None:
        """The module declares other limits: all in line come to where these put them."""
        for key in [key for key in self._lines if key.module == module]:
            del self._lines[key]
        for caller, waiting in self._waiting.items():
            if caller.module == module:
                self._put(caller, waiting)
        self._grant(module)

    def open(self, module: str) -> int:
        """How many slots of a module are in use."""
        return self._open[module, Reliability.ANSWERING]

    def waiting(self, module: str) -> int:
        """How many callers wait for a slot of a module."""
        return sum(caller.module == module for caller in self._waiting)

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        granted = {caller: one.claim for caller, one in self._granted.items()}
        used = [
            (caller.module, claim) for caller, claim in [*self._taken.items(), *granted.items()]
        ]
        held = [(name, one) for name, claim in used for one in _COUNTED_WITH[claim.reliability]]
        assert Counter(held) == +self._open
        devices = Counter((name, one.device) for name, one in used if one.device is not None)
        assert devices == +self._busy
        in_line = [*self._granted, *self._waiting, *self._kept]
        assert len({*in_line, *self._taken}) == len(in_line) + len(self._taken)
        assert {one for some in self._of.values() for one in some} == {*in_line}
        for caller, one in self._waiting.items():
            assert not self._has_room(caller.module, one.claim), caller

    def _why(self, module: str, claim: SlotClaim) -> str:
        """The reason why a caller in line waits."""
        if claim.device is not None and not self._is_idle(module, claim.device):
            busy = self._busy[module, claim.device]
            return f"module {module} has {busy} under way at {claim.device}"
        return f"module {module} has {self.open(module)} calls under way"

    def _limits(self, module: str) -> tuple[int, int]:
        manifest = self._manifest(module)
        assert manifest is not None, module
        return manifest.at_once, manifest.per_device

    def _is_idle(self, module: str, device: str | None) -> bool:
        return device is None or self._busy[module, device] < self._limits(module)[1]

    def _has_room(self, module: str, claim: SlotClaim) -> bool:
        if not self._is_idle(module, claim.device):
            return False
        at_once, _ = self._limits(module)
        if module not in self._answering and claim.reliability is not Reliability.ANSWERING:
            return self.open(module) < at_once
        return all(
            self._open[module, one] < max(1, int(SHARES[one] * at_once))
            for one in _COUNTED_WITH[claim.reliability]
        )

    def _put(self, caller: SlotCaller, waiting: SlotWaiter) -> None:
        """Into its device's line where that is busy, else into its module's."""
        claim = waiting.claim
        device = None if self._is_idle(caller.module, claim.device) else claim.device
        line = self._lines.setdefault(LineKey(caller.module, device, claim.reliability), [])
        heapq.heappush(line, (waiting.ticket, caller))

    def _count_in(self, module: str, claim: SlotClaim) -> None:
        for one in _COUNTED_WITH[claim.reliability]:
            self._open[module, one] += 1
        if claim.device is not None:
            self._busy[module, claim.device] += 1

    def _free(self, module: str, claim: SlotClaim) -> None:
        """One slot less is in use: the first in line may have it."""
        for one in _COUNTED_WITH[claim.reliability]:
            self._open[module, one] -= 1
        if claim.device is not None:
            self._busy[module, claim.device] -= 1
            if not self._busy[module, claim.device]:
                del self._busy[module, claim.device]
            self._call_up(module, claim.device)
        self._grant(module)

    def _call_up(self, module: str, device: str) -> None:
        """The first in each line for a device that has room goes over to that of its module."""
        for reliability in Reliability:
            key = LineKey(module, device, reliability)
            if (first := self._first(key)) is not None:
                heapq.heappop(self._lines[key])
                self._first(key)
                heapq.heappush(self._lines.setdefault(key._replace(device=None), []), first)

    def _grant(self, module: str) -> None:
        """Give what slots there are to the first in line who may have one."""
        while (key := self._next(module)) is not None:
            _, caller = heapq.heappop(self._lines[key])
            waiting = self._waiting[caller]
            if self._has_room(module, waiting.claim):
                self._granted[caller] = self._waiting.pop(caller)
                self._count_in(module, waiting.claim)
                self._woken.add(caller.entity)
            else:
                self._put(caller, waiting)

    def _next(self, module: str) -> LineKey | None:
        """The line of a module whose first waits for longest, of those whose share has room."""
        keys = [LineKey(module, None, reliability) for reliability in Reliability]
        firsts = [
            (first, key)
            for key in keys
            if self._has_room(module, SlotClaim(None, key.reliability))
            and (first := self._first(key)) is not None
        ]
        return min(firsts)[1] if firsts else None

    def _first(self, key: LineKey) -> tuple[Ticket, SlotCaller] | None:
        """Who is first, the line cleared of those that have left it, and dropped where empty."""
        line = self._lines.get(key, [])
        while line:
            ticket, caller = line[0]
            waiting = self._waiting.get(caller)
            if waiting is not None and waiting.ticket == ticket:
                return line[0]
            heapq.heappop(line)
        self._lines.pop(key, None)
        return None

    def _unclaimed(self, entity: EntityId, claimed: Collection[str]) -> list[SlotCaller]:
        return sorted(one for one in self._of.get(entity, ()) if one.path not in claimed)

    def _drop(self, caller: SlotCaller) -> None:
        self._leave(caller)
        self._kept.pop(caller, None)
        if (granted := self._granted.pop(caller, None)) is not None:
            self._free(caller.module, granted.claim)
        elif (waiting := self._waiting.pop(caller, None)) is not None and waiting.claim.device:
            # It may have been called up when its device had room: let the next one come.
            self._call_up(caller.module, waiting.claim.device)
            self._grant(caller.module)

    def _leave(self, caller: SlotCaller) -> None:
        mine = self._of.get(caller.entity, set())
        mine.discard(caller)
        if not mine:
            self._of.pop(caller.entity, None)
