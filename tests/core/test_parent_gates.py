"""Gates at the parent: nodes without an agent, and a batch system that drains before it permits."""

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from haptera.core.modules.gates import MEND, NEVER
from haptera.core.safety.gate import DRAIN_AGAIN_NS
from haptera.core.safety.node_gates import DRAIN_NS_MAX, DRAIN_REST_NS, UNASKED_NS
from haptera.core.state.limits import MS, S
from haptera.model.changes import Declare, SetDesired
from haptera.model.effects import PlanReply
from haptera.model.entity import EntityId, node_id
from haptera.model.events import Considered, Failed, Proposed
from haptera.model.intent import Intent
from haptera.model.messages import Permit, RoomAsk
from haptera.model.parts import Context, Look, Manifest, Requirement
from tests.core.test_safety import BMC, H, Rig

LOOK = Look("batch", "look_busy", "node", "busy", ("free", "busy"), context=Context.PARENT)
BATCH = Manifest("batch", "1", Context.PARENT, (LOOK,), (), gate=True)
ELSEWHERE = replace(BATCH, looks=(replace(LOOK, requires=(Requirement("rack", ("r9",)),)),))
ALONE = {"has_agent": "never"}


def rig(*modules: Manifest, attributes: dict[str, str] = ALONE, **given: Any) -> Rig:
    finds: dict[str, str | None] = {"look_busy": "free"}
    given = {"enrolled": False, "finds": finds, "nodes": ("n01",), **given}
    return Rig(modules=(BMC, *modules), attributes=attributes, **given)


@pytest.mark.parametrize("modules", [(), (ELSEWHERE,)])
def test_a_permit_that_can_never_come_is_said_to_be_one_and_costs_nothing(
    modules: tuple[Manifest, ...],
) -> None:
    one = rig(*modules)
    one.run(120)
    assert one.called == []
    assert one.why("n01") == f"bmc.switch_off waits: {NEVER}"
    assert one.needs("n01") == MEND


def test_a_node_without_an_agent_and_without_jobs_is_disturbed_on_its_word() -> None:
    one = rig(attributes={**ALONE, "jobs": "none"})
    one.run(10)
    assert [name for _, name in one.called] == ["n01"]


def test_a_gate_at_the_parent_permits_for_a_node_without_an_agent() -> None:
    one = rig(BATCH)
    one.run(20)
    assert [name for _, name in one.called] == ["n01"]
    assert one.held == ["hold n01", "release n01"]


def test_a_gate_that_refuses_is_asked_again_later_and_opened_meanwhile() -> None:
    one = rig(BATCH, gate=Failed(0, "reserved", refused=True))
    one.run(4)
    assert one.why("n01") == "bmc.switch_off waits: n01 does not permit it: batch: reserved"
    assert one.held[-2:] == ["hold n01", "release n01"]
    one.gate = None
    one.run(20)
    assert len(one.called) == 1


def test_a_draining_node_stays_held_until_its_jobs_have_ended() -> None:
    one = rig(BATCH, gate=Failed(0, "2 jobs run", drained_ms=0))
    one.run(200)
    assert one.called == []
    assert one.why("n01") == "bmc.switch_off waits: n01 is being drained: batch: 2 jobs run"
    assert set(one.held) == {"hold n01"}
    assert 200 * S // DRAIN_AGAIN_NS - 2 <= len(one.held) <= 200 * S // DRAIN_AGAIN_NS + 2
    one.gate = None
    one.run(2 * DRAIN_AGAIN_NS / S)
    assert len(one.called) == 1
    one.run(20)
    assert one.held[-1] == "release n01"


def test_no_more_nodes_are_drained_at_once_than_the_budgets_allow() -> None:
    nodes = tuple(f"n{at:02}" for at in range(8))
    one = rig(BATCH, nodes=nodes, gate=Failed(0, "2 jobs run", drained_ms=0))
    one.run(200)
    # The others are released once, as an earlier process may have held them.
    assert {said for said in one.held if said.startswith("hold")} == {"hold n00"}
    one.gate = None
    one.run(60 * len(nodes))
    assert {name for _, name in one.called} == set(nodes)


def test_a_node_that_was_drained_for_a_week_in_vain_is_let_go_of_for_an_hour() -> None:
    one = rig(BATCH, gate=Failed(0, "2 jobs run", drained_ms=0))
    one.run(20)
    one.now += DRAIN_NS_MAX
    one.run(20)
    text = "n01 does not permit it: it was drained for 7 d without success"
    assert one.why("n01") == f"bmc.switch_off waits: {text}"
    assert one.held[-1] == "release n01"
    before = len(one.held)
    one.run(100)
    assert len(one.held) == before
    one.gate = None
    one.now += DRAIN_REST_NS
    one.run(60)
    assert len(one.called) == 1


