"""What a parent explains of its entities: bundled modules, as they would stand in a cluster."""

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import S
from haptera.core.state.side import Side
from haptera.core.state.start import start
from haptera.core.sync.delta import mark_digest
from haptera.core.views.query import explained
from haptera.core.views.unblock import unblock
from haptera.kinds import KINDS
from haptera.model.answers.explained import Alternative, Explained
from haptera.model.changes import Desired, Stored, StoredEntity
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Answered, Enrolled, Heard, Ready, Ticked
from haptera.model.facts import Method
from haptera.model.messages import Mark, Message, ObservedUpdate, SeenValue
from haptera.model.parts import Context
from haptera.modules import BUNDLED, load
from tests.core.scenario import row_of

NODE, WEB = node_id("n01"), EntityId("service", "web", "n01")
LABNODE = {"platform": "labnode"}
PARENT = Side(Context.PARENT, None, 0xA1, "boot", S)


def parent(*entities: StoredEntity, modules: tuple[str, ...] = ("jobs", "labnode")) -> Engine:
    """A parent of one node that is on, and of which nothing else is known."""
    catalog = Catalog(KINDS, [load(name).manifest() for name in modules])
    engine = Engine(PARENT, catalog, Stored(7, 2, list(entities), [], {}), 0, S)
    engine.handle([Ready("labnode"), Enrolled("n01", 1)], S)
    engine.handle([Answered(2, "on", S)], S)
    return engine


def hear(engine: Engine, **seen: str) -> None:
    """The node's agent tells this of it."""
    values = {name: SeenValue(one, True, Method.READ, 0, "jobs") for name, one in seen.items()}
    update = ObservedUpdate(NODE, 2, values)
    mark = Mark(0, 2, mark_digest({NODE: 2}))
    message = Message(1, 0, 0, Mark(), mark, updates=(update,))
    engine.handle([Heard("n01", 77, message, 2 * S)], 2 * S)


def node(**desired: str) -> StoredEntity:
    wanted = {name: Desired(value, "site") for name, value in desired.items()}
    return StoredEntity(NODE, LABNODE, "site", wanted, 1)


def asked(engine: Engine, entity: EntityId) -> Explained | None:
    row = row_of(engine, entity)
    absent = [load(name).manifest() for name in sorted(BUNDLED)]
    absent = [one for one in absent if one.name not in engine.catalog.manifests]
    return explained(row, engine.table.node_of(row), engine.catalog, absent, 2 * S)


def told(engine: Engine, entity: EntityId) -> tuple[str | None, str | None]:
    row = row_of(engine, entity)
    return row.stance.why, unblock(row)


def test_a_busy_node_is_asked_for_its_permit_and_why_says_what_that_is_instead_of() -> None:
    engine = parent(node(power="off"))
    hear(engine, busy="busy")
    assert told(engine, NODE) == (
        "labnode.switch_off is excluded by busy=busy; "
        "instead labnode.force_off waits: n01 is asked for its permit",
        "the permit of n01",
    )
    assert asked(engine, NODE) == Explained(
        cost=20,
        so_that=["so that power is off, as desired"],
        no_other=True,
        cheaper=Alternative(
            "labnode.switch_off is excluded by busy=busy", 1, ["labnode.switch_off"]
        ),
    )


def test_a_free_node_has_a_dearer_way() -> None:
    engine = parent(node(power="off"))
    hear(engine, busy="free")
    assert told(engine, NODE)[0] == "labnode.switch_off waits: n01 is asked for its permit"
    assert asked(engine, NODE) == Explained(
        cost=1,
        so_that=["so that power is off, as desired"],
        runner_up=Alternative("without labnode.switch_off", 20, ["labnode.force_off"]),
    )


def test_a_step_that_failed_is_what_another_is_taken_instead_of() -> None:
    engine = parent(node(power="off"))
    hear(engine, busy="free")
    row = row_of(engine, NODE)
    domain = engine.catalog.domain(row, row)
    state = start(row, row, domain, {"power": "off"})
    row.attempts.bar(state, "labnode.switch_off", 9 * S, 2 * S)
    engine.handle([Ticked()], 3 * S)
    assert told(engine, NODE)[0] == (
        "labnode.switch_off has just failed; "
        "instead labnode.force_off waits: n01 is asked for its permit"
    )


def test_a_module_that_is_not_among_the_sites_is_offered() -> None:
    engine = parent(node(busy="free"), modules=("labnode",))
    assert told(engine, NODE) == (
        "nothing leads to busy=free",
        "another desired value, or a module that leads there",
    )
    assert asked(engine, NODE) == Explained(
        offers=["module jobs would look at busy (jobs.look_busy): add it to the site's modules"]
    )


def test_what_waits_for_its_node_has_nothing_nearer() -> None:
    web = StoredEntity(WEB, {}, "site", {"run": Desired("running", "site")}, 2)
    engine = parent(node(), web, modules=("labnode", "service"))
    assert told(engine, WEB) == ("waits for node.agent=up", "node.agent=up of node:n01")
    assert asked(engine, WEB) == Explained()


def test_nothing_is_explained_of_what_is_not_desired() -> None:
    assert asked(parent(node()), NODE) is None
