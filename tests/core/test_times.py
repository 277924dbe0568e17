"""Entities that wait for a known time say which."""

from haptera.core.state.limits import MS, S
from haptera.core.state.row import EntityState
from haptera.core.sync.peers import DOWN_AFTER
from haptera.core.views.query import view
from haptera.model.entity import node_id
from tests.core.test_safety import OFF, H, Rig


def row_of(rig: Rig) -> EntityState:
    row = rig.engine.table.get(node_id("n01"))
    assert row is not None
    return row


def test_a_promoted_parent_says_until_when_it_leaves_nodes_alone() -> None:
    rig = Rig(("n01",), answers=False)
    until = rig.engine.safety.succeed([OFF], rig.now)
    rig.hello("n01")
    rig.run(0.1)
    assert "the former parent may still" in str(rig.why("n01"))
    assert view(row_of(rig), rig.now).again_in_ms == (until - rig.now) // MS


def test_a_node_that_may_be_disturbed_once_it_was_silent_for_long_says_when() -> None:
    rig = Rig(("n01",), refusal="busy", attributes={"if_lost": "recover"})
    rig.run(6)
    rig.silent.add("n01")
    rig.run(6 * H / S)
    assert rig.why("n01") == "bmc.switch_off waits: the agent of n01 is silent: no-permit"
    again_in_ms = view(row_of(rig), rig.now).again_in_ms
    assert again_in_ms is not None
    rig.run(again_in_ms / 1_000 + 1)
    assert len(rig.called) == 1
    assert again_in_ms < DOWN_AFTER * H // MS
