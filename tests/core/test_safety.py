"""What a disruptive step waits for: brake, budgets, fresh readings, its node's permit."""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import pytest
from msgspec.structs import replace

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.safety.brake import BRAKE_NS
from haptera.core.safety.flaps import FLAPS_MAX, FLAPS_WITHIN_NS, STEADY_NS
from haptera.core.safety.permits import PERMIT_AGAIN_NS
from haptera.core.state.limits import MS, OVERRIDE_NS, S
from haptera.core.state.side import Side
from haptera.core.views.query import view
from haptera.core.views.unblock import unblock
from haptera.kinds import KINDS
from haptera.model.answers.plan import PlanFreeze
from haptera.model.answers.views import BrakeView, Condition
from haptera.model.changes import (
    CloseIntent,
    Declare,
    Desired,
    Disruption,
    SetDesired,
    Stored,
    StoredEntity,
)
from haptera.model.effects import Call, Effect, PlanReply, Start, Tell, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Answered,
    Considered,
    Ended,
    Enrolled,
    Event,
    Failed,
    Heard,
    Proposed,
    Ready,
    Released,
    Ticked,
    Written,
)
from haptera.model.intent import Intent
from haptera.model.messages import Ask, Mark, Message, ObservedUpdate, Permit, RoomAsk, SeenValue
from haptera.model.parts import Change, Context, Look, Manifest, Requirement, Step
from tests.core.scenario import row_of

H = 5 * S
PARENT = Context.PARENT
WHERE = (Requirement("platform", ("test",)),)
LOOK = Look("bmc", "look", "node", "power", ("off", "on"), WHERE, context=PARENT, every_ms=60_000)
OFF = Step(
    "bmc",
    "switch_off",
    "node",
    (Change("power", ("on",), "off"),),
    WHERE,
    context=PARENT,
    within_ms=2000,
    late_ms=3000,
    disruptive=True,
)
BMC = Manifest("bmc", "1", PARENT, (LOOK,), (OFF,))
BUDGET = EntityId("budget", "few", None)
SIDE = Side(PARENT, None, 0xA1, "boot", H)


