"""The worked examples of the planner's semantics, asked and answered as JSON."""

from typing import Any

from haptera.planner.domain.domain import compile_class
from haptera.planner.explain.problem_json import answer_to_json, problem_from_json
from haptera.planner.planner import plan

LOOK_POWER = {
    "name": "look_power",
    "at": "power",
    "outcomes": ["off", "on"],
    "requires": {"platform": "ipmi"},
}
LOOK_AGENT = {
    "name": "look_agent",
    "at": "agent",
    "outcomes": ["down", "up"],
    "requires": {"power": "on"},
    "cost": 1,
}
SWITCH_ON = {"name": "switch_on", "changes": {"power": ["off", "on"]}, "cost": 2}
SWITCH_OFF = {
    "name": "switch_off",
    "changes": {"power": ["on", "off"]},
    "excludes": {"agent": ["up"]},
}
START = {"name": "start", "changes": {"agent": ["down", "up"]}, "requires": {"power": "on"}}
STOP = {
    "name": "stop",
    "changes": {"agent": ["up", "down"]},
    "requires": {"power": "on"},
    "cost": 4,
}
PROBLEM: dict[str, Any] = {
    "variables": {"power": ["unknown", "off", "on"], "agent": ["unknown", "down", "up"]},
    "attributes": {"platform": "ipmi", "rack": None},
    "looks": [LOOK_POWER, LOOK_AGENT],
    "steps": [SWITCH_ON, SWITCH_OFF, START, STOP],
}


def answer(**given: Any) -> dict[str, Any]:
    question = problem_from_json(PROBLEM | given)
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    return answer_to_json(plan(domain, start, question.desired))


def chain(**given: Any) -> tuple[list[str], int]:
    """The names of the parts, with what looks expect, and the cost."""
    found = answer(**given)
    assert (found["verdict"], found["optimal"], found["doubts"]) == ("chain", True, False)
    return [_told(link) for link in found["chain"]], found["cost"]


def _told(link: dict[str, Any]) -> str:
    if "do" in link:
        return str(link["do"])
    return f"{link['look']} {'hopes for' if link['hoped'] else 'expects'} {link['expect']}"


def test_an_agent_is_started_on_a_machine_that_is_off() -> None:
    found = answer(observed={"power": "off"}, remembered={"agent": "down"}, desired={"agent": "up"})
    assert found == {
        "chain": [
            {"do": "switch_on"},
            {"look": "look_agent", "expect": "down", "hoped": False},
            {"do": "start"},
        ],
        "verdict": "chain",
        "cost": 4,
        "optimal": True,
        "doubts": False,
        "states": [
            {"power": "off"},
            {"power": "on"},
            {"power": "on", "agent": "down"},
            {"power": "on", "agent": "up"},
        ],
        "reason": None,
        "expanded": 4,
    }


def test_an_agent_is_stopped_and_the_machine_not_power_cycled() -> None:
    observed = {"power": "on", "agent": "up"}
    assert chain(observed=observed, desired={"agent": "down"}) == (["stop"], 4)


def test_without_the_exclude_power_cycling_leads_to_a_memory_that_a_look_finds_again() -> None:
    freely = SWITCH_OFF | {"excludes": {}}
    observed = {"power": "on", "agent": "up"}
    steps = [SWITCH_ON, freely, START]
    found = answer(steps=steps, observed=observed, desired={"agent": "down"})
    assert found["verdict"] == "none"
    found = answer(steps=[*steps, STOP], observed=observed, desired={"agent": "down"})
    assert found["chain"] == [{"do": "stop"}]


def test_what_was_never_known_may_be_hoped_for() -> None:
    observed = {"power": "on"}
    assert chain(observed=observed, desired={"agent": "down"}) == (["look_agent hopes for down"], 1)


def test_power_goes_off_after_the_agent() -> None:
    observed = {"power": "on", "agent": "up"}
    assert chain(observed=observed, desired={"power": "off"}) == (["stop", "switch_off"], 5)


def test_a_remembered_agent_excludes_as_well_and_is_looked_at_first() -> None:
    silent: dict[str, Any] = {"observed": {"power": "on"}, "remembered": {"agent": "up"}}
    chain_ = ["look_agent expects up", "stop", "switch_off"]
    assert chain(**silent, desired={"power": "off"}) == (chain_, 6)


