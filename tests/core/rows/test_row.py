"""What a row makes of its facts, as the planner is told of them."""

from haptera.core.state.row import EntityState
from haptera.kinds import KINDS
from haptera.model.entity import node_id
from haptera.model.facts import Fact, Method


def test_what_was_only_inferred_is_observed_but_meets_no_goal() -> None:
    row = EntityState(node_id("n01"), KINDS["node"])
    row.belief.learn("power", Fact("hung", "lab", Method.INFERRED, 1, 0))
    assert row.seen({"power": "on"}) == ({"power": "hung"}, {})
    assert row.seen({"power": "hung"}) == ({}, {"power": "hung"})
    row.belief.learn("power", Fact("hung", "lab", Method.READ, 2, 0))
    assert row.seen({"power": "hung"}) == ({"power": "hung"}, {})