@dataclass
class Rig:
    """A parent whose nodes are on and should be off; looks are answered, writes are at once."""

    nodes: tuple[str, ...]
    desired: tuple[str, ...] = ()
    attributes: dict[str, str] = field(default_factory=dict)
    disruptions: tuple[Disruption, ...] = ()
    intents: tuple[Intent, ...] = ()
    others: tuple[StoredEntity, ...] = ()
    silent: set[str] = field(default_factory=set)
    refusal: str | None = None
    answers: bool = True
    modules: tuple[Manifest, ...] = (BMC,)
    # What looks by these names find; None: they fail.
    finds: dict[str, str | None] = field(default_factory=dict)
    # What all agents observe of their nodes.
    observed: dict[str, SeenValue] = field(default_factory=dict)
    # What a gate at the parent says when it is asked to hold; None: it holds.
    gate: Failed | None = None
    enrolled: bool = True
    # What all agents mean to do themselves, and by node what they are told of it.
    room_asks: tuple[RoomAsk, ...] = ()
    lent: dict[str, tuple[Permit, ...]] = field(default_factory=dict)
    # What a device says to each command; None: it carries it out.
    refuses: str | None = None
    now: int = S

    def __post_init__(self) -> None:
        off = {"power": Desired("off", "site")}
        entities = [
            StoredEntity(
                node_id(name),
                {"platform": "test", **self.attributes},
                "site",
                off if name in (self.desired or self.nodes) else {},
                3,
            )
            for name in self.nodes
        ]
        stored = Stored(
            7, 3, [*entities, *self.others], list(self.intents), {}, list(self.disruptions)
        )
        self.engine = Engine(SIDE, Catalog(KINDS, self.modules), stored, 0, S)
        self.called: list[tuple[int, str]] = []
        self.asked: dict[str, tuple[Ask, ...]] = {}
        self.boots = 1
        self.hello_at = self.now + H
        self.open: set[str] = set()
        self.open_max = 0
        # Of each intent that is closed, whether its step counts as one that has begun.
        self.kept: list[bool] = []
        self.held: list[str] = []
        self.turns = 0
        enrolled = self.nodes if self.enrolled else ()
        self._tell([Ticked(), *(Enrolled(name, 1) for name in enrolled)])
        for name in enrolled:
            self.hello(name)

    def hello(self, name: str) -> None:
        """The node's agent says hello, and what it says to what it was asked last."""
        if name not in self.silent and self.enrolled:
            self._tell([self._heard(name)])

    def run(self, seconds: float) -> None:
        """Let time pass; agents say hello each H, and looks find what is there."""
        end = self.now + int(seconds * S)
        while self.now < end:
            due = self.engine.deadline()
            self.now = min(end, max(self.now + MS, min(due or end, self.hello_at)))
            if self.now >= self.hello_at:
                self.hello_at += H
                for name in self.nodes:
                    self.hello(name)
            self.turns += 1
            self._tell([Ticked()])

    def why(self, name: str) -> str | None:
        return row_of(self.engine, node_id(name)).stance.why

    def needs(self, name: str) -> str | None:
        return unblock(row_of(self.engine, node_id(name)))

    def _tell(self, events: list[Event]) -> None:
        while events:
            effects = self.engine.handle(events, self.now)
            self.engine.check()
            self.now += MS
            events = [event for effect in effects for event in self._perform(effect)]

    def _perform(self, effect: Effect) -> list[Event]:
        match effect:
            case Start(module):
                return [Ready(module)]
            case Write(ticket, changes):
                closed = [one for one in changes if isinstance(one, CloseIntent)]
                self.open -= {one.id for one in closed}
                self.kept += [one.begun for one in closed]
                return [Written(ticket, 4)]
            case Tell(peer, message):
                before, self.asked[peer] = self.asked.get(peer), message.asks or ()
                self.lent[peer] = message.permits or ()
                changed = before != self.asked[peer] and peer not in self.silent
                return [self._heard(peer)] if changed and self.answers and self.enrolled else []
            case Call(id, Work.LOOK, _, part) if part in self.finds:
                found = self.finds[part]
                dead = Failed(id, "connection refused", refused=False)
                return [dead if found is None else Answered(id, found, self.now)]
            case Call(id, Work.LOOK, _, _, entity):
                dark = any(entity.name == name and self.now - at >= S for at, name in self.called)
                return [Answered(id, "off" if dark else "on", self.now)]
            case Call(id, Work.STEP, _, _, entity):
                self.called.append((self.now, entity.name))
                self.open.add(str(effect.intent))
                self.open_max = max(self.open_max, len(self.open))
                refusal = self.refuses
                return [Ended(id) if refusal is None else Failed(id, refusal, refused=True)]
            case Call(id, Work.HOLD | Work.RELEASE as work, _, _, entity):
                self.held.append(f"{work} {entity.name}")
                refused = work is Work.HOLD and self.gate is not None
                return [replace(self.gate, call=id) if refused else Ended(id)]
            case _:
                return []

    def _heard(self, name: str) -> Heard:
        said = tuple(
            Permit(one.id, self.refusal is None, self.refusal or "")
            for one in self.asked.get(name, ())
            if self.answers
        )
        held, _ = self.engine.neighbours.listed(name)
        seen = ObservedUpdate(node_id(name), 1, dict(self.observed))
        updates = (seen,) if self.observed else ()
        message = Message(
            1, 0, 0, held, Mark(), updates=updates, permits=said, room_asks=self.room_asks
        )
        return Heard(name, self.boots, message, self.now)


def test_a_permitted_step_is_asked_for_taken_once_and_no_longer_asked_for_when_it_is_over() -> None:
    rig = Rig(("n01",))
    rig.run(1)
    assert [name for _, name in rig.called] == ["n01"]
    rig.run(10)
    assert [name for _, name in rig.called] == ["n01"]
    assert rig.asked["n01"] == ()


