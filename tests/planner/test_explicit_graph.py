"""The paper's explicit graph: how large it grows, and where the planner must differ from it.

Where they agree, the planner is held to the plain model of its semantics, which says more.
"""

import time
from collections.abc import Callable
from typing import Any

import pytest

from haptera.model.chain import Chain, Find, NoChain
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.explain.problem_json import problem_from_json
from haptera.planner.planner import plan
from tests.planner.explicit_graph import ExplicitGraph
from tests.planner.planner_model import State
from tests.planner.test_worked_examples import (
    LOOK_AGENT,
    PROBLEM,
    START,
    STOP,
    SWITCH_OFF,
    SWITCH_ON,
)


def independent(count: int) -> dict[str, Any]:
    """Variables of three values that have nothing to do with each other."""
    return stacked(count, lambda name, below: {})


def row(count: int) -> dict[str, Any]:
    """Each can be known and changed only while the one before it is `b`."""
    return stacked(count, lambda name, below: {} if below is None else {below: "b"})


def stacked(count: int, requires: Any) -> dict[str, Any]:
    names = [f"v{number}" for number in range(count)]
    below = dict(zip(names, [None, *names[:-1]], strict=True))
    looks, steps = [], []
    for one in names:
        needs = {"requires": requires(one, below[one])}
        looks.append({"name": f"look_{one}", "at": one, "outcomes": ["a", "b"], **needs})
        for source, target in ("ab", "ba"):
            name = f"{source}_{target}_{one}"
            steps.append({"name": name, "changes": {one: [source, target]}, **needs})
    variables = {one: ["unknown", "a", "b"] for one in names}
    return {"variables": variables, "looks": looks, "steps": steps}


def graph(data: dict[str, Any], *, one_pass: bool = False) -> ExplicitGraph:
    return ExplicitGraph(problem_from_json(data).problem, one_pass=one_pass)


def planned(problem: Problem, observed: State, desired: State) -> Chain | NoChain:
    domain = compile_class(problem)
    return plan(domain, domain.start(observed, {}), desired)


def names(found: Chain | NoChain) -> list[str]:
    assert isinstance(found, Chain)
    return [one.look.name if isinstance(one, Find) else one.step.name for one in found.links]


def both(
    data: dict[str, Any], observed: State, desired: State
) -> tuple[list[str] | None, list[str] | None]:
    """The parts that the planner and the graph would take, None for no chain."""
    hops = graph(data).path(observed, desired)
    found = planned(problem_from_json(data).problem, observed, desired)
    ours = names(found) if isinstance(found, Chain) else None
    return ours, None if hops is None else [hop.part for hop in hops]


# How large it grows


@pytest.mark.parametrize(("count", "states", "edges"), [(2, 9, 24), (4, 81, 432), (8, 6561, 69984)])
def test_the_graph_has_each_combination_of_what_is_independent(
    count: int, states: int, edges: int, record_property: Callable[[str, object], None]
) -> None:
    began = time.perf_counter()
    found = graph(independent(count))
    record_property("took_s", time.perf_counter() - began)  # told, not judged
    # 3 ** count states; in each, a variable has two outcomes if unknown, one step if known.
    assert (len(found.states), found.edges) == (states, edges)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_a_row_has_few_states_once_stripped_to_the_end(count: int) -> None:
    """The first k are `b`, the next is unknown or `a`."""
    assert len(graph(row(count)).states) == 2 * count + 1


@pytest.mark.parametrize(("count", "states"), [(5, 55), (8, 589)])
def test_a_row_stripped_once_keeps_states_that_nobody_can_know(count: int, states: int) -> None:
    """As the original: it counts 56 and 589, the root of its own among the 56."""
    assert len(graph(row(count), one_pass=True).states) == states


def without_platform() -> dict[str, Any]:
    return {"name": "look_power", "at": "power", "outcomes": ["off", "on"]}


# Where they must differ


def test_the_graph_wishes_and_the_planner_does_not() -> None:
    """Power-cycled, the agent is forgotten, and then "discovered" as one would like it."""
    steps = [SWITCH_ON, SWITCH_OFF | {"excludes": {}}, START]
    data = PROBLEM | {"attributes": {}, "looks": [without_platform(), LOOK_AGENT], "steps": steps}
    assert both(data, {"power": "on", "agent": "up"}, {"agent": "down"}) == (
        None,
        ["switch_off", "switch_on", "look_agent"],
    )


def test_the_graph_prefers_a_cheap_wish_to_an_honest_step() -> None:
    dear = STOP | {"cost": 5}
    steps = [SWITCH_ON, SWITCH_OFF | {"excludes": {}}, START, dear]
    data = PROBLEM | {"attributes": {}, "looks": [without_platform(), LOOK_AGENT], "steps": steps}
    assert both(data, {"power": "on", "agent": "up"}, {"agent": "down"}) == (
        ["stop"],
        ["switch_off", "switch_on", "look_agent"],
    )


def test_stripped_once_the_graph_meets_a_goal_that_nobody_can_know() -> None:
    """Lowering the first of three takes all that rests on it; the original forgets the second."""
    data = row(3)
    problem = problem_from_json(data).problem
    observed = {"v0": "b", "v1": "b", "v2": "a"}
    goal = {"v0": "a", "v2": "a"}

    hops = graph(data, one_pass=True).path(observed, goal)
    assert hops is not None
    assert [hop.part for hop in hops] == ["b_a_v0"]
    assert graph(data).path(observed, goal) is None
    found = planned(problem, observed, goal)
    assert isinstance(found, NoChain)
    assert found.reason.kind == "unknowable-goal"


def test_what_is_remembered_bars_in_the_planner_and_is_nothing_to_the_graph() -> None:
    """A node fell silent: the graph switches off under a running agent."""
    data = PROBLEM | {"attributes": {}, "looks": [without_platform(), LOOK_AGENT]}
    assert both(data, {"power": "on"}, {"power": "off"})[1] == ["switch_off"]

    domain = compile_class(problem_from_json(data).problem)
    found = plan(domain, domain.start({"power": "on"}, {"agent": "up"}), {"power": "off"})
    assert names(found) == ["look_agent", "stop", "switch_off"]


def test_where_each_value_has_a_look_of_its_own_the_graph_forgets_nothing() -> None:
    """Nothing is common to the states in which it is discovered; so it goes on being known."""
    looks = [
        {"name": "look_p", "at": "p", "outcomes": ["1", "2"]},
        {"name": "one", "at": "v", "outcomes": ["1"], "requires": {"p": "1"}},
        {"name": "two", "at": "v", "outcomes": ["2"], "requires": {"p": "2"}},
    ]
    steps = [{"name": "turn", "changes": {"p": ["1", "2"]}}]
    values = ["unknown", "1", "2"]
    data = {"variables": {"p": values, "v": values}, "looks": looks, "steps": steps}
    goal = {"p": "2", "v": "1"}
    assert both(data, {"p": "1", "v": "1"}, goal) == (None, ["turn"])