def test_a_drain_that_an_earlier_process_began_is_held_on_and_lasts_no_longer_than_a_week() -> None:
    a_week_ms, minutes = DRAIN_NS_MAX // MS, 180
    drained = Failed(0, "2 jobs run", drained_ms=a_week_ms - minutes * 60_000)
    one = rig(BATCH, gate=drained)
    one.run(60 * (minutes - 1))
    # It is not let go of at the start, not even for a moment.
    assert set(one.held) == {"hold n01"}
    one.run(120)
    text = "n01 does not permit it: it was drained for 7 d without success"
    assert one.why("n01") == f"bmc.switch_off waits: {text}"
    assert one.held[-1] == "release n01"


def test_a_drain_that_is_not_wanted_any_more_is_undone() -> None:
    one = rig(BATCH, gate=Failed(0, "2 jobs run", drained_ms=0))
    one.run(20)
    one._tell([Proposed(1, (SetDesired(node_id("n01"), "power", "on", "site"),))])
    one.run(20)
    assert one.held[-1] == "release n01"


def test_agent_and_gate_at_the_parent_must_both_permit() -> None:
    refuses = Failed(0, "reserved", refused=True)
    one = rig(BATCH, attributes={}, enrolled=True, gate=refuses)
    one.run(60)
    assert one.called == []
    other = rig(BATCH, attributes={}, enrolled=True, refusal="2 jobs run")
    other.run(60)
    assert other.called == []
    other.refusal = None
    other.run(20)
    assert len(other.called) == 1


def test_an_agent_is_lent_room_once_the_gates_at_the_parent_permit_what_it_means_to_do() -> None:
    compute = EntityId("system", "compute", "n01")
    asked = RoomAsk("b2-1", compute, late_ms=70_000)
    draining = Failed(0, "1 job runs", drained_ms=0)
    one = rig(BATCH, attributes={}, enrolled=True, desired=("none",), gate=draining)
    one.room_asks = (asked,)
    one.run(60)
    text = "n01 is being drained: batch: 1 job runs"
    assert one.lent["n01"] == (Permit("b2-1", granted=False, text=text),)
    assert "release n01" not in one.held
    one.gate = None
    one.run(2 * DRAIN_AGAIN_NS / S)
    assert one.lent["n01"] == (Permit("b2-1", granted=True),)

    one.room_asks = (structs.replace(asked, begun=True),)
    one.run(60)
    assert one.held[-1] == "hold n01"
    one.room_asks = ()
    one.run(5)
    assert one.held[-1] == "release n01"


def test_an_agent_is_not_lent_room_where_a_gate_at_the_parent_refuses_or_does_not_answer() -> None:
    asked = RoomAsk("b2-1", EntityId("system", "compute", "n01"), late_ms=70_000)
    one = rig(BATCH, attributes={}, enrolled=True, desired=("none",), gate=Failed(0, "is away"))
    one.room_asks = (asked,)
    one.run(60)
    text = "it is not permitted: batch: is away"
    assert one.lent["n01"] == (Permit("b2-1", granted=False, text=text),)


def test_an_agent_that_is_there_after_all_is_asked() -> None:
    one = rig(attributes={**ALONE, "jobs": "none"}, enrolled=True, refusal="2 jobs run")
    one.run(60)
    assert one.called == []
    assert one.why("n01") == "bmc.switch_off waits: n01 does not permit it: 2 jobs run"


def test_what_an_earlier_process_held_is_let_go_of_unless_it_is_asked_for() -> None:
    nodes = tuple(f"n{number:02}" for number in range(40))
    intent = Intent("99-1", node_id("n00"), "bmc", "switch_off", S // 2, "boot", disruptive=True)
    one = rig(BATCH, nodes=nodes, desired=("none",), intents=(intent,))
    one.run(1)
    assert one.held == ["hold n00"]
    one.run(20)
    assert one.held == ["hold n00", "release n00"]
    one.run(UNASKED_NS / S)
    assert set(one.held) == {"hold n00", *(f"release {name}" for name in nodes)}


def test_who_waits_for_an_agent_is_decided_on_when_it_is_heard_and_not_before() -> None:
    """A thousand such nodes, each decided on five times in H, cost 16 % of a core."""
    one = Rig(("n01",), silent={"n01"})
    one.run(10 * H / S)
    before = one.turns
    one.run(100 * H / S)
    assert one.turns - before < 4 * 100
    assert one.called == []
    one.silent.clear()
    one.run(2 * H / S)
    assert len(one.called) == 1


def test_a_plan_says_which_permits_can_never_come() -> None:
    one = rig(nodes=("n01", "n02"), desired=("none",), finds={})
    one.engine.table.apply(Declare(node_id("n02"), {"platform": "test", "jobs": "none"}, "site"), 4)
    one.run(2)
    off = tuple(SetDesired(node_id(name), "power", "off", "site") for name in ("n01", "n02"))
    effects = one.engine.handle([Considered(9, off)], one.now)
    (plan,) = (effect.plan for effect in effects if isinstance(effect, PlanReply))
    assert plan is not None
    assert [group.why for group in plan.groups] == [f"bmc.switch_off waits on n01: {NEVER}"]