def test_a_permit_that_is_refused_is_shown_and_asked_for_again_later() -> None:
    rig = Rig(("n01",), refusal="2 jobs run")
    rig.run(3)
    assert rig.why("n01") == "bmc.switch_off waits: n01 does not permit it: 2 jobs run"
    assert rig.needs("n01") == "the permit of n01"
    assert rig.asked["n01"] == ()
    rig.refusal = None
    rig.run(PERMIT_AGAIN_NS / S)
    assert len(rig.called) == 1


NEVER: list[dict[str, Any]] = [
    {"refusal": "2 jobs run"},
    {"answers": False},
    {"silent": {"n01", "n02"}},
]


@pytest.mark.parametrize("given", NEVER)
def test_an_admin_overrides_a_permit_that_never_comes_of_one_node_and_for_a_while(
    given: dict[str, Any],
) -> None:
    rig = Rig(("n01", "n02"), **given)
    rig.run(30)
    assert rig.called == []
    rig._tell([Released("n01")])
    rig.run(H / S)
    assert [name for _, name in rig.called] == ["n01"]
    late = Rig(("n01",), desired=("none",), **given)
    late._tell([Released("n01")])
    late.run(OVERRIDE_NS / S)
    late._tell([Proposed(1, (SetDesired(node_id("n01"), "power", "off", "site"),))])
    late.run(60)
    assert late.called == []


def test_without_an_answer_nothing_is_done() -> None:
    rig = Rig(("n01",), answers=False)
    rig.run(2)
    assert rig.why("n01") == "bmc.switch_off waits: n01 is asked for its permit"
    rig.run(12)
    assert rig.why("n01") == "bmc.switch_off waits: n01 has not answered the request for its permit"
    rig.run(60)
    assert rig.called == []


def test_a_silent_node_is_left_alone_for_good() -> None:
    rig = Rig(("n01",), silent={"n01"})
    rig.run(1000)
    assert rig.called == []
    assert rig.why("n01") == "bmc.switch_off waits: the agent of n01 is silent: no-permit"
    assert rig.needs("n01") == "the agent of n01, to be heard, or haptera override n01 --why TEXT"


@pytest.mark.parametrize(
    ("given", "asked"),
    [
        ({"silent": {"n01"}}, True),
        ({"silent": {"n01"}, "attributes": {"if_lost": "recover"}}, False),
        ({}, False),
    ],
)
def test_only_who_is_silent_for_good_needs_a_person(given: dict[str, Any], asked: bool) -> None:
    rig = Rig(("n01",), desired=("none",), **given)
    rig.run(2 * H / S)
    row = row_of(rig.engine, node_id("n01"))
    assert rig.engine.safety.needs_a_person(row, rig.now) is asked
    rig._tell([Released("n01")])
    assert not rig.engine.safety.needs_a_person(row, rig.now)


def test_a_silent_node_that_may_be_recovered_is_so_after_24_hellos() -> None:
    rig = Rig(("n01",), silent={"n01"}, attributes={"if_lost": "recover"})
    rig.run(23 * H / S)
    assert rig.called == []
    rig.run(3 * H / S)
    assert [name for _, name in rig.called] == ["n01"]


def test_a_permit_that_its_node_no_longer_stands_by_counts_for_nothing() -> None:
    """Once the node is silent for 1.2 H, what it said last is too old to act on."""
    rig = Rig(("n01", "n02"), desired=("n01",), answers=False)
    rig.run(1)
    rig.silent.add("n01")
    rig.answers = True
    rig.run(60)
    assert rig.called == []


def test_without_a_fresh_reading_the_look_comes_first() -> None:
    """Power is looked at once a minute only, which is too long ago for what may harm."""
    rig = Rig(("n01",), refusal="busy")
    rig.run(30)
    rig.refusal = None
    rig.run(6)
    row = row_of(rig.engine, node_id("n01"))
    ((at, _),) = rig.called
    before = [
        one for one in (row.belief.known.get("power"), row.belief.remembered.get("power")) if one
    ]
    assert before
    assert at - 1.2 * H <= before[0].at


