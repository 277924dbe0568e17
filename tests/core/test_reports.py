"""What a parent makes of its nodes' reports: it believes no more than the node does."""

import msgspec

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.state.side import Side
from haptera.core.sync.delta import mark_digest
from haptera.core.sync.peers import Tier
from haptera.core.views.query import view
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Desired, Stored, StoredEntity, Undeclare
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Alive,
    Answered,
    Enrolled,
    Heard,
    Proposed,
    Ready,
    Ticked,
    WatchReported,
    Written,
)
from haptera.model.facts import Method
from haptera.model.messages import Mark, Measure, Message, ObservedUpdate, SeenValue, Standing
from haptera.model.parts import Context, Look, Manifest
from haptera.modules import load
from tests.core.scenario import row_of, standing

NODE, WEB = node_id("n01"), EntityId("service", "web", "n01")


def parent() -> Engine:
    """A parent of one enrolled node that is on, with a service that should run."""
    modules = [load(name).manifest() for name in ("labnode", "service")]
    desired = {name: Desired(value, "site") for name, value in (("power", "on"), ("agent", "up"))}
    entities = [
        StoredEntity(NODE, {"platform": "labnode"}, "site", desired, 1),
        StoredEntity(WEB, {}, "site", {"run": Desired("running", "site")}, 2),
    ]
    side = Side(Context.PARENT, None, 0xA1, "boot", S)
    engine = Engine(side, Catalog(KINDS, modules), Stored(7, 2, entities, [], {}), 0, S)
    engine.handle([Ready("labnode"), Enrolled("n01", 1)], S)
    engine.handle([Answered(2, "on", S)], S)
    return engine


def says(
    version: int, *, known: bool, value: str = "running", standing: Standing | None = None
) -> Heard:
    """The node's agent tells of a running service: that it knows, or that it remembers."""
    seen = SeenValue(value, known, Method.READ, 0, "service")
    update = ObservedUpdate(WEB, version, {"run": seen}, standing=standing)
    message = Message(
        1, 0, 0, Mark(), Mark(0, version, mark_digest({WEB: version})), updates=(update,)
    )
    return Heard("n01", 77, message, version * S)


def web(engine: Engine) -> EntityState:
    return row_of(engine, WEB)


def test_what_a_node_only_remembers_its_parent_does_not_know() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    assert web(engine).stance.condition is Condition.CONVERGED

    engine.handle([says(3, known=False)], 3 * S)
    assert (list(web(engine).belief.known), list(web(engine).belief.remembered)) == ([], ["run"])
    assert web(engine).stance.condition is Condition.WAITING


def test_what_ran_on_a_node_is_remembered_when_the_node_is_no_longer_declared() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    engine.handle([Proposed(9, (Undeclare(NODE),))], 2 * S)
    engine.handle([Written(1, 3)], 2 * S)

    assert (web(engine).stance.condition, list(web(engine).belief.known)) == (Condition.WAITING, [])


def test_the_time_that_a_boot_may_take_begins_anew_with_each_boot() -> None:
    engine = parent()
    engine.handle([WatchReported(1, "off", 30 * S)], 30 * S)
    engine.handle([WatchReported(1, "on", 40 * S), Written(1, 3)], 40 * S)
    engine.handle([WatchReported(1, "on", 70 * S)], 70 * S)

    assert standing(engine, NODE) == (
        Condition.ACTING,
        "waits to hear from the agent",
    )


def test_a_report_that_a_later_one_overtook_changes_nothing() -> None:
    engine = parent()
    late = [says(4, known=True), says(3, known=True)]
    engine.handle([says(5, known=False), *late], 5 * S)

    assert (list(web(engine).belief.known), list(web(engine).belief.remembered)) == ([], ["run"])


def test_what_ran_before_a_boot_is_remembered() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    engine.handle([Enrolled("n01", 2)], 3 * S)

    assert (list(web(engine).belief.known), list(web(engine).belief.remembered)) == ([], ["run"])


def test_an_agent_that_was_heard_before_its_power_was_cut_is_not_taken_to_be_there() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    engine.handle([WatchReported(1, "off", 3 * S)], 3 * S)
    engine.handle([WatchReported(1, "on", 4 * S), Written(1, 3)], 4 * S)

    row = row_of(engine, NODE)
    assert (sorted(row.belief.known), row.stance.why) == (["power"], "waits to hear from the agent")


def test_our_own_pause_is_nobodys_silence() -> None:
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    engine.handle([WatchReported(1, "on", 92 * S)], 92 * S)

    row = row_of(engine, NODE)
    assert (sorted(row.belief.known), row.stance.condition) == (
        ["agent", "power"],
        Condition.CONVERGED,
    )


