"""Which parent of a tree acts on a node, and whose word on it counts at the root."""

from itertools import count

from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.limits import MS, S
from haptera.core.state.side import Side
from haptera.core.sync.reporter import Reporter
from haptera.core.sync.reports import UNDECLARED_MAX
from haptera.kinds import KINDS
from haptera.model.answers.views import Condition
from haptera.model.changes import Declare, Desired, Stored, StoredEntity
from haptera.model.effects import Call, Effect, Tell, Write
from haptera.model.entity import EntityId, node_id
from haptera.model.events import (
    Heard,
    Proposed,
    ReadingReported,
    Ready,
    Reported,
    Silenced,
    Ticked,
    Written,
)
from haptera.model.facts import REPORTED_MS_MAX, Method
from haptera.model.messages import Mark, Message, ObservedUpdate, SeenValue, Standing
from haptera.model.parts import Context
from haptera.modules import load
from tests.core.scenario import row_of

MANIFESTS = [load(name).manifest() for name in ("labnode", "service")]
NODE, WEB = node_id("n1"), EntityId("service", "web", "n1")
UP = {"power": ("on", "labnode"), "agent": ("up", "sync")}
SERIAL = count(1)


def engine(name: str | None, parents: str = "m1, m2") -> Engine:
    """A parent that is told of one node with a service."""
    entities = [
        StoredEntity(
            NODE,
            {"platform": "labnode", "parents": parents},
            "site",
            {"power": Desired("on", "site"), "agent": Desired("up", "site")},
            1,
        ),
        StoredEntity(WEB, {}, "site", {"run": Desired("running", "site")}, 2),
    ]
    side = Side(Context.PARENT, None, next(SERIAL), "boot", S, name=name)
    made = Engine(side, Catalog(KINDS, MANIFESTS), Stored(7, 2, entities, [], {"n1": 1}), 1, S)
    assert calls(made.handle([Ready("labnode")], S)) == ([] if not keeps(made) else ["labnode"])
    return made


def keeps(made: Engine) -> bool:
    return made.neighbours.charge.keeps("n1")


def calls(effects: list[Effect]) -> list[str]:
    """The modules that are asked for anything."""
    return sorted({one.module for one in effects if isinstance(one, Call)})


def test_what_others_report_is_a_memory_above_by_a_method_that_each_version_knows() -> None:
    """An older parent above would refuse the whole report for one value of a method it has not."""
    made = engine("m1")
    made.handle([hello(2 * S), ReadingReported(NODE, "busy", "busy", "report:rack", 2 * S)], 2 * S)
    near, belief = made.neighbours, row_of(made, NODE).belief
    reporter = Reporter(made.table, near.charge, near.reports)
    for now, held in ((3 * S, belief.known), (2 * S + REPORTED_MS_MAX * MS, belief.remembered)):
        made.handle([Ticked()], now)
        assert held["busy"].method is Method.REPORTED
        reporter.repeat()
        (busy,) = [one.values["busy"] for one in reporter.draft(now)[0] if one.entity == NODE]
        assert (busy.known, busy.method, busy.by) == (False, Method.READ, "report:rack")


def hello(at: int) -> Heard:
    return Heard("n1", 5, Message(1, 0, 1, Mark(), Mark()), at)


def told(entity: EntityId, values: dict[str, tuple[str, str]], why: str = "") -> ObservedUpdate:
    seen = {
        name: SeenValue(value, True, Method.READ, 0, by) for name, (value, by) in values.items()
    }
    condition = Condition.STUCK if why else Condition.CONVERGED
    return ObservedUpdate(entity, 1, seen, standing=Standing(condition, 0, why or None))


def stands(made: Engine, entity: EntityId) -> tuple[Condition, str | None, list[str]]:
    row = row_of(made, entity)
    return row.stance.condition, row.stance.why, sorted(row.belief.known)


def test_only_the_first_parent_on_the_list_looks_and_says_hello_at_first() -> None:
    made = {name: engine(name) for name in (None, "m1", "m2", "m3")}
    assert [name for name, one in made.items() if keeps(one)] == ["m1"]
    hellos = {
        name: any(isinstance(one, Tell) for one in made[name].handle([Ticked()], 3 * S))
        for name in made
    }
    assert hellos == {None: False, "m1": True, "m2": False, "m3": False}
    assert stands(made["m2"], NODE) == (Condition.WAITING, "is kept by m1", [])


def test_the_next_parent_acts_while_it_hears_the_node_and_no_longer() -> None:
    second = engine("m2")
    effects = second.handle([hello(2 * S)], 2 * S)
    assert (keeps(second), calls(effects), any(isinstance(one, Tell) for one in effects)) == (
        True,
        [],
        True,
    )
    effects = second.handle([Ready("labnode")], 2 * S)
    assert calls(effects) == ["labnode"]
    now = 2 * S
    while now < 8 * S:
        now = second.deadline() or now + S
        effects = second.handle([Ticked()], now)
        assert not any(isinstance(one, Write) for one in effects), "it begins no step"
    assert not keeps(second)
    assert stands(second, NODE) == (Condition.WAITING, "is kept by m1", [])
    assert second.neighbours.peer("n1") is None


def test_a_stranger_takes_up_no_node_that_is_not_its_own() -> None:
    other = engine("m3")
    assert other.handle([hello(2 * S)], 2 * S) == []
    assert not keeps(other)


