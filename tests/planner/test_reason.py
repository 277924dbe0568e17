"""Where there is no chain, the reason names the variable, the value and what stands in the way."""

from random import Random
from typing import Any

from haptera.model.chain import Chain, Hurdle, NoChain, Reason, ReasonKind, Role
from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.bars import Bars
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem, check
from haptera.planner.planner import plan
from haptera.planner.search.search_budget import SearchBudget
from tests.planner.shapes import drawn, entangled
from tests.planner.shapes import problem as problem_of

VALUES = ("unknown", "1", "2")
VARIABLES = {"a": VALUES, "b": VALUES, "node.agent": ("unknown", "up"), "node.power": VALUES}


def conditions(values: dict[str, str]) -> tuple[Requirement, ...]:
    return tuple(Requirement(name, (value,)) for name, value in values.items())


def look(at: str, *outcomes: str, **requires: str) -> Look:
    needs = conditions({name.replace("_", "."): value for name, value in requires.items()})
    return Look("m", f"look_{at}", "k", at, outcomes, needs)


def step(name: str, variable: str, source: str, target: str, **more: Any) -> Step:
    change = Change(variable, (source,), target)
    return Step("m", name, "k", (change,), **{one: conditions(two) for one, two in more.items()})


def ask(
    *parts: Look | Step, desired: dict[str, str], barred: tuple[str, ...] = (), **observed: str
) -> Chain | NoChain:
    looks = tuple(part for part in parts if isinstance(part, Look))
    steps = tuple(part for part in parts if isinstance(part, Step))
    problem = Problem(VARIABLES, {"platform": None}, looks, steps)
    check(problem)
    domain = compile_class(problem)
    start = domain.start({name.replace("_", "."): one for name, one in observed.items()}, {})
    return plan(
        domain, start, desired, barred=Bars(steps=frozenset((path, start) for path in barred))
    )


def why(*parts: Look | Step, desired: dict[str, str], **observed: str) -> Reason:
    answer = ask(*parts, desired=desired, **observed)
    assert isinstance(answer, NoChain)
    return answer.reason


UP = step("up", "a", "1", "2")


def test_a_goal_that_no_look_of_the_class_can_find_is_unknowable() -> None:
    reason = why(UP, look("a", "1", platform="x"), desired={"a": "2"}, a="1")
    assert reason == Reason(
        ReasonKind.UNKNOWABLE_GOAL,
        "a",
        "a=2 can never be known where platform is not given: m.look_a is for platform=x",
    )


def test_values_that_cannot_be_known_together_are_named() -> None:
    reason = why(look("a", "1", "2", b="1"), look("b", "1", "2"), desired={"a": "2", "b": "2"})
    assert reason == Reason(
        ReasonKind.UNKNOWABLE_GOAL,
        "a",
        "a=2 cannot be known together with b=2: m.look_a requires b=1",
    )


def test_a_value_that_nothing_leads_to_is_named() -> None:
    assert why(UP, desired={"a": "1"}, a="2") == Reason(
        ReasonKind.NO_STEP, "a", "nothing leads to a=1"
    )


def test_a_part_for_other_classes_is_named_with_the_attribute_that_keeps_it_out() -> None:
    other = step("down", "a", "2", "1", requires={"platform": "x"})
    assert why(UP, other, desired={"a": "1"}, a="2") == Reason(
        ReasonKind.NO_STEP,
        "a",
        "nothing leads to a=1 where platform is not given: m.down is for platform=x",
    )


def test_a_chain_that_lacks_only_a_borrowed_value_waits_for_it() -> None:
    up = step("up", "a", "1", "2", requires={"node.agent": "up"})
    reason = why(up, desired={"a": "2"}, a="1", node_power="1")
    waits_for = (("node.agent", "up"),)
    assert reason == Reason(ReasonKind.WAITS, "node.agent", "waits for node.agent=up", waits_for)


def test_a_chain_waits_for_no_more_borrowed_values_than_it_lacks() -> None:
    needed = {"node.agent": "up", "node.power": "2"}
    up = step("up", "a", "1", "2", requires=needed)
    reason = why(up, desired={"a": "2"}, a="1", node_power="1")
    assert reason.text == "waits for node.agent=up and node.power=2"
    reason = why(up, desired={"a": "2"}, a="1", node_power="2")
    assert reason.text == "waits for node.agent=up"


