"""What a disruptive step excludes must be known not to be so: a memory is no evidence."""

from dataclasses import replace
from typing import Any

import pytest

from haptera.core.state.limits import S
from haptera.kinds.node import busy
from haptera.model.entity import node_id
from haptera.model.facts import Method
from haptera.model.messages import SeenValue
from haptera.model.parts import Context, Look, Manifest, Requirement, Step
from tests.core.scenario import row_of
from tests.core.test_safety import BMC, OFF, H, Rig

CAREFUL = replace(OFF, excludes=(Requirement("busy", ("busy",)),))
BATCH_LOOK = Look(
    "batch", "look_busy", "node", "busy", ("free", "busy"), context=Context.PARENT, within_ms=1000
)
BATCH = Manifest("batch", "1", Context.PARENT, (BATCH_LOOK,), ())
GATE_LOOK = replace(BATCH_LOOK, module="jobs", context=Context.SELF)
GATE = Manifest("jobs", "1", Context.SELF, (GATE_LOOK,), (), gate=True)


def rig(other: Manifest, *, step: Step = CAREFUL, **given: Any) -> Rig:
    return Rig(("n01",), modules=(replace(BMC, steps=(step,)), other), **given)


def test_a_node_is_not_switched_off_while_the_batch_system_cannot_say_that_it_is_free() -> None:
    one = rig(BATCH, finds={"look_busy": "free"}, refusal="not yet")
    one.run(30)
    one.finds["look_busy"] = None
    one.run(60)
    one.refusal = None
    one.run(300)
    assert one.called == []
    why = one.why("n01") or ""
    text = (
        "bmc.switch_off waits: busy is only remembered as free: batch.look_busy: connection refused"
    )
    assert why.startswith(text)
    assert one.needs("n01") == "a reading of busy"
    one.finds["look_busy"] = "free"
    one.run(120)
    assert len(one.called) == 1


@pytest.mark.parametrize(("known", "calls"), [(True, 1), (False, 0)])
def test_what_the_agent_only_remembers_is_no_evidence(known: bool, calls: int) -> None:
    free = SeenValue("free", known, Method.READ, 0, "jobs")
    one = rig(GATE, observed={"busy": free})
    one.run(60)
    assert len(one.called) == calls


def test_a_lost_node_that_may_be_recovered_is_not_asked_what_only_it_could_know() -> None:
    free = SeenValue("free", known=True, method=Method.READ, age_ms=0, by="jobs")
    one = rig(GATE, observed={"busy": free}, refusal="not yet", attributes={"if_lost": "recover"})
    one.run(10)
    one.silent.add("n01")
    one.run(30 * H / S)
    assert len(one.called) == 1


def test_a_node_that_never_has_jobs_is_known_to_be_free_without_a_look() -> None:
    sure = replace(OFF, requires=(*OFF.requires, Requirement("busy", ("free",))))
    one = rig(GATE, step=sure, attributes={"jobs": "none"})
    one.run(10)
    assert len(one.called) == 1
    row = row_of(one.engine, node_id("n01"))
    assert (row.belief.known[busy.name].value, row.belief.known[busy.name].by) == ("free", "sync")


def test_a_module_that_reads_a_node_busy_is_believed_whatever_the_node_declares() -> None:
    one = rig(BATCH, finds={"look_busy": "busy"}, attributes={"jobs": "none"})
    one.run(60)
    row = row_of(one.engine, node_id("n01"))
    assert (row.belief.known[busy.name].value, row.work.conflicts) == ("busy", {})
    assert one.called == []


def test_who_is_silent_is_named_before_what_only_its_agent_could_read() -> None:
    one = rig(GATE, silent={"n01"})
    one.run(60)
    assert one.why("n01") == "bmc.switch_off waits: the agent of n01 is silent: no-permit"