def test_what_arrived_early_in_our_pause_makes_the_rest_of_it_nobodys_silence() -> None:
    """A socket that nobody reads keeps the first that comes, and has no room for the last."""
    engine = parent()
    engine.handle([says(2, known=True)], 2 * S)
    engine.handle([Alive(("n01",), 10 * S), WatchReported(1, "on", 92 * S)], 92 * S)
    engine.handle([Ticked()], 92 * S + 1)

    peer, row = engine.neighbours.links.get("n01"), engine.table.get(NODE)
    assert peer is not None
    assert row is not None
    assert (peer.heard_at, peer.tier, "agent" in row.belief.known) == (10 * S, Tier.FRESH, True)


def test_how_long_parts_take_on_a_node_is_taken_by_its_word_of_parts_that_nodes_run() -> None:
    engine = parent()
    parts = ("service.start", "labnode.switch_on", "unheard.of")
    heard = says(2, known=True)
    measures = tuple(Measure(part, 1_500) for part in parts)
    message = msgspec.structs.replace(heard.message, measures=measures)
    engine.handle([msgspec.structs.replace(heard, message=message)], 2 * S)

    usual = engine.neighbours.usual
    assert [usual.of(part) for part in parts] == [1_500 * MS, None, None]


FAILING = Standing(Condition.STUCK, 1_500, "service.start: ended with status 3", "no route")


def told(engine: Engine) -> tuple[Condition, str | None, str | None, int, str | None]:
    """What is said of the service, and by whom."""
    seen = view(web(engine), 10 * S)
    return seen.condition, seen.why, seen.error, seen.since_ms, seen.told_by


def test_what_is_up_to_an_agent_is_told_in_the_agents_own_words() -> None:
    engine = parent()
    engine.handle([says(2, known=True, value="failed")], 2 * S)
    up_to = "service.start is up to the agent of n01"
    assert told(engine) == (Condition.WAITING, up_to, None, 9_000, None)

    engine.handle([says(3, known=True, value="failed", standing=FAILING)], 3 * S)
    assert told(engine) == (Condition.STUCK, FAILING.why, "no route", 8_500, "n01")


def test_an_agent_that_is_well_content_does_not_speak_for_its_parent() -> None:
    engine = parent()
    content = Standing(Condition.CONVERGED, 0)
    engine.handle([says(2, known=True, value="failed", standing=content)], 2 * S)

    assert told(engine)[:2] == (Condition.WAITING, "service.start is up to the agent of n01")


def test_words_of_a_lost_agent_are_not_repeated() -> None:
    engine = parent()
    engine.handle([says(2, known=True, value="failed", standing=FAILING)], 2 * S)
    for tick in range(21, 90):
        engine.handle([WatchReported(1, "on", tick * S // 10)], tick * S // 10)
    assert told(engine)[0] is Condition.WAITING
    assert told(engine)[4] is None

    engine.handle([Alive(("n01",), 9 * S)], 9 * S)
    assert told(engine) == (Condition.STUCK, FAILING.why, "no route", 9_500, "n01")


def test_a_value_that_only_the_agents_kinds_have_is_no_reading_here() -> None:
    engine = parent()
    engine.handle([says(2, known=True, value="running")], 2 * S)
    engine.handle([says(3, known=True, value="paused")], 3 * S)

    assert (dict(web(engine).belief.known), dict(web(engine).report.facts)) == ({}, {})


def test_words_of_a_lost_agent_are_not_repeated_of_what_needs_no_agent_either() -> None:
    look = Look("self", "look_busy", "node", "busy", ("free", "busy"))
    manifests = [load("labnode").manifest(), Manifest("self", "1", Context.SELF, (look,), ())]
    wanted = {"busy": Desired("free", "site")}
    stored = Stored(7, 1, [StoredEntity(NODE, {"platform": "labnode"}, "site", wanted, 1)], [], {})
    side = Side(Context.PARENT, None, 0xA1, "boot", S)
    engine = Engine(side, Catalog(KINDS, manifests), stored, 0, S)
    engine.handle([Ready("labnode"), Enrolled("n01", 1)], S)
    engine.handle([Answered(2, "on", S)], S)
    update = ObservedUpdate(NODE, 1, {}, standing=FAILING)
    message = Message(1, 0, 0, Mark(), Mark(0, 1, mark_digest({NODE: 1})), updates=(update,))
    engine.handle([Heard("n01", 77, message, S)], S)
    row = row_of(engine, NODE)
    assert (row.stance.condition, row.stance.why) == (Condition.STUCK, FAILING.why)

    for tick in range(11, 70):
        engine.handle([WatchReported(1, "on", tick * S // 10)], tick * S // 10)
    assert (row.stance.condition, row.stance.why) == (
        Condition.WAITING,
        "self.look_busy is up to the agent of n01",
    )
