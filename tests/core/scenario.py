"""A parent, its node and its BMC, at the moments with which most tests of the engine begin."""

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import (
    Desired,
    Stored,
    StoredEntity,
)
from haptera.model.declared.schema import digest
from haptera.model.effects import Call, Effect, Publish, Work
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Event, Ready, Written
from haptera.model.intent import Intent
from haptera.model.parts import (
    Change,
    Context,
    Look,
    Manifest,
    Requirement,
    Step,
)
from haptera.testing.world_process import WorldProcess

NODE = node_id("n01")
OTHER = node_id("n02")
ATTRIBUTES = {"platform": "test"}
WHERE = (Requirement("platform", ("test",)),)
PARENT = Context.PARENT
LOOK = Look("bmc", "look", "node", "power", ("off", "on"), WHERE, context=PARENT, within_ms=1000)
ON = Step(
    "bmc",
    "switch_on",
    "node",
    (Change("power", ("off",), "on"),),
    WHERE,
    context=PARENT,
    within_ms=2000,
    late_ms=3000,
)
BMC = Manifest("bmc", "1", PARENT, (LOOK,), (ON,), at_once=1_000)
SIDE = Side(PARENT, None, 0xA1, "boot", 5 * S)
NOTHING: dict[str, str | int] = {}
# Where an entity has a row.
Place = Engine | EntityTable | WorldProcess


def stored(*intents: Intent, desired: dict[str, str]) -> Stored:
    values = {name: Desired(value, "site") for name, value in desired.items()}
    entity = StoredEntity(NODE, ATTRIBUTES, "site", values, 3)
    return Stored(7, 3, [entity], list(intents), {})


def parent(state: Stored) -> Engine:
    return Engine(SIDE, Catalog(KINDS, [BMC]), state, 0, S)


def call(number: int, work: Work, part: str, deadline_at: int, intent: str | None = None) -> Call:
    plain = digest({})
    return Call(
        number, work, "bmc", part, NODE, ATTRIBUTES, NOTHING, plain, deadline_at, intent
    )  # fmt: skip


def told(engine: Engine, now: int, *events: Event) -> list[Effect]:
    """All effects but those that only tell listeners."""
    effects = engine.handle(events, now)
    engine.check()
    return [effect for effect in effects if not isinstance(effect, Publish)]


def looked(found: str, engine: Engine | None = None, **desired: str) -> Engine:
    """A parent whose first look at the power found this, at S."""
    engine = engine or parent(stored(desired=desired))
    told(engine, S, Ready("bmc"))
    told(engine, S, Answered(1, found, S))
    return engine


def begun(engine: Engine | None = None) -> Engine:
    """A parent that has found the power off, and begun to switch it on, at S."""
    engine = looked("off", engine or parent(stored(desired={"power": "on"})))
    told(engine, S, Written(1, 4))
    return engine


def row_of(place: Place, entity: EntityId = NODE) -> EntityState:
    """The row of an entity, which must be there."""
    if isinstance(place, WorldProcess):
        assert place.engine is not None
        place = place.engine
    row = (place if isinstance(place, EntityTable) else place.table).get(entity)
    assert row is not None, entity
    return row


def standing(place: Place, entity: EntityId = NODE) -> tuple[Condition, str | None]:
    row = row_of(place, entity)
    return row.stance.condition, row.stance.why
