"""Goals of many variables have their cheapest chain, or the planner says that it gave up."""

from dataclasses import replace
from random import Random

import pytest

from haptera.model.chain import Chain, Do, NoChain, ReasonKind
from haptera.model.parts import Requirement
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.task import Memory, task_of
from haptera.planner.planner import plan
from haptera.planner.search.a_star import AStar, OutOfBudget
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget, affordable
from tests.planner.shapes import (
    Parts,
    drawn,
    entangled,
    in_chain,
    in_sequence,
    independent,
    problem,
    services,
)

# A search without a bound that has to finish: all states of eight variables of three values.
ALL_STATES = 3**8


def domain_of(parts: Parts) -> Domain:
    return compile_class(problem(parts))


def values(domain: Domain, value: str) -> dict[str, str]:
    return dict.fromkeys(domain.fields, value)


def ask(domain: Domain, observed: dict[str, str], goal: dict[str, str]) -> Chain:
    """The chain within what the core can afford."""
    answer = plan(domain, domain.start(observed, {}), goal, affordable())
    assert isinstance(answer, Chain)
    return answer


def recall(domain: Domain, remembered: dict[str, str], goal: dict[str, str]) -> Chain:
    answer = plan(domain, domain.start({}, remembered), goal, affordable())
    assert isinstance(answer, Chain)
    return answer


@pytest.mark.parametrize("count", [12, 40])
def test_independent_variables_each_have_their_own_chain(count: int) -> None:
    domain = domain_of(independent(count))
    chain = ask(domain, values(domain, "off"), values(domain, "on"))
    assert (chain.cost, len(chain.links), chain.optimal) == (count, count, True)


@pytest.mark.parametrize("count", [8, 40])
def test_a_chain_of_variables_is_looked_at_and_switched_one_after_the_other(count: int) -> None:
    domain = domain_of(in_chain(count))
    goal = {f"c{count - 1}": "on"}
    chain = recall(domain, values(domain, "off"), goal)
    assert (chain.cost, chain.optimal) == (2 * count, True)
    assert ask(domain, {}, goal).cost == count  # Each look may find what is wanted.


def test_what_only_steps_require_is_minded_too() -> None:
    domain = domain_of(in_sequence(40))
    chain = ask(domain, values(domain, "off"), {"c39": "on"})
    assert [link.step.name for link in chain.links if isinstance(link, Do)] == [
        f"start_c{number}" for number in range(40)
    ]
    assert chain.optimal


@pytest.mark.parametrize("count", [8, 36])
def test_services_come_up_once_what_they_hang_on_is_there(count: int) -> None:
    domain = domain_of(services(4, count))
    goal = {f"s{number}": "on" for number in range(count)}
    chain = recall(domain, values(domain, "off"), goal)
    assert (chain.cost, chain.optimal) == (2 * (4 + count), True)
    up = ask(domain, values(domain, "off") | {f"c{number}": "on" for number in range(4)}, goal)
    assert (up.cost, up.optimal) == (count, True)


def test_all_services_are_stopped_before_what_they_hang_on() -> None:
    parts = services(4, 36)
    bars = tuple(Requirement(f"s{number}", ("on",)) for number in range(36))
    parts = [replace(one, excludes=bars) if one.name == "stop_c0" else one for one in parts]
    domain = domain_of(parts)
    chain = plan(domain, domain.start(values(domain, "on"), {}), {"c0": "off"})
    assert isinstance(chain, Chain)
    assert (chain.cost, chain.optimal) == (37, True)
    assert isinstance(last := chain.links[-1], Do)
    assert last.step.name == "stop_c0"


def test_a_part_of_the_goal_without_a_chain_is_named_among_many() -> None:
    domain = domain_of([one for one in independent(40) if one.name != "start_v7"])
    goal = values(domain, "on")
    answer = plan(domain, domain.start(values(domain, "off"), {}), goal, affordable())
    assert isinstance(answer, NoChain)
    assert (answer.reason.kind, answer.reason.variable) == (ReasonKind.BLOCKED, "v7")


@pytest.mark.parametrize("seed", range(20))
def test_entangled_variables_cost_what_a_search_without_a_bound_finds(seed: int) -> None:
    random = Random(seed)
    domain = domain_of(entangled(random.choice([5, 6, 7]), random))
    start = domain.start(drawn(domain.problem, random), {})
    goal = dict(list(drawn(domain.problem, random).items())[: random.choice([2, 3, 5])])
    task = task_of(domain, goal, Memory.TRUSTED)
    blind = AStar(task, start, budget=SearchBudget(ALL_STATES)).best()
    assert not isinstance(blind, OutOfBudget)
    bounded = AStar(task, start, LandmarkHeuristic(task), SearchBudget(ALL_STATES)).best()
    assert getattr(bounded, "moves", None) == getattr(blind, "moves", None)
    assert bounded.expanded <= blind.expanded


@pytest.mark.parametrize("seed", range(6))
def test_twenty_entangled_variables_end_within_the_budget(seed: int) -> None:
    random = Random(seed)
    domain = domain_of(entangled(20, random))
    start, goal = drawn(domain.problem, random), drawn(domain.problem, random)
    budget = SearchBudget(200, 300)
    answer = plan(domain, domain.start(start, {}), goal, budget)
    assert answer.expanded <= 500
    if isinstance(answer, NoChain):
        assert answer.reason.kind in (ReasonKind.BLOCKED, ReasonKind.BUDGET)
