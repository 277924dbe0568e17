"""Who or what would let an entity go on: told of each that waits or is stuck, and of no other."""

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Work, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Enrolled, Event, Failed, Ready, Written
from haptera.model.parts import Context
from haptera.modules import load
from tests.core.scenario import row_of
from tests.core.test_reports import parent, says

NODE, WEB = node_id("n01"), EntityId("service", "web", "n01")
Told = tuple[Condition, str | None, int | None]


def told(engine: Engine, entity: EntityId, now: int) -> Told:
    seen = view(row_of(engine, entity), now)
    return seen.condition, seen.unblock, seen.again_in_ms


def agent() -> Engine:
    """The agent of a node with a service that should run."""
    desired = {"run": Desired("running", "parent")}
    entities = [
        StoredEntity(NODE, {"platform": "labnode"}, "parent", {}, 1),
        StoredEntity(WEB, {}, "parent", desired, 2),
    ]
    modules = [load(name).manifest() for name in ("labnode", "service")]
    side = Side(Context.SELF, "n01", 0xA1, "boot", S)
    return Engine(side, Catalog(KINDS, modules), Stored(7, 2, entities, [], {}), 0, S)


def test_what_waits_for_its_node_names_the_node_and_what_it_should_be() -> None:
    engine = parent()
    assert told(engine, WEB, S) == (Condition.WAITING, "node.agent=up of node:n01", None)


def test_what_is_up_to_the_agent_names_the_agent_and_the_part() -> None:
    engine = parent()
    engine.handle([says(2, known=True, value="failed")], 2 * S)
    assert told(engine, WEB, 2 * S) == (
        Condition.WAITING,
        "the agent of n01, by service.start",
        None,
    )


def test_what_is_as_desired_needs_nothing() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    assert told(engine, WEB, 2 * S) == (Condition.CONVERGED, None, None)


def test_what_failed_says_when_it_is_tried_again() -> None:
    engine = agent()
    events: list[Event] = [Ready("service"), Enrolled("parent", 1)]
    while events:
        effects = engine.handle(events, S)
        events = [event for effect in effects for event in answered(effect)]

    assert told(engine, WEB, 2 * S) == (
        Condition.STUCK,
        "the agent of n01, by service.start",
        3_000,
    )


def answered(effect: Effect) -> list[Event]:
    """What a module says that finds a service stopped and cannot start it."""
    match effect:
        case Write(ticket):
            return [Written(ticket, 3)]
        case Call(id, Work.LOOK):
            return [Answered(id, "stopped", S)]
        case Call(id, Work.STEP):
            return [Failed(id, "no such command", refused=True)]
        case _:
            return []