def test_a_look_that_requires_what_can_never_be_known_is_named() -> None:
    parts = (look("a", "1", "2", b="2"), look("b", "1", platform="x"), step("up", "b", "1", "2"))
    assert why(*parts, desired={"a": "2"}) == Reason(
        ReasonKind.UNKNOWABLE_GOAL,
        "a",
        "a=2 can never be known: m.look_a requires b=2, which can never be known "
        "where platform is not given: m.look_b is for platform=x",
    )


def test_what_all_looks_rest_on_is_named_where_it_can_never_be_known() -> None:
    parts = (
        look("a", "1", "2", b="2"),
        look("b", "1", "2", node_power="1"),
        look("node.power", "1", platform="x"),
    )
    assert why(*parts, desired={"a": "2"}).text == (
        "a=2 can never be known: it rests on node.power=1, which can never be known "
        "where platform is not given: m.look_node.power is for platform=x"
    )


def blocked(text: str, *hurdles: Hurdle, **wants: str) -> Reason:
    values = tuple((name.replace("_", "."), value) for name, value in wants.items())
    return Reason(ReasonKind.BLOCKED, hurdles[0].variable, text, (), hurdles, values)


def condition(name: str) -> Hurdle:
    return Hurdle(name, Role.CONDITION)


def test_what_a_step_requires_and_nothing_brings_about_is_named() -> None:
    up = step("up", "a", "1", "2", requires={"b": "2"})
    reason = why(up, step("other", "b", "2", "1"), desired={"a": "2"}, a="1", b="1")
    assert reason == blocked(
        "no way to a=2: m.up requires b=2, but b is 1, and no step leads there",
        condition("b"),
        b="2",
    )


def test_a_step_of_other_classes_that_would_bring_it_about_is_named() -> None:
    up = step("up", "a", "1", "2", requires={"b": "2"})
    other = step("raise_b", "b", "1", "2", requires={"platform": "x"})
    reason = why(up, other, desired={"a": "2"}, a="1", b="1")
    assert reason == blocked(
        "no way to a=2: m.up requires b=2, but b is 1, and no step leads there "
        "where platform is not given: m.raise_b is for platform=x",
        condition("b"),
        b="2",
    )


def test_of_conditions_on_top_of_each_other_the_one_that_nothing_here_changes_is_named() -> None:
    up = step("up", "a", "1", "2", requires={"b": "2"})
    raise_b = step("raise_b", "b", "1", "2", excludes={"node.power": "1"})
    open_power = step("open_power", "node.power", "2", "1")
    parts = (up, raise_b, open_power)
    reason = why(*parts, desired={"a": "2"}, a="1", b="1", node_power="1")
    assert reason == blocked(
        "no way to a=2: m.raise_b is excluded by node.power=1",
        condition("node.power"),
        node_power="2",
    )


def test_a_variable_that_is_in_the_way_of_several_parts_is_named_once() -> None:
    parts = (
        step("up", "a", "1", "2", requires={"b": "2"}, excludes={"node.power": "1"}),
        step("raise_b", "b", "1", "2", excludes={"node.power": "1"}),
        look("node.power", "1", "2"),
    )
    reason = why(*parts, desired={"a": "2"}, a="1", b="1", node_power="1")
    assert reason == blocked(
        "no way to a=2: m.up, like 1 other part, is excluded by node.power=1",
        condition("node.power"),
        node_power="2",
    )


def test_what_excludes_from_memory_is_said_to_be_remembered() -> None:
    parts = (
        step("up", "a", "1", "2", excludes={"b": "1"}),
        look("b", "1", "2", node_power="2"),
        look("node.power", "1", "2"),
    )
    reason = why(*parts, desired={"a": "2"}, a="1", b="1", node_power="1")
    assert reason == blocked(
        "no way to a=2: m.up is excluded by b=1, as last known", condition("b"), b="2"
    )


def test_where_one_condition_is_not_all_each_is_named() -> None:
    parts = (
        step("up", "a", "1", "2", requires={"b": "2"}, excludes={"node.power": "1"}),
        step("lower_b", "b", "2", "1"),
        look("node.power", "1", "2"),
    )
    reason = why(*parts, desired={"a": "2"}, a="1", b="1", node_power="1")
    assert reason == blocked(
        "no way to a=2: 2 obstacles: m.up requires b=2, but b is 1, and no step leads "
        "there; m.up is excluded by node.power=1",
        condition("b"),
        condition("node.power"),
        b="2",
        node_power="2",
    )