def test_what_is_offered_for_the_hung_is_dearer() -> None:
    force_off = {"name": "force_off", "changes": {"power": ["on", "off"]}, "cost": 20}
    silent: dict[str, Any] = {"observed": {"power": "on"}, "remembered": {"agent": "up"}}
    steps = [SWITCH_ON, SWITCH_OFF, START, force_off]
    assert chain(**silent, desired={"power": "off"}, steps=steps) == (["force_off"], 20)
    steps = [*steps, STOP]
    assert chain(**silent, desired={"power": "off"}, steps=steps)[1] == 6


def test_an_agent_on_a_machine_that_is_off_is_remembered_only() -> None:
    question = problem_from_json(PROBLEM | {"observed": {"power": "off", "agent": "up"}})
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    assert (domain.known(start), domain.remembered(start)) == ({"power": "off"}, {"agent": "up"})


REBOOT = {"name": "reboot", "changes": {"agent": ["*", "up?"]}, "requires": {"power": "on"}}


def test_a_boot_brings_the_agent_up_once_a_look_finds_it() -> None:
    steps = [SWITCH_ON, SWITCH_OFF, REBOOT]
    down = {"power": "on", "agent": "down"}
    assert chain(steps=steps, observed=down, desired={"agent": "up"}) == (
        ["reboot", "look_agent expects up"],
        2,
    )


def test_a_boot_is_no_way_to_an_agent_that_is_down() -> None:
    steps = [SWITCH_ON, SWITCH_OFF, REBOOT]
    for agent in ({"agent": "up"}, {}):
        found = answer(
            steps=steps,
            observed={"power": "on", **agent},
            remembered={} if agent else {"agent": "up"},
            desired={"agent": "down"},
        )
        assert found["doubts"] is (not agent)
    assert found["chain"] == [{"look": "look_agent", "expect": "down", "hoped": True}]


def test_where_memory_stands_in_the_way_it_is_doubted() -> None:
    looks = [
        LOOK_POWER,
        LOOK_AGENT | {"name": "look_agent2", "outcomes": ["down"]},
        LOOK_AGENT | {"name": "look_agent3", "outcomes": ["up"]},
    ]
    found = answer(
        looks=looks,
        steps=[],
        observed={"power": "on"},
        remembered={"agent": "up"},
        desired={"agent": "down"},
    )
    assert found["chain"] == [{"look": "look_agent2", "expect": "down", "hoped": True}]
    assert (found["doubts"], found["cost"], found["optimal"]) == (True, 1, True)


def row(at: str, below: str | None) -> dict[str, Any]:
    requires = {} if below is None else {below: "2"}
    return {"name": f"look_{at}", "at": at, "outcomes": ["1", "2"], "requires": requires}


def test_three_in_a_row_are_forgotten_together() -> None:
    values = ["unknown", "1", "2"]
    found = answer(
        variables={"a": values, "b": values, "c": values},
        attributes={},
        looks=[row("c", "b"), row("b", "a"), row("a", None)],
        steps=[{"name": "lower", "changes": {"a": ["2", "1"]}}],
        observed={"a": "2", "b": "2", "c": "1"},
        desired={"a": "1"},
    )
    assert found["states"] == [{"a": "2", "b": "2", "c": "1"}, {"a": "1"}]


def test_a_reason_is_told_as_json() -> None:
    variables = PROBLEM["variables"] | {"node.agent": ["unknown", "up"]}
    start = START | {"requires": {"node.agent": "up"}}
    found = answer(
        variables=variables,
        steps=[start],
        observed={"power": "on", "agent": "down"},
        desired={"agent": "up"},
    )
    assert found == {
        "chain": None,
        "verdict": "none",
        "cost": None,
        "optimal": False,
        "doubts": False,
        "states": None,
        "reason": {
            "kind": "waits",
            "variable": "node.agent",
            "text": "waits for node.agent=up",
            "waits_for": {"node.agent": "up"},
        },
        "expanded": found["expanded"],
    }
