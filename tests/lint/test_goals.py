"""What stands in the way of a goal is what a look at all states finds."""

import re
from itertools import combinations, product
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.lint.goals import Aim, lint_goal, lint_together
from haptera.lint.reachability import Reachability
from haptera.model.answers.finding import Finding, Rule
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem
from tests.lint import lint_strategies
from tests.lint.lint_model import PlainClass
from tests.planner.planner_model import Model, meets

pytestmark = pytest.mark.timeout(360)

Goal = dict[str, str]


def aim(problem: Problem, goal: Goal, kind: str = "k") -> Aim:
    return Aim("it", kind, goal, Reachability(compile_class(problem)))


def can_be_known(plain: PlainClass, goal: Goal) -> bool:
    return any(meets(state, goal) for state in plain.states)


def named(finding: Finding) -> Goal:
    """The values that a finding tells of, from its words up to why that is so."""
    told = re.findall(r"\b([a-d])=(\d)", re.split(r":| where ", finding.text)[0])
    return dict(told)


def stuck(plain: PlainClass, name: str, value: str) -> list[str]:
    """The values that the variable may have, and from which none of its parts leads on."""
    others = [one for one in plain.model.problem.variables[name][1:] if one != value]
    held = [
        one
        for one in others
        if any(state[name] == one for state in plain.states if plain.can_be(state))
    ]
    return [one for one in held if value not in plain.reach(name, one)]


@given(st.integers(0, 2**64))
def test_what_stands_in_the_way_is_what_a_look_at_all_states_finds(seed: int) -> None:
    random = Random(seed)
    problem = lint_strategies.problem(random)
    goal = lint_strategies.goal(random, problem)
    plain = PlainClass(Model(problem))
    found = list(lint_goal(aim(problem, goal)))
    if not can_be_known(plain, goal):
        (finding,) = found
        least = named(finding)
        assert finding.rule is Rule.UNKNOWABLE_GOAL
        assert least.items() <= goal.items()
        assert not can_be_known(plain, least)
        fewer = combinations(least.items(), len(least) - 1)
        assert all(can_be_known(plain, dict(some)) for some in fewer)
        return
    expected = []
    for name, value in sorted(goal.items()):
        if name in problem.borrowed or (name, value) not in plain.possible:
            expected.append((Rule.NO_WAY, name, ""))
        elif values := stuck(plain, name, value):
            expected.append((Rule.NO_WAY_FROM, name, " or ".join(values)))
    assert [(one.rule, one.variable, where(one)) for one in found] == expected


def where(finding: Finding) -> str:
    told = finding.text.partition(f"if {finding.variable} is ")[2]
    return told.partition(", no part")[0]


@given(st.integers(0, 2**64))
def test_a_node_forbids_what_no_state_of_both_allows(seed: int) -> None:
    random = Random(seed)
    below = lint_strategies.problem(random, "xyz")
    problem = lint_strategies.problem(random, borrowed=below.variables["x"])
    goal, desired = (lint_strategies.goal(random, one) for one in (problem, below))
    found = list(lint_together(aim(problem, goal), aim(below, desired, "node")))
    plain, node = PlainClass(Model(problem)), PlainClass(Model(below))
    each = can_be_known(plain, goal) and can_be_known(node, desired)
    together = any(
        meets(state, goal) and meets(state_below, desired) and lends(state_below, state)
        for state, state_below in product(plain.states, node.states)
    )
    assert [one.rule for one in found] == [Rule.NODE_FORBIDS] * (each and not together)


def lends(node: Goal, entity: Goal) -> bool:
    return node["x"] == entity[lint_strategies.BORROWED]


def test_the_goals_that_are_drawn_are_of_all_sorts() -> None:
    rules = set()
    clean = 0
    for seed in range(300):
        random = Random(seed)
        problem = lint_strategies.problem(random)
        found = list(lint_goal(aim(problem, lint_strategies.goal(random, problem))))
        rules |= {one.rule for one in found}
        clean += not found
    assert rules == {Rule.UNKNOWABLE_GOAL, Rule.NO_WAY, Rule.NO_WAY_FROM}
    assert clean >= 30