def test_goals_that_have_nothing_to_do_with_each_other_are_both_explained() -> None:
    parts = (
        step("up", "a", "1", "2", requires={"node.agent": "up"}),
        step("raise_b", "b", "1", "2", excludes={"node.power": "1"}),
        look("node.agent", "up", platform="x"),
        look("node.power", "1", "2"),
    )
    given = {"a": "1", "b": "1", "node_power": "1"}
    assert why(*parts, desired={"a": "2", "b": "2"}, **given) == blocked(
        "no way to a=2 and b=2: 2 obstacles: m.up requires node.agent=up, but "
        "node.agent is not known, and no step leads there; m.raise_b is excluded by node.power=1",
        condition("node.agent"),
        condition("node.power"),
    )


def test_what_can_be_known_only_elsewhere_is_said_to_rest_on_that() -> None:
    parts = (look("a", "1", "2", b="2"), step("lower_b", "b", "2", "1"), step("up", "a", "1", "2"))
    assert why(*parts, desired={"a": "2"}, a="2", b="1") == blocked(
        "no way to a=2: m.look_a requires b=2, but b is 1, and no step leads there",
        condition("b"),
        b="2",
    )


def test_a_value_that_no_step_starts_from_is_named_with_one_that_would_do() -> None:
    reason = why(step("up", "a", "1", "2"), desired={"a": "2"})
    assert reason == blocked(
        "no way to a=2: m.up starts from a=1, but a is not known, and no step leads there",
        Hurdle("a", Role.SOURCE),
        a="1",
    )


def test_a_look_that_could_only_find_what_is_so_is_no_way() -> None:
    parts = (look("a", "1", "2"), step("down", "a", "2", "1"))
    reason = why(*parts, desired={"a": "2"}, a="1")
    assert reason == blocked(
        "no way to a=2: m.look_a can only find what is so, but a is 1, and no step leads there",
        Hurdle("a", Role.READING),
    )


def test_a_step_of_other_classes_that_would_lead_from_there_is_named() -> None:
    up = step("up", "a", "1", "2", requires={"platform": "x"})
    assert why(look("a", "1", "2"), up, desired={"a": "2"}, a="1").text == (
        "no way to a=2: m.look_a can only find what is so, but a is 1, "
        "and no step leads there where platform is not given: m.up is for platform=x"
    )


def test_values_within_reach_but_never_together_are_named() -> None:
    parts = (
        step("a_up", "a", "1", "2", requires={"b": "1"}),
        step("b_up", "b", "1", "2", requires={"a": "1"}),
    )
    assert why(*parts, desired={"a": "2", "b": "2"}, a="1", b="1") == blocked(
        "no way to a=2 and b=2 at once: m.b_up requires a=1, but a is 2, and no step leads there",
        condition("a"),
    )


def test_what_only_ever_undoes_each_other_is_left_at_that() -> None:
    parts = [
        Step("m", f"{name}_up", "k", (Change(name, ("*",), "2"), Change(other, ("*",), "1")))
        for name, other in ("ab", "ba")
    ]
    assert why(*parts, desired={"a": "2", "b": "2"}, a="2", b="1") == Reason(
        ReasonKind.BLOCKED,
        "a",
        "no way to a=2 and b=2 at once: no order of parts leads there, from any state",
    )


def test_what_could_not_be_found_out_within_the_budget_is_said_so() -> None:
    up = step("up", "a", "1", "2", requires={"b": "2"}, excludes={"node.power": "1"})
    looks = (look("node.power", "1", "2"),)
    domain = compile_class(Problem(VARIABLES, {}, looks, (up, step("lower_b", "b", "2", "1"))))
    start = domain.start({"a": "1", "b": "1", "node.power": "1"}, {})
    answer = plan(domain, start, {"a": "2"}, SearchBudget(1))
    assert isinstance(answer, NoChain)
    assert answer.reason == Reason(
        ReasonKind.BLOCKED,
        "a",
        "no way to a=2: the obstacles were not found within the budget",
    )


def test_with_every_way_tried_in_vain_there_is_no_progress() -> None:
    answer = ask(UP, desired={"a": "2"}, barred=("m.up",), a="1")
    assert isinstance(answer, NoChain)
    assert answer.reason == Reason(
        ReasonKind.NO_PROGRESS,
        "a",
        "every chain has a part that has just failed, such as m.up",
    )


def test_a_search_over_its_budget_proves_nothing() -> None:
    random = Random(0)
    problem = problem_of(entangled(20, random))
    domain = compile_class(problem)
    start, goal = domain.start(drawn(problem, random), {}), drawn(problem, random)
    answer = plan(domain, start, goal, SearchBudget(1, outlooks=0))
    text = f"gave up after looking at {answer.expanded} states"
    assert answer == NoChain(Reason(ReasonKind.BUDGET, None, text), answer.expanded)
