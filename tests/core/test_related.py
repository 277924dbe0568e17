"""Parts that require what a related entity is: planned, waited for, explained."""

from dataclasses import replace
from enum import StrEnum

import pytest

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.kinds import KINDS, node
from haptera.model.answers.views import Condition
from haptera.model.changes import (
    Declare,
    Desired,
    OpenIntent,
    SetDesired,
    Stored,
    StoredEntity,
    Undeclare,
)
from haptera.model.declared.packing import kind_digest
from haptera.model.declared.schema import Attribute, Extension, Kind, Relation, Variable, extend
from haptera.model.effects import Call, Effect, PlanReply, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.errors import HapteraError
from haptera.model.events import Answered, Considered, Event, Proposed, Ready, Ticked, Written
from haptera.model.parts import Change, Context, Look, Manifest, Requirement, Step
from haptera.sdk import PARENT as AT_PARENT
from haptera.sdk import Module
from tests.core.scenario import LOOK, NODE, ON, PARENT, SIDE, WHERE, row_of, standing, told


class State(StrEnum):
    UNKNOWN = "unknown"
    STOPPED = "stopped"
    RUNNING = "running"


STATE = Variable("coolant", "state", State, {State.UNKNOWN: 0, State.STOPPED: 1, State.RUNNING: 2})
COOLANT = Kind("coolant", (STATE,), of_cluster=True)
OF_RACK = Relation(STATE, node.rack)
NAME = "coolant[node.rack].state"
KIND = extend(KINDS["node"], [Extension("cooled", related=(OF_RACK,))])
WARM = {**KINDS, "node": KIND, "coolant": COOLANT}
ON_COOLED = replace(ON, requires=(*WHERE, Requirement(NAME, ("running",))))
BMC = Manifest("bmc", "1", PARENT, (LOOK,), (ON_COOLED,))
STARTS = Change("state", ("stopped",), "running")
PUMP = Manifest(
    "pump",
    "1",
    PARENT,
    (Look("pump", "look", "coolant", "state", ("stopped", "running"), context=PARENT),),
    (
        Step(
            "pump", "start", "coolant", (Change("state", ("stopped",), "running"),), context=PARENT
        ),
    ),
)
LOOP = EntityId("coolant", "r1", None)
OTHER_LOOP = EntityId("coolant", "r2", None)


class Cooled:
    """A parent of a node in rack r1, that is off and should be on, and of the loops of racks."""

    def __init__(self, rack: str | None = "r1", *loops: EntityId) -> None:
        attributes = {"platform": "test"} | ({} if rack is None else {"rack": rack})
        entities = [
            StoredEntity(NODE, attributes, "site", {"power": Desired("on", "site")}, 1),
            *(StoredEntity(one, {}, "site", {}, 1) for one in loops),
        ]
        stored = Stored(7, 3, entities, [], {})
        self.engine = Engine(SIDE, Catalog(WARM, [BMC, PUMP]), stored, 0, S)
        self.now = S
        self.tell(Ready("bmc"), Ready("pump"))
        self.reads({NODE: "off"})

    def tell(self, *events: Event) -> list[Effect]:
        found = told(self.engine, self.now, *events)
        self.calls = {one.entity: one.id for one in found if isinstance(one, Call)} | getattr(
            self, "calls", {}
        )
        return found

    def reads(self, values: dict[EntityId, str]) -> list[Effect]:
        """The looks that are under way find these."""
        return [
            effect
            for entity, value in values.items()
            for effect in self.tell(Answered(self.calls.pop(entity), value, self.now))
        ]

    def later(self) -> None:
        self.now += 11 * S
        self.tell(Ticked())


def meant(effects: list[Effect]) -> list[tuple[EntityId, str]]:
    writes = (one for effect in effects if isinstance(effect, Write) for one in effect.changes)
    return [(one.intent.entity, one.intent.step) for one in writes if isinstance(one, OpenIntent)]


def test_a_step_waits_until_the_related_entity_is_as_it_requires() -> None:
    one = Cooled("r1", LOOP, OTHER_LOOP)
    assert meant(one.reads({OTHER_LOOP: "running", LOOP: "stopped"})) == []
    assert standing(one.engine) == (Condition.WAITING, f"waits for {NAME}=running (coolant:r1)")
    assert row_of(one.engine).stance.verdict.needs == "coolant:r1"

    effects = one.tell(Proposed(9, (SetDesired(LOOP, "state", "running", "site"),)))
    effects += one.tell(Written(1, 4))
    assert meant(effects) == [(LOOP, "start")]
    one.later()
    assert meant(one.reads({LOOP: "running"})) == [(NODE, "switch_on")]