@pytest.mark.parametrize(("nodes", "group", "most"), [(8, "", 1), (40, "", 2), (40, "r1", 2)])
def test_no_more_are_disturbed_at_once_than_the_budgets_allow(
    nodes: int, group: str, most: int
) -> None:
    names = tuple(f"n{at:02}" for at in range(nodes))
    rig = Rig(names, attributes={"rack": group} if group else {})
    rig.run(5 * nodes)
    assert (len(rig.called), rig.open_max) == (nodes, most)


def test_a_node_that_claims_room_for_itself_and_leaves_it_frees_no_place_of_its_parent() -> None:
    """The place is of the step that its parent has under way on it."""
    rig = Rig(tuple(f"n{at:02}" for at in range(8)))
    while not rig.called:
        rig.run(0.1)
    ((_, name),) = rig.called
    for asks in ((RoomAsk("mine", node_id(name), 0, begun=True),), ()):
        rig.room_asks = asks
        rig.hello(name)
        rig.run(0.1)
    assert rig.open_max == 1
    rig.run(40)
    assert (len(rig.called), rig.open_max) == (8, 1)


def test_one_node_is_not_disturbed_more_than_three_times_an_hour() -> None:
    past = tuple(Disruption(node_id("n01"), at * MS, "boot") for at in (1, 2, 3))
    rig = Rig(("n01",), disruptions=past)
    rig.run(60)
    assert rig.why("n01") == "bmc.switch_off waits: the budget of node n01 allows 3 an hour"
    assert rig.needs("n01") == "room in the budget"
    rig.run(3_600)
    assert len(rig.called) == 1


def test_the_next_disruptive_step_needs_a_place_and_a_permit_of_its_own() -> None:
    hang, off = (
        dataclasses.replace(OFF, name=name, changes=(Change("power", (source,), target),))
        for name, source, target in (("hang", "on", "hung"), ("end", "hung", "off"))
    )
    look = dataclasses.replace(LOOK, outcomes=("off", "on", "hung"))
    past = tuple(Disruption(node_id("n01"), at * MS, "boot") for at in (1, 2))
    modules = (Manifest("bmc", "1", PARENT, (look,), (hang, off)),)
    rig = Rig(("n01",), modules=modules, disruptions=past, finds={"look": "on"})
    while not rig.called:
        rig.run(0.1)
    rig.finds["look"] = "hung"
    rig.run(0.5)
    assert len(rig.called) == 1
    assert rig.why("n01") == "bmc.end waits: the budget of node n01 allows 3 an hour"
    assert rig.asked["n01"] == ()


def test_what_its_device_refused_counts_in_no_hour() -> None:
    past = tuple(Disruption(node_id("n01"), at * MS, "boot") for at in (1, 2))
    rig = Rig(("n01",), disruptions=past, finds={"look": "on"}, refuses="no privilege")
    rig.run(20)
    assert len(rig.called) == 3
    assert rig.why("n01") == "bmc.switch_off: no privilege"
    assert rig.kept == [False] * 3, "nor after a restart"


def test_what_waits_for_an_hour_says_until_when_and_what_its_device_said_before() -> None:
    past = tuple(Disruption(node_id("n01"), at * MS, "boot") for at in (1, 2))
    rig = Rig(("n01",), disruptions=past, finds={"look": "on"})
    while not rig.called:
        rig.run(0.1)
    rig._tell([Enrolled("n01", 1)])  # It has booted, and is on again.
    rig.run(600)
    seen = view(row_of(rig.engine, node_id("n01")), rig.now)
    assert (seen.condition, seen.unblock) == (Condition.WAITING, "room in the budget")
    assert seen.why == (
        "bmc.switch_off waits: the budget of node n01 allows 3 an hour; before that,"
        " bmc.switch_off: returned, but power is on"
    )
    assert seen.again_in_ms == (MS + 3_600 * S - rig.now) // MS


