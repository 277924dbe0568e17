"""The planner beside the paper's explicit graph: where they agree, and where they must not."""

import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from haptera.model.chain import Chain, Find, NoChain
from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.explain.problem_json import problem_from_json
from haptera.planner.planner import plan
from tests.planner.explicit_graph import ExplicitGraph
from tests.planner.planner_model import Model, State, meets
from tests.planner.test_worked_examples import (
    LOOK_AGENT,
    PROBLEM,
    START,
    STOP,
    SWITCH_OFF,
    SWITCH_ON,
)

EXAMPLES = 200
# Of the examples, how many have to be plans of two parts or more, and how many real wishes.
PLANS_MIN, WISHES_MIN = 20, 3


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


# Where the two agree


@pytest.mark.parametrize("count", [1, 2, 5])
def test_independent_variables_are_found_and_changed_alike(count: int) -> None:
    data = independent(count)
    every = [f"v{number}" for number in range(count)]
    for observed in ({}, dict.fromkeys(every, "a"), {"v0": "b"}):
        ours, theirs = both(data, observed, dict.fromkeys(every, "b"))
        assert ours is not None
        assert theirs is not None
        assert Counter(ours) == Counter(theirs)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_a_row_is_gone_up_and_down_alike(count: int) -> None:
    data = row(count)
    every = [f"v{number}" for number in range(count)]
    up = dict.fromkeys(every, "b")
    looked = [f"look_{one}" for one in every]
    assert both(data, {}, up) == (looked, looked)
    assert both(data, up, {"v0": "a"}) == (["b_a_v0"], ["b_a_v0"])
    turned = [part for one in every[1:] for part in (f"look_{one}",)]
    assert both(data, {"v0": "a"}, up) == (["a_b_v0", *turned], ["a_b_v0", *turned])


def test_the_worked_examples_without_memory_go_alike() -> None:
    data = PROBLEM | {"attributes": {}, "looks": [without_platform(), LOOK_AGENT]}
    for observed, desired, parts in (
        ({"power": "on", "agent": "up"}, {"agent": "down"}, ["stop"]),
        ({"power": "on"}, {"agent": "down"}, ["look_agent"]),
        ({"power": "on", "agent": "up"}, {"power": "off"}, ["stop", "switch_off"]),
        ({"power": "off"}, {"agent": "up"}, ["switch_on", "look_agent"]),
        ({}, {"power": "on"}, ["look_power"]),
    ):
        assert both(data, observed, desired) == (parts, parts)


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


# Drawn problems: what only wishes explain is all that ever differs


@st.composite
def papers(draw: st.DrawFn) -> tuple[Problem, State, State]:
    """A problem that the paper can say: one look a variable, one value a condition."""
    names = "abc"
    values = dict.fromkeys(names, ("unknown", "1", "2"))
    looks = []
    for number, name in enumerate(names):
        below = draw(st.sampled_from([None, *names[:number]]))
        requires = () if below is None else (condition(draw, below),)
        looks.append(Look("m", f"look_{name}", "k", name, ("1", "2"), requires))
    steps = []
    for number in range(draw(st.integers(3, 6))):
        changed = draw(st.lists(st.sampled_from(names), min_size=1, max_size=2, unique=True))
        others = [name for name in names if name not in changed]
        required = draw(st.lists(st.sampled_from(others), max_size=1))
        excluded = draw(st.lists(st.sampled_from(others), max_size=1))
        changes = tuple(change(draw, name) for name in changed)
        requires = tuple(condition(draw, name) for name in required)
        excludes = tuple(condition(draw, name) for name in excluded)
        cost = draw(st.integers(1, 4))
        steps.append(Step("m", f"step{number}", "k", changes, requires, excludes, cost))
    some = st.dictionaries(st.sampled_from(names), st.sampled_from("12"), min_size=1)
    return Problem(values, {}, tuple(looks), tuple(steps)), draw(some), draw(some)


def condition(draw: st.DrawFn, name: str) -> Requirement:
    return Requirement(name, (draw(st.sampled_from("12")),))


def change(draw: st.DrawFn, name: str) -> Change:
    source, target = draw(st.permutations(["1", "2"]))
    return Change(name, (source,), target)


def replay(problem: Problem, observed: State, parts: list[tuple[str, State]]) -> bool:
    """Whether these parts, with these outcomes, hold in the plain model of the semantics."""
    model = Model(problem)
    state = model.start(observed, {})
    by_name = {part.name: part for part in problem.parts}
    for name, after in parts:
        part = by_name[name]
        if isinstance(part, Look):
            outcome = after.get(part.at, "")
            if outcome not in model.expectations(state, part, frozenset()):
                return False
            state = state | {part.at: outcome}
        elif model.applicable(state, part):
            state = model.strip(model.changed(state, part))
        else:
            return False
    return True


def compare(problem: Problem, observed: State, desired: State) -> str:
    """What came of one example; fails where the two differ by anything but a wish."""
    explicit = ExplicitGraph(problem)
    hops = explicit.path(observed, desired)
    found = planned(problem, observed, desired)
    if hops is None:
        # The planner may still doubt, or start where no mutation leads.
        assert isinstance(found, NoChain) or found.doubts or not rooted(explicit, observed)
        return "none"
    cost = explicit.cost(observed, desired)
    assert cost is not None
    if replay(problem, observed, [(hop.part, hop.state) for hop in hops]):
        assert isinstance(found, Chain)
        assert (found.cost, found.doubts) == (cost, False)
        return "plan" if len(hops) > 1 else "short"
    if isinstance(found, Chain) and not found.doubts:
        assert found.cost >= cost
    return "wish"


def rooted(explicit: ExplicitGraph, observed: State) -> bool:
    return any(meets({"a": "", "b": "", "c": ""} | state, observed) for state in explicit.states)


@given(papers())
def test_whatever_the_graph_does_without_wishing_costs_the_same(
    drawn: tuple[Problem, State, State],
) -> None:
    compare(*drawn)


def test_the_drawn_problems_hold_plans_and_wishes() -> None:
    shares: Counter[str] = Counter()

    @seed(0)
    @settings(max_examples=EXAMPLES, phases=[Phase.generate], database=None)
    @given(papers())
    def count(drawn: tuple[Problem, State, State]) -> None:
        shares[compare(*drawn)] += 1

    count()
    assert shares["plan"] >= PLANS_MIN
    assert shares["wish"] >= WISHES_MIN
