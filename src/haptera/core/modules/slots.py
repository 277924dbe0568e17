"""Which looks and steps may call their module now, and which wait in line for a slot.

A module declares how many calls it takes at once, in all and for each of its devices. A look or
step that finds no slot waits in the line of its module, or of its device; its time limit begins
when it is called. Watches and gates take no slot. A line holds each part of an entity at most
once, so it is bounded by the entities there are.
"""

import heapq
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

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


# The time since when a caller waits, and a number that breaks ties.
Ticket = tuple[int, int]
Line = list[tuple[Ticket, SlotCaller]]


@dataclass(slots=True)
class SlotWaiter:
    """A caller in line: its ticket, and the device that it is for, if its module names these."""

    ticket: Ticket
    device: str | None


class Slots:
    """The slots of each module: taken by calls, granted to the first in line when given back.

    `manifest` tells the limits of a module. Who is granted a slot is among `take_woken`; it keeps
    the slot until it was decided on and did not take it.
    """

    def __init__(self, manifest: Callable[[str], Manifest | None]) -> None:
        self._manifest = manifest
        self._taken: dict[SlotCaller, str | None] = {}
        self._granted: dict[SlotCaller, SlotWaiter] = {}
        self._waiting: dict[SlotCaller, SlotWaiter] = {}
        # The tickets of those that cannot call yet for another reason.
        self._kept: dict[SlotCaller, Ticket] = {}
        # Of each entity, its callers that wait, or were granted a slot, or keep a ticket.
        self._of: dict[EntityId, set[SlotCaller]] = {}
        self._open: Counter[str] = Counter()
        self._busy: Counter[tuple[str, str]] = Counter()
        self._lines: dict[str, Line] = {}
        self._device_lines: dict[tuple[str, str], Line] = {}
        self._asked: set[SlotCaller] = set()
        self._woken: set[EntityId] = set()
        self._count = 0

    def take(self, caller: SlotCaller, device: str | None, since: int) -> bool:
        """Take a slot, or one that was granted; False where none is free: it waits in line."""
        self._asked.add(caller)
        if (granted := self._granted.pop(caller, None)) is not None:
            self._taken[caller] = granted.device
            self._leave(caller)
            return True
        if caller in self._waiting:
            return False
        ticket = self._kept.pop(caller, None)
        if self._has_room(caller.module, device):
            self._count_in(caller.module, device)
            self._taken[caller] = device
            self._leave(caller)
            return True
        if ticket is None:
            self._count += 1
            ticket = since, self._count
        self._of.setdefault(caller.entity, set()).add(caller)
        self._waiting[caller] = SlotWaiter(ticket, device)
        self._put(caller, self._waiting[caller])
        return False

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
        self._asked.add(caller)

    def give_back(self, caller: SlotCaller) -> None:
        """Its call is over, or was never made; nothing where it holds no slot."""
        if caller in self._taken:
            self._free(caller.module, self._taken.pop(caller))

    def settle(self, entity: EntityId) -> None:
        """The entity was decided on, or is gone: what it did not ask for waits no more."""
        asked, self._asked = self._asked, set()
        if entity in self._of:
            for caller in sorted(self._of[entity] - asked):
                self._drop(caller)

    def take_woken(self) -> set[EntityId]:
        """The entities that were granted a slot since this was last asked."""
        woken, self._woken = self._woken, set()
        return woken

    @property
    def has_woken(self) -> bool:
        return bool(self._woken)

    def why(self, module: str, device: str | None) -> str:
        """What a caller in line waits for."""
        if device is not None and self._busy[module, device] >= self._limits(module)[1]:
            return f"module {module} has {self._busy[module, device]} under way at {device}"
        return f"module {module} has {self._open[module]} calls under way"

    def relimit(self, module: str) -> None:
        """The module declares other limits: all in line come to where these put them."""
        self._lines.pop(module, None)
        for key in [key for key in self._device_lines if key[0] == module]:
            del self._device_lines[key]
        for caller, waiting in self._waiting.items():
            if caller.module == module:
                self._put(caller, waiting)
        self._grant(module)

    def open(self, module: str) -> int:
        """How many slots of a module are in use."""
        return self._open[module]

    def waiting(self, module: str) -> int:
        """How many callers wait for a slot of a module."""
        return sum(caller.module == module for caller in self._waiting)

    def check(self) -> None:
        """Assert what must hold between any two calls."""
        granted = {caller: one.device for caller, one in self._granted.items()}
        used = [*self._taken.items(), *granted.items()]
        assert Counter(caller.module for caller, _ in used) == +self._open
        devices = Counter((one.module, device) for one, device in used if device is not None)
        assert devices == +self._busy
        in_line = [*self._granted, *self._waiting, *self._kept]
        assert len({*in_line, *self._taken}) == len(in_line) + len(self._taken)
        assert {one for some in self._of.values() for one in some} == {*in_line}
        for caller, one in self._waiting.items():
            assert not self._has_room(caller.module, one.device), caller

    def _limits(self, module: str) -> tuple[int, int]:
        manifest = self._manifest(module)
        assert manifest is not None, module
        return manifest.at_once, manifest.per_device

    def _has_room(self, module: str, device: str | None) -> bool:
        at_once, per_device = self._limits(module)
        if device is not None and self._busy[module, device] >= per_device:
            return False
        return self._open[module] < at_once

    def _put(self, caller: SlotCaller, waiting: SlotWaiter) -> None:
        """Into its device's line where that is busy, else into its module's."""
        device, (_, per_device) = waiting.device, self._limits(caller.module)
        if device is not None and self._busy[caller.module, device] >= per_device:
            line = self._device_lines.setdefault((caller.module, device), [])
        else:
            line = self._lines.setdefault(caller.module, [])
        heapq.heappush(line, (waiting.ticket, caller))

    def _count_in(self, module: str, device: str | None) -> None:
        self._open[module] += 1
        if device is not None:
            self._busy[module, device] += 1

    def _free(self, module: str, device: str | None) -> None:
        """One slot less is in use: whoever is first may have it."""
        self._open[module] -= 1
        if device is not None:
            self._busy[module, device] -= 1
            if not self._busy[module, device]:
                del self._busy[module, device]
            self._call_up(module, device)
        self._grant(module)

    def _call_up(self, module: str, device: str) -> None:
        """The first in line for a device that has room goes over to the line of its module."""
        line = self._device_lines.get((module, device))
        if line is None:
            return
        caller = self._first(line)
        if caller is not None:
            heapq.heappush(self._lines.setdefault(module, []), heapq.heappop(line))
        if not line:
            del self._device_lines[module, device]

    def _grant(self, module: str) -> None:
        """Give what slots there are to the first in line."""
        line = self._lines.get(module)
        while line and self._has_room(module, None) and (caller := self._first(line)) is not None:
            heapq.heappop(line)
            waiting = self._waiting[caller]
            if self._has_room(module, waiting.device):
                self._granted[caller] = self._waiting.pop(caller)
                self._count_in(module, waiting.device)
                self._woken.add(caller.entity)
            else:
                self._put(caller, waiting)
        if not line:
            self._lines.pop(module, None)

    def _first(self, line: Line) -> SlotCaller | None:
        """Who is first, the line cleared of those that have left it."""
        while line:
            ticket, caller = line[0]
            waiting = self._waiting.get(caller)
            if waiting is not None and waiting.ticket == ticket:
                return caller
            heapq.heappop(line)
        return None

    def _drop(self, caller: SlotCaller) -> None:
        self._leave(caller)
        self._kept.pop(caller, None)
        if (granted := self._granted.pop(caller, None)) is not None:
            self._free(caller.module, granted.device)
        elif (waiting := self._waiting.pop(caller, None)) is not None and waiting.device:
            # It may have been called up when its device had room: let the next one come.
            self._call_up(caller.module, waiting.device)
            self._grant(caller.module)

    def _leave(self, caller: SlotCaller) -> None:
        mine = self._of.get(caller.entity, set())
        mine.discard(caller)
        if not mine:
            self._of.pop(caller.entity, None)
