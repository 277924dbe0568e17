"""What a row makes of its facts, as the planner is told of them."""

from haptera.core.state.row import EntityState
from haptera.core.state.table import EntityTable
from haptera.kinds import KINDS
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import node_id
from haptera.model.facts import Fact, Method
from tests.core.scenario import row_of


def test_what_was_only_inferred_is_observed_but_meets_no_goal() -> None:
    row = EntityState(node_id("n01"), KINDS["node"])
    row.belief.learn("power", Fact("hung", "lab", Method.INFERRED, 1, 0))
    assert row.seen({"power": "on"}) == ({"power": "hung"}, {})
    assert row.seen({"power": "hung"}) == ({}, {"power": "hung"})
    row.belief.learn("power", Fact("hung", "lab", Method.READ, 2, 0))
    assert row.seen({"power": "hung"}) == ({"power": "hung"}, {})


def test_what_a_step_should_have_brought_about_is_no_longer_what_the_node_told_before() -> None:
    table, one = EntityTable(KINDS), node_id("n01")
    for change in (Declare(one, {}, "site"), SetDesired(one, "minos", "new", "site")):
        table.apply(change, 1)
    row = row_of(table, one)
    row.report.facts = {
        name: Fact("old", "minos", Method.READ, 1, 0) for name in ("booted", "other")
    }
    assert row.seen({}) == ({"booted": "stale", "other": "old"}, {})

    row.expect("booted", "current", "netboot", 2)

    assert row.seen({}) == ({"other": "old"}, {"booted": "current"})
    table.apply(SetDesired(one, "minos", "newer", "site"), 2)
    assert row.seen({}) == ({"other": "old"}, {"booted": "stale"})
