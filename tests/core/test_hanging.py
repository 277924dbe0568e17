"""A fleet at a module with few slots: what hangs does not starve what answers."""

import heapq
from dataclasses import replace

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.modules.slots import SHARES, Reliability
from haptera.core.state.limits import MS, S
from haptera.kinds import KINDS
from haptera.kinds.node import JOBS_NONE
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Ended, Event, Failed, Ready, Ticked, Written
from tests.core.scenario import ATTRIBUTES, BMC, LOOK, ON, SIDE, row_of

AT_ONCE = 16
# Looks in line for all that hang take longer than a reading lives.
WITHIN_MS = 20_000


class Fleet:
    """Nodes to be switched on, in virtual time; those that are `hung` answer nothing at all.

    All others answer each look and step after `takes_ms`.
    """

    def __init__(self, nodes: int, *, hung_each: int | None = None, takes_ms: int = 1) -> None:
        ids = [node_id(f"n{number:03}") for number in range(nodes)]
        self.hung = {*ids[::hung_each]} if hung_each is not None else set()
        self.healthy = {*ids} - self.hung
        self.stepped = list[EntityId]()
        self._on = set[EntityId]()
        self._takes_ns = takes_ms * MS
        self._now = S
        self._due: list[tuple[int, int, Event]] = [(S, 0, Ready("bmc"))]
        self._count = 0
        self._failing = dict[int, EntityId]()
        self.failing_at_once = 0
        look = replace(LOOK, every_ms=5_000, within_ms=WITHIN_MS)
        manifest = replace(
            BMC, looks=(look,), steps=(replace(ON, within_ms=WITHIN_MS),), at_once=AT_ONCE
        )
        attributes = {**ATTRIBUTES, "has_agent": "never", "jobs": JOBS_NONE}
        desired = {"power": Desired("on", "site")}
        stored = [StoredEntity(one, attributes, "site", desired, 1) for one in ids]
        self.engine = Engine(
            SIDE, Catalog(KINDS, [manifest]), Stored(1, 1, stored, [], {}), 0, S
        )  # fmt: skip

    def run(self, for_s: int) -> None:
        """Let so much time pass."""
        end = self._now + for_s * S
        while (at := self._next_at()) <= end:
            self._now = max(self._now, at)
            events = list[Event]()
            while self._due and self._due[0][0] <= self._now:
                events.append(heapq.heappop(self._due)[2])
            self._turn(events or [Ticked()])
        self._now = end

    def converged(self) -> set[EntityId]:
        condition = Condition.CONVERGED
        return {row.id for row in self.engine.table if row.stance.condition is condition} - {MODULE}

    def _next_at(self) -> int:
        deadline = self.engine.deadline()
        due_at = self._due[0][0] if self._due else None
        return min(at for at in (deadline, due_at) if at is not None)

    def _turn(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Failed):
                self._failing.pop(event.call, None)
        for effect in self.engine.handle(events, self._now):
            if isinstance(effect, Write):
                self._later(0, Written(effect.ticket, self._count))
            elif isinstance(effect, Call):
                self._call(effect)

    def _call(self, call: Call) -> None:
        row = row_of(self.engine, call.entity)
        if call.entity in self.hung:
            if row.attempts.failures:
                self._failing[call.id] = call.entity
                self.failing_at_once = max(self.failing_at_once, len(self._failing))
            self._later(WITHIN_MS * MS, Failed(call.id, "no answer within 20 s"))
        elif call.work is Work.STEP:
            self.stepped.append(call.entity)
            self._on.add(call.entity)
            self._later(self._takes_ns, Ended(call.id))
        else:
            power = "on" if call.entity in self._on else "off"
            self._later(self._takes_ns, Answered(call.id, power, self._now))

    def _later(self, after_ns: int, event: Event) -> None:
        self._count += 1
        heapq.heappush(self._due, (self._now + after_ns, self._count, event))


MODULE = EntityId("module", "bmc", None)


def test_all_that_answer_converge_at_16_places_and_stay_so_though_one_in_five_hangs() -> None:
    fleet = Fleet(250, hung_each=5)
    # Each that hangs is called once, with the share of those that were never called.
    first_s = len(fleet.hung) * WITHIN_MS // (1_000 * int(AT_ONCE * SHARES[Reliability.NEW]))
    fleet.run(first_s + 20)
    assert fleet.converged() == fleet.healthy
    for _ in range(20):
        fleet.run(10)
        assert fleet.converged() == fleet.healthy
    assert sorted(fleet.stepped) == sorted(fleet.healthy)


def test_what_fails_holds_its_share_of_the_places_at_most() -> None:
    fleet = Fleet(250, hung_each=5)
    fleet.run(600)
    assert fleet.failing_at_once == int(AT_ONCE * SHARES[Reliability.FAILING])


def test_where_nobody_answers_all_places_are_used() -> None:
    fleet = Fleet(50, hung_each=1)
    fleet.run(600)
    assert fleet.failing_at_once == AT_ONCE


def test_steps_that_wait_for_longer_than_their_readings_live_keep_their_places() -> None:
    # To look at all of them once takes more than twice as long as a reading lives.
    fleet = Fleet(250, takes_ms=5_000)
    looks_and_steps_s = 3 * 250 * 5 // AT_ONCE
    fleet.run(looks_and_steps_s + 60)
    assert sorted(fleet.stepped) == sorted(fleet.healthy)