@pytest.mark.parametrize("shown_h", [-300, 0, 300])
def test_disturbances_of_another_boot_or_machine_count_from_now(shown_h: int) -> None:
    """When they were, its clock cannot tell: a promoted standby has another one."""
    at = shown_h * 3_600 * S
    past = tuple(Disruption(node_id("n01"), at, "another boot") for _ in range(3))
    rig = Rig(("n01",), disruptions=past)
    rig.run(3_599)
    assert rig.called == []
    rig.run(60)
    assert len(rig.called) == 1


def test_a_restarted_parent_goes_on_asking_until_the_outcome_is_known() -> None:
    intent = Intent("99-1", node_id("n01"), "bmc", "switch_off", S // 2, "boot", disruptive=True)
    rig = Rig(("n01",), desired=("none",), intents=(intent,), now=S)
    rig.run(0.1)
    assert rig.asked["n01"] == (Ask("99-1", "bmc.switch_off", 5_000),)
    rig.run(10)
    assert rig.asked["n01"] == ()
    assert rig.called == []


def test_where_many_fall_silent_at_once_nothing_is_disturbed_until_that_is_over() -> None:
    names = tuple(f"n{at:02}" for at in range(20))
    rig = Rig(names, desired=("n00",), refusal="busy")
    rig.run(5)
    rig.silent |= set(names[5:])
    rig.run(5 * H / S)
    rig.refusal = None
    rig.run(60)
    assert rig.called == []
    text = "bmc.switch_off waits: the brake is on: 15 of 20 nodes fell silent within 30 s"
    assert rig.why("n00") == text
    assert rig.needs("n00") == "the end of the brake, or haptera brake --release"
    rig.run(BRAKE_NS / S)
    assert [name for _, name in rig.called] == ["n00"]


def test_a_person_who_knows_why_they_are_silent_releases_the_brake() -> None:
    names = tuple(f"n{at:02}" for at in range(20))
    rig = Rig(names, desired=("n00",), refusal="busy")
    rig.run(5)
    rig.silent |= set(names[5:])
    rig.run(5 * H / S)
    rig.refusal = None
    assert rig.engine.safety.unrest.brake(rig.now).why == "15 of 20 nodes fell silent within 30 s"
    rig._tell([Released()])
    assert rig.engine.safety.unrest.brake(rig.now) == BrakeView(None, 0)
    rig.run(1)
    assert [name for _, name in rig.called] == ["n00"]


def flapping(times: int) -> Rig:
    """A node that fell silent so many times within ten minutes, and is there again."""
    rig = Rig(("n01", "n02"), refusal="busy")
    rig.run(5)
    for _ in range(times):
        rig.silent.add("n01")
        rig.run(5 * H / S)
        rig.silent.clear()
        rig.run(5 * H / S)
    rig.refusal = None
    return rig


def test_a_node_that_flaps_is_left_alone_until_it_has_held_still() -> None:
    rig = flapping(FLAPS_MAX + 1)
    rig.run(60)
    assert [name for _, name in rig.called] == ["n02"]
    text = "bmc.switch_off waits: n01 flaps: it fell silent more than 3 times within 10 min"
    assert rig.why("n01") == text
    steady = "10 min in which n01 does not fall silent, or haptera override n01 -m WHY"
    assert rig.needs("n01") == steady
    rig.run(STEADY_NS / S)
    assert [name for _, name in rig.called] == ["n02", "n01"]


def test_a_node_that_falls_silent_now_and_then_does_not_flap() -> None:
    rig = flapping(FLAPS_MAX)
    rig.run(60)
    assert sorted(name for _, name in rig.called) == ["n01", "n02"]
    often = flapping(FLAPS_MAX)
    often.run(FLAPS_WITHIN_NS / S)
    often.silent.add("n01")
    often.run(5 * H / S)
    often.silent.clear()
    often.run(60)
    assert sorted(name for _, name in often.called) == ["n01", "n02"]


def test_an_admin_who_has_seen_to_a_node_that_flaps_lets_it_go_on() -> None:
    rig = flapping(FLAPS_MAX + 1)
    rig.run(60)
    rig._tell([Released("n01")])
    rig.run(1)
    assert [name for _, name in rig.called] == ["n02", "n01"]


def test_a_plan_tells_of_the_brake_and_of_freezes() -> None:
    names = tuple(f"n{at:02}" for at in range(20))
    board_swap = {"of": Desired("n01", "user:eve"), "reason": Desired("board swap", "user:eve")}
    freeze = StoredEntity(EntityId("freeze", "f1", None), {}, "user:eve", board_swap, 3)
    rig = Rig(names, desired=("n00",), others=(freeze,), refusal="busy")
    rig.run(5)
    rig.silent |= set(names[5:])
    rig.run(5 * H / S)
    off = tuple(SetDesired(node_id(name), "power", "off", "site") for name in ("n01", "n02"))
    (show,) = (
        one
        for one in rig.engine.handle([Considered(9, off)], rig.now)
        if isinstance(one, PlanReply)
    )
    assert show.plan is not None
    assert show.plan.brake == "15 of 20 nodes fell silent within 30 s"
    held = PlanFreeze("n01", 1, "user:eve", None, "board swap")
    assert [one.frozen for one in show.plan.groups] == [[held]]


def test_a_declared_budget_holds_instead_of_the_default_and_a_change_wakes_the_queue() -> None:
    few = {"per": Desired("parent", "site"), "at_once": Desired(0, "site")}
    stored = StoredEntity(BUDGET, {}, "site", few, 3)
    rig = Rig(tuple(f"n{at}" for at in range(8)), others=(stored,))
    rig.run(20)
    assert rig.called == []
    assert rig.why("n3") == "bmc.switch_off waits: the budget of this parent allows 0 at once"
    rig._tell([Proposed(1, (SetDesired(BUDGET, "at_once", 3, "site"),))])
    rig.run(30)
    assert (len(rig.called), rig.open_max) == (8, 3)


@pytest.mark.parametrize(
    ("limit", "rounds"),
    [({}, 4), ({"at_once": 2, "of": "n1*"}, 5), ({"at_once": 30}, 3), ({"at_once": 0}, None)],
)
def test_a_plan_tells_in_how_many_rounds_the_budgets_let_it_be_done(
    limit: dict[str, str | int], rounds: int | None
) -> None:
    few = {name: Desired(value, "site") for name, value in ({"per": "parent"} | limit).items()}
    others = (StoredEntity(BUDGET, {}, "site", few, 3),) if limit else ()
    names = tuple(f"n{at:02}" for at in range(100))
    # 20 go, of which 12 are in a group of 16, of which 4 may go at once.
    rig = Rig(names, desired=("n99",), others=others, refusal="busy")
    for name in names[8:24]:
        rig.engine.table.apply(
            Declare(node_id(name), {"platform": "test", "rack": "r1"}, "site"), 4
        )
    rig.run(5)
    off = tuple(SetDesired(node_id(name), "power", "off", "site") for name in names[:20])
    (show,) = _shows(rig.engine.handle([Considered(9, off)], rig.now))
    assert show.plan is not None
    assert {one.rounds for one in show.plan.groups} == {rounds}


def _shows(effects: list[Effect]) -> list[PlanReply]:
    return [one for one in effects if isinstance(one, PlanReply)]


def test_an_entity_that_goes_leaves_its_place_to_others() -> None:
    rig = Rig(("n01", "n02"), refusal="busy")
    rig.run(1)
    rig.engine.table.remove(node_id("n01"))
    rig.refusal = None
    rig.run(10)
    assert [name for _, name in rig.called] == ["n02"]
    assert rig.engine.safety.permits.asks("n01") == ()
    assert EntityId("node", "n01", "n01") not in rig.engine.table
