"""A node whose agent is never heard: other parts come first, a few times, then it is left alone."""

from collections import Counter

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.sync.presence import BOOT_PATIENCE, BOOT_WITHIN_MS, BOOTING, HEAR
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Work, Write
from haptera.model.entity import node_id
from haptera.model.events import (
    Alive,
    Answered,
    Asked,
    Ended,
    Enrolled,
    Event,
    Ready,
    Ticked,
    Written,
)
from haptera.model.parts import Change, Context, Look, Manifest, Step
from haptera.model.walltime import span
from tests.core.scenario import row_of

NODE = node_id("n01")
LOOK = Look("bmc", "look", "node", "power", ("off", "on"), context=Context.PARENT, every_ms=60_000)
OFF = Step("bmc", "switch_off", "node", (Change("power", ("on",), "off"),), context=Context.PARENT)
BOOT = (Change("power", ("off",), "on"), Change("agent", ("*",), "up", expected=True))
ON = Step("bmc", "switch_on", "node", BOOT, context=Context.PARENT)
PATIENCE_S = BOOT_PATIENCE * BOOT_WITHIN_MS // 1000
VAIN = f"nothing heard from the agent for {span(1_000 * PATIENCE_S)}"


class Rig:
    """A parent of one machine that does as it is told, except that its agent never speaks."""

    def __init__(self, *steps: Step) -> None:
        desired = {name: Desired(to, "site") for name, to in (("power", "on"), ("agent", "up"))}
        entity = StoredEntity(NODE, {}, "site", desired, 1)
        catalog = Catalog(KINDS, [Manifest("bmc", "1", Context.PARENT, (LOOK,), steps)])
        side = Side(Context.PARENT, None, 0xA1, "boot", 5 * S)
        self.engine = Engine(side, catalog, Stored(7, 1, [entity], [], {}), 0, S)
        self.now, self.power = S, "on"
        self.began: list[tuple[int, str]] = []
        self._events: list[Event] = [Ready("bmc", 1, "1")]

    @property
    def row(self) -> EntityState:
        return row_of(self.engine, NODE)

    def happen(self, *events: Event) -> None:
        self._events += events

    def run(self, seconds: float) -> None:
        end = self.now + int(seconds * S)
        while self.now <= end:
            effects = self.engine.handle(self._events or [Ticked()], self.now)
            self._events = [event for one in effects for event in self._perform(one)]
            due = self.engine.deadline()
            soon = end + 1 if due is None else max(due, self.now + 1)
            self.now = self.now + MS if self._events else min(soon, end + 1)
        self.now = end

    def _perform(self, effect: Effect) -> list[Event]:
        match effect:
            case Write(ticket):
                return [Written(ticket, 2)]
            case Call(id, Work.LOOK):
                return [Answered(id, self.power, self.now)]
            case Call(id, Work.STEP, part=part):
                self.began.append((self.now // S, part))
                self.power = "off" if part == "switch_off" else "on"
                return [Ended(id)]
            case _:
                return []


def test_a_boot_that_is_heard_in_time_needs_nothing_else() -> None:
    rig = Rig(ON, OFF)
    rig.run(10)
    assert (rig.row.stance.condition, rig.row.stance.why) == (
        Condition.ACTING,
        "waits to hear from the agent",
    )

    rig.happen(Enrolled("n01", 1), Alive(("n01",), rig.now))
    rig.run(1)
    assert (rig.row.stance.condition, rig.began) == (Condition.CONVERGED, [])


def test_waiting_in_vain_lets_another_part_come_first() -> None:
    rig = Rig(ON, OFF)
    rig.run(BOOT_WITHIN_MS // 1000 + 1)
    unheard = f"nothing heard from the agent for {span(BOOT_WITHIN_MS)}"
    assert (rig.row.stance.condition, rig.row.stance.why) == (Condition.STUCK, unheard)
    rig.run(PATIENCE_S - BOOT_WITHIN_MS // 1000 - 3)
    assert rig.began == []

    rig.run(5)
    assert [part for _, part in rig.began] == ["switch_off", "switch_on"]
    assert (rig.row.stance.condition, rig.row.stance.why) == (
        Condition.ACTING,
        "waits to hear from the agent",
    )


def test_after_as_many_boots_as_its_policy_allows_the_node_is_left_alone() -> None:
    rig = Rig(ON, OFF)
    rig.run(3 * PATIENCE_S + 60)
    assert Counter(part for _, part in rig.began) == {"switch_off": 2, "switch_on": 2}
    assert rig.row.stance.condition is Condition.STUCK
    assert rig.row.stance.why == f"{VAIN}; given up after 3 attempts, for 30 min"

    rig.run(10 * 3600)
    rounds = 10 * 3600 * 1000 // (BOOTING.cool_down_ms + 2000 * PATIENCE_S) + 1
    assert 2 * (rounds - 1) <= Counter(part for _, part in rig.began)["switch_off"] <= 2 * rounds


def test_where_nothing_else_leads_there_it_stays_with_the_wait_and_hears_what_comes() -> None:
    rig = Rig(ON)
    rig.run(PATIENCE_S + 1)
    assert (rig.row.stance.condition, rig.row.stance.why, rig.began) == (Condition.STUCK, VAIN, [])

    rig.happen(Enrolled("n01", 1), Alive(("n01",), rig.now))
    rig.run(1)
    assert (rig.row.stance.condition, rig.row.attempts.failures) == (Condition.CONVERGED, {})


def test_a_person_has_it_waited_for_anew_though_it_was_given_up() -> None:
    rig = Rig(ON, OFF)
    rig.run(3 * PATIENCE_S + 60)
    before = len(rig.began)
    rig.happen(Asked(NODE))
    rig.run(PATIENCE_S + 5)

    assert len(rig.began) == before + 2
    assert rig.row.attempts.failures[HEAR.path] == 1
