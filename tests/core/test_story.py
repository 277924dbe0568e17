"""The story of an entity: what had happened, what was decided, and what it claimed."""

from haptera.core.views.story import SHOWN_MAX, STORY_MAX
from haptera.model.answers.story import DecisionView
from haptera.model.entity import node_id
from tests.core.scenario import row_of
from tests.core.test_safety import OFF, Rig


def told(rig: Rig, name: str) -> list[DecisionView]:
    row = row_of(rig.engine, node_id(name))
    return rig.engine.rounds.decisions.story.of(row, rig.now).decisions


def test_a_step_is_told_from_the_first_look_to_its_outcome() -> None:
    rig = Rig(("n01",))
    rig.run(3)
    story = told(rig, "n01")
    steps = [one.next for one in story]
    assert steps.index("look: bmc.look") < steps.index("step: bmc.switch_off")
    asked = next(
        one for one in story if one.next == "wait for an answer to the request for a permit"
    )
    assert asked.why == "bmc.switch_off waits: n01 is asked for its permit"
    assert asked.claims == [
        "process of the module (bmc): granted",
        "place in the queue of the module (bmc.switch_off): granted",
        "place in the budgets here (node:n01): granted",
        "permit of the node (n01): n01 is asked for its permit",
    ]
    last = story[-1]
    assert (last.condition, last.next, last.claims) == ("converged", "wait", [])
    assert last.ended == [f"{OFF.path}: done"]
    assert last.seen == {"power": "off"}
    reading = story[-2]
    assert reading.why == "bmc.switch_off: its outcome is being read"
    assert reading.seen == {"power": None, "agent": None}


def test_what_is_decided_again_and_again_is_told_once() -> None:
    rig = Rig(("n01",), silent={"n01"})
    rig.run(2)
    before = len(told(rig, "n01"))
    rig.run(60)
    assert len(told(rig, "n01")) <= before + 2
    assert told(rig, "n01")[-1].next == "wait for a hello of the node's agent"


def test_of_each_entity_no_more_is_told_than_is_shown() -> None:
    rig = Rig(("n01",), refusal="job 7 runs")
    rig.run(600)
    assert len(told(rig, "n01")) == SHOWN_MAX
    assert SHOWN_MAX < STORY_MAX