def report(made: Engine, parent: str, at: int, heard: bool | None, *told: ObservedUpdate) -> None:
    """A parent below has told of the node whether it hears it; None: that it has no word on it."""
    made.handle([Reported(parent, told, {} if heard is None else {"n1": heard}, at * S)], at * S)


def test_the_root_shows_what_the_parent_reports_that_hears_the_node() -> None:
    root = engine(None)
    report(root, "m1", 2, True, told(NODE, UP))
    assert stands(root, NODE) == (Condition.CONVERGED, None, ["agent", "power"])
    report(root, "m2", 3, True, told(NODE, UP))
    report(root, "m1", 3, False, told(NODE, {"power": ("on", "labnode")}, "nothing heard"))
    assert stands(root, NODE) == (Condition.CONVERGED, None, ["agent", "power"])
    report(root, "m1", 4, True, told(NODE, UP, "too hot"))
    assert stands(root, NODE)[:2] == (Condition.STUCK, "too hot")
    root.handle([Silenced("m1")], 5 * S)
    assert stands(root, NODE)[:2] == (Condition.CONVERGED, None), "m2 hears it still"
    root.handle([Silenced("m2")], 6 * S)
    assert stands(root, NODE) == (Condition.WAITING, "is kept by m1", [])


def test_who_has_no_word_on_a_node_any_more_leaves_it_to_others() -> None:
    root = engine(None)
    report(root, "m1", 2, False, told(NODE, {"power": ("off", "labnode")}))
    report(root, "m2", 2, False, told(NODE, UP))
    assert stands(root, NODE)[2] == ["power"]
    report(root, "m1", 3, None)
    assert stands(root, NODE)[2] == ["agent", "power"]
    report(root, "m2", 4, None)
    assert stands(root, NODE) == (Condition.WAITING, "is kept by m1", [])


def test_a_parent_is_not_believed_about_nodes_of_others() -> None:
    root = engine(None)
    report(root, "m3", 2, True, told(NODE, UP, "the disk burns"), told(WEB, {}))
    assert stands(root, NODE) == (Condition.WAITING, "is kept by m1", [])
    assert root.neighbours.reports.refused == {"m3": 2}


def test_a_parent_above_the_one_on_the_list_is_believed_and_tells_it_on() -> None:
    root, top = engine(None), engine("t1")
    for one in (root, top):
        one.handle([Proposed(1, (Declare(node_id("m1"), {"parents": "t1, t2"}, "site"),))], 2 * S)
        one.handle([Written(1, 3)], 2 * S)
    report(root, "t2", 2, True, told(NODE, UP))
    assert stands(root, NODE)[2] == ["agent", "power"]
    report(top, "m1", 3, True, told(NODE, UP, "too hot"))
    assert not keeps(top)
    assert (root.neighbours.reports.subtree("n1"), root.neighbours.reports.subtree("m1")) == (
        "t2",
        "t1",
    )
    assert root.neighbours.charge.first_below("n1") == "t1", "if nobody had told"
    assert top.neighbours.reports.subtree("n1") == "m1"
    near = top.neighbours
    updates, nodes = (made := Reporter(top.table, near.charge, near.reports)).draft(3 * S)
    assert nodes == {"m1": False, "n1": True}
    assert [one.standing.why for one in updates if one.entity == NODE] == ["too hot"]
    assert made.draft(4 * S) == ((), None), "it is told already"
    report(top, "m1", 5, True, told(WEB, {}))
    made.changed([WEB])
    updates, nodes = made.draft(5 * S)
    assert ([one.entity for one in updates], nodes) == ([WEB], None)
    top.handle([Silenced("m1")], 6 * S)
    assert made.draft(6 * S) == ((), {"m1": False})


def test_without_a_list_the_root_keeps_a_node_and_no_parent_below_does() -> None:
    assert keeps(engine(None, parents=""))
    assert not keeps(engine("m1", parents=""))


def test_a_parent_that_reports_what_nobody_declared_fills_no_memory_and_is_counted() -> None:
    root = engine(None)
    made_up = [EntityId("service", f"s{number}", "n1") for number in range(UNDECLARED_MAX + 10)]
    running = {"run": ("running", "service")}
    report(root, "m1", 2, True, *(told(one, running) for one in made_up))
    report(root, "m1", 3, True, told(WEB, running))
    assert root.neighbours.refused == {"m1": 10}
    assert stands(root, WEB)[0] is Condition.CONVERGED

    # What was noted is shown once it is declared, and makes room for another.
    root.handle([Proposed(1, (Declare(made_up[0], {}, "site"),))], 4 * S)
    root.handle([Written(1, 3)], 4 * S)
    report(root, "m1", 5, True, told(made_up[-1], running), told(made_up[-2], running))
    assert root.neighbours.refused == {"m1": 11}
    # What is gone below makes room too.
    report(root, "m1", 5, True, told(made_up[1], {}), told(made_up[-2], running))
    assert root.neighbours.refused == {"m1": 11}

    # Who leaves the node leaves nothing of it behind.
    report(root, "m1", 6, None)
    report(root, "m1", 7, True, *(told(one, running) for one in made_up[-UNDECLARED_MAX:]))
    assert root.neighbours.refused == {"m1": 11}
