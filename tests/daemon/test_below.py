"""What parents below tell of themselves, and of those below them."""

import asyncio

import msgspec

import haptera
from haptera.core.engine import Engine
from haptera.core.modules.catalog import Catalog
from haptera.core.state.side import Side
from haptera.daemon.tree.below import Below, Doubt, SubtreeReport
from haptera.kinds import KINDS
from haptera.model.answers.views import ParentView
from haptera.model.changes import StoredEntity
from haptera.model.entity import node_id
from haptera.model.parts import Context
from haptera.planner.domain.pieces import at_once
from haptera.runtime.store.store import Stored

S = 1_000_000_000
# Each node with the parents that it may have; n3 is the root's own.
LISTS = {"t1": "", "t2": "", "m1": "t1, t2", "n1": "m1", "n2": "m1", "n3": ""}


def below(name: str | None = None, doubt: Doubt | None = None) -> Below:
    entities = [
        StoredEntity(node_id(node), {"parents": listed} if listed else {}, "site", {}, 1)
        for node, listed in LISTS.items()
    ]
    side = Side(Context.PARENT, None, 1, "boot", S, name=name)
    engine = Engine(side, Catalog(KINDS, []), Stored(7, 1, entities, [], {}), 1, S)
    return Below(engine, lambda _events: None, nobody, doubt or nobody, 0)


async def nobody(*_told: object) -> None:
    raise AssertionError("nothing was told of sessions")


def report(one: Below, parent: str, parents: list[ParentView]) -> None:
    told = SubtreeReport(parent, (), {}, (), parents=tuple(parents))
    asyncio.run(one.take(msgspec.msgpack.encode(told)))


def told_by(one: Below) -> list[tuple[str | None, ...]]:
    """Of each parent all but how long ago it was heard, which a clock decides."""
    views = at_once(one.parents())
    assert [view.heard_ms is None for view in views] == [view.keeps is None for view in views]
    return [(view.name, view.above, view.version, view.keeps) for view in views]


def test_a_root_tells_of_the_parents_below_it_at_any_depth_and_of_the_silent_ones() -> None:
    root, middle, leaf = below(), below("t1"), below("m1")
    assert told_by(leaf) == [("m1", None, haptera.__version__, "n[1-2]")]
    report(middle, "m1", at_once(leaf.parents()))
    report(root, "t1", at_once(middle.parents()))
    assert told_by(root) == [
        (None, None, haptera.__version__, "n3,t[1-2]"),
        ("m1", "t1", haptera.__version__, "n[1-2]"),
        ("t1", None, haptera.__version__, "m1"),
        ("t2", None, None, None),
    ]


def test_the_silent_parents_are_faults_of_the_cluster_until_they_report() -> None:
    root, middle, leaf = below(), below("t1"), below("m1")
    said = "is a parent that does not report: what is below is shown as it was last reported"
    assert at_once(root.faults()) == [f"{one} {said}" for one in ("m1", "t1", "t2")]
    report(middle, "m1", at_once(leaf.parents()))
    report(root, "t1", at_once(middle.parents()))
    assert at_once(root.faults()) == [f"t2 {said}"]
    assert at_once(leaf.faults()) == []


def test_who_moved_is_told_of_where_it_was_heard_last() -> None:
    root, moved = below(), ParentView("m1", None, "1", "n1", 5)
    report(root, "t1", [ParentView("t1", None, "1", "", 0), moved])
    report(root, "t2", [ParentView("t2", None, "1", "", 0), ParentView("m1", None, "2", "n2", 0)])
    assert told_by(root)[1] == ("m1", "t2", "2", "n2")


def test_a_parent_tells_of_none_that_is_not_below_it() -> None:
    root = below()
    report(root, "m1", [ParentView("m1", None, "1", "", 0), ParentView("t2", None, "9", "n3", 0)])
    assert told_by(root)[1:] == [
        ("m1", None, "1", ""),
        ("t1", None, None, None),
        ("t2", None, None, None),
    ]


def test_a_parent_of_an_earlier_version_is_heard_though_it_tells_nothing() -> None:
    root = below()
    report(root, "t1", [])
    (one,) = [view for view in at_once(root.parents()) if view.name == "t1"]
    assert one.heard_ms is not None
    assert one.version is None


def test_a_parent_doubts_only_nodes_that_it_leads_to() -> None:
    doubted: list[tuple[str, int]] = []

    async def doubt(node: str, incarnation: int) -> None:
        doubted.append((node, incarnation))

    boots = {"n1": 4, "n3": 1, "t1": 1, "nowhere": 1}
    told = SubtreeReport("m1", (), {}, (), doubted=boots)
    asyncio.run(below(doubt=doubt).take(msgspec.msgpack.encode(told)))
    assert doubted == [("n1", 4)]