def test_what_was_running_and_is_not_known_any_more_is_waited_for() -> None:
    one = Cooled("r1", LOOP)
    one.tell(Proposed(9, (Declare(NODE, {"platform": "test", "rack": "r2"}, "site"),)))
    one.tell(Written(1, 4))
    one.reads({LOOP: "running"})
    assert row_of(one.engine).stance.verdict.needs == "coolant:r2 is not declared"
    assert standing(one.engine)[0] is Condition.WAITING

    moved = Declare(NODE, {"platform": "test", "rack": "r1"}, "site")
    effects = one.tell(Proposed(10, (moved,))) + one.tell(Written(2, 5))
    assert meant(effects) == [(NODE, "switch_on")]


def test_who_has_no_attribute_that_names_one_is_told_so() -> None:
    one = Cooled(None, LOOP)
    one.reads({LOOP: "running"})
    why = f"waits for {NAME}=running (its rack is not set)"
    assert standing(one.engine) == (Condition.WAITING, why)


def test_one_that_is_gone_is_known_no_more() -> None:
    one = Cooled("r1", LOOP)
    one.tell(Proposed(9, (Undeclare(LOOP),)))
    one.tell(Written(1, 4))
    one.later()
    assert row_of(one.engine).stance.related == {}
    assert row_of(one.engine).stance.verdict.needs == "coolant:r1 is not declared"


def test_sides_that_relate_otherwise_have_other_digests_and_others_the_same_as_before() -> None:
    assert kind_digest(KIND, []) != kind_digest(KINDS["node"], [])
    assert kind_digest(extend(KINDS["node"], [Extension("bare")]), []) == kind_digest(
        KINDS["node"], []
    )


FEED = Variable("feed", "state", State, STATE.numbers)


@pytest.mark.parametrize(
    ("kinds", "said"),
    [
        (
            [
                replace(COOLANT, related=(Relation(FEED, Attribute("coolant", "feed")),)),
                Kind(
                    "feed",
                    (FEED,),
                    (Attribute("feed", "loop"),),
                    of_cluster=True,
                    related=(Relation(STATE, Attribute("feed", "loop")),),
                ),
            ],
            "attribute",
        ),
        (
            [
                Kind(
                    "coolant",
                    (STATE,),
                    (Attribute("coolant", "feed"),),
                    of_cluster=True,
                    related=(Relation(FEED, Attribute("coolant", "feed")),),
                ),
                Kind(
                    "feed",
                    (FEED,),
                    (Attribute("feed", "loop"),),
                    of_cluster=True,
                    related=(Relation(STATE, Attribute("feed", "loop")),),
                ),
            ],
            "in a circle: ",
        ),
        ([replace(COOLANT, of_cluster=False)], "no variable of a kind of the whole cluster"),
        ([], "no variable of a kind of the whole cluster"),
        (
            [
                COOLANT,
                replace(KINDS["service"], related=(Relation(STATE, Attribute("module", "x")),)),
            ],
            "x is no attribute of it or of its node",
        ),
    ],
)
def test_relations_that_cannot_be_are_refused(kinds: list[Kind], said: str) -> None:
    with pytest.raises(HapteraError, match=said):
        Catalog({**KINDS, "node": KIND, **{one.name: one for one in kinds}}, [])
    with pytest.raises(HapteraError, match="a node cannot depend on another one"):
        Relation(node.power, node.rack)


def test_a_part_on_a_node_may_not_require_what_nodes_are_not_told_of() -> None:
    here = replace(ON_COOLED, module="agent", context=Context.SELF)
    with pytest.raises(HapteraError, match=r"agent\.switch_on runs on nodes"):
        Catalog(WARM, [Manifest("agent", "1", Context.SELF, (), (here,))])


def test_a_module_names_what_is_related_in_its_conditions() -> None:
    module = Module("switch", connect=lambda target: target, context=AT_PARENT)

    @module.serves(node.power).step(
        node.Power.OFF, node.Power.ON, within_s=1, requires={OF_RACK: State.RUNNING}
    )
    async def on(_: object) -> None:
        pass

    (step,) = module.manifest().steps
    assert step.requires == (Requirement(NAME, ("running",)),)
    with pytest.raises(HapteraError, match=r"coolant\.state is never 'cold'"):
        module.serves(node.agent).step(
            node.Agent.UP, node.Agent.UP, within_s=1, requires={OF_RACK: "cold"}
        )(on)


@pytest.mark.parametrize(("rack", "stuck"), [("r1", 0), ("r2", 1)])
def test_a_plan_for_a_new_node_knows_what_it_will_be_related_to(rack: str, stuck: int) -> None:
    one = Cooled("r1", LOOP)
    one.reads({LOOP: "running"})
    new = node_id("n02")
    changes = (
        Declare(new, {"platform": "test", "rack": rack}, "site"),
        SetDesired(new, "power", "on", "site"),
    )
    (plan,) = (e.plan for e in one.tell(Considered(9, changes)) if isinstance(e, PlanReply))
    assert plan is not None
    (group,) = plan.groups
    assert group.worst is not None
    assert group.worst.stuck == stuck
