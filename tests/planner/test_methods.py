"""Each way to search, forced alone, finds the same route; and what is left of it is found again."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, Do, Find
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.task import Memory, Task, task_of
from haptera.planner.planner import plan
from haptera.planner.search.a_star import AStar, Found, SearchResult, Unsolvable
from haptera.planner.search.dijkstra import UNREACHED
from haptera.planner.search.factors import Factor, factors_of
from haptera.planner.search.full_policy import solve
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.policy_cache import STATES_MAX, PolicyCache
from haptera.planner.search.search_budget import SearchBudget
from haptera.planner.search.serial_subgoals import End, subgoals_of
from tests.planner.dice import Seeded
from tests.planner.planner_model import Model, freeze, meets
from tests.planner.strategies import Question, questions
from tests.planner.strategies import question as drawn_with
from tests.planner.test_planner import ask, from_memory
from tests.planner.twins import side_by_side

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

SHARES_EXAMPLES = 300


@dataclass(frozen=True)
class Case:
    """A question compiled, with the root that trusts memory or the one that doubts it."""

    domain: Domain
    question: Question
    memory: Memory
    root: int

    @cached_property
    def task(self) -> Task:
        return task_of(self.domain, self.question.desired, self.memory)

    @cached_property
    def estimate(self) -> LandmarkHeuristic:
        return LandmarkHeuristic(self.task)


def case(question: Question, memory: Memory) -> Case:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    doubted = domain.memories(start) if memory is Memory.DOUBTED else 0
    return Case(domain, question, memory, (start | domain.touched) & ~doubted)


def blind(case: Case) -> Found:
    return AStar(case.task, case.root).best()


def bounded(case: Case) -> Found:
    return AStar(case.task, case.root, case.estimate).best()


def straight(case: Case) -> Found | None:
    return AStar(case.task, case.root, case.estimate).straight()


def in_parts(case: Case) -> Found:
    factors = factors_of(case.domain, case.question.desired, case.memory)
    return factors.search(case.root, SearchBudget())


def verdict(found: Found) -> object:
    """What all methods must agree on: the very moves, or that there are none."""
    if isinstance(found, SearchResult):
        return found.cost, [move.link for move in found.moves]
    return type(found)


def model_cost(case: Case) -> int | None:
    model, start = case.question.model, case.question.start
    doubted = model.remembered(start) if case.memory is Memory.DOUBTED else ()
    return model.cheapest(start, case.question.desired, doubted=doubted)


@pytest.mark.parametrize("method", [blind, bounded, in_parts])
@given(question=questions(), memory=st.sampled_from(Memory))
def test_each_method_alone_finds_what_the_plain_model_finds(
    method: Callable[[Case], Found], question: Question, memory: Memory
) -> None:
    one = case(from_memory(question) if memory is Memory.DOUBTED else question, memory)
    found = method(one)
    assert isinstance(found, SearchResult | Unsolvable)
    assert (found.cost if isinstance(found, SearchResult) else None) == model_cost(one)
    assert verdict(found) == verdict(blind(one))


@given(question=questions(), memory=st.sampled_from(Memory))
def test_a_straight_route_is_the_first_of_the_cheapest(question: Question, memory: Memory) -> None:
    one = case(question, memory)
    found = straight(one)
    if found is not None:
        assert verdict(found) == verdict(blind(one))


@given(question=questions(), memory=st.sampled_from(Memory))
def test_the_bound_never_promises_more_than_there_is(question: Question, memory: Memory) -> None:
    """Held against the true cost of every state within reach, and from each to the next."""
    one = case(question, memory)
    model, start = question.model, question.start
    doubted = frozenset(model.remembered(start) if memory is Memory.DOUBTED else ())
    estimate, place = LandmarkHeuristic(one.task), (freeze(start), doubted)
    for frozen, doubts in model.costs(place):
        state = word(one.domain, model, dict(frozen), doubts)
        bound = estimate(state & one.task.within, SearchBudget())
        cost = model.cheapest(dict(frozen), question.desired, doubted=doubts)
        assert bound <= (UNREACHED if cost is None else cost)


@given(question=questions(), memory=st.sampled_from(Memory))
def test_tables_alone_find_the_same_where_they_tell(question: Question, memory: Memory) -> None:
    one = case(question, memory)
    for part in factors_of(one.domain, question.desired, memory).parts:
        task, root = part.task, one.root & part.task.within
        ahead = PolicyCache(task, STATES_MAX, ahead=solve(task, STATES_MAX))
        staged = PolicyCache(task, STATES_MAX, stages=subgoals_of(task, STATES_MAX))
        for found in (ahead.route(root), staged.route(root)):
            if found is not None:
                assert verdict(found) == verdict(AStar(task, root).best())


@given(questions())
def test_what_is_left_of_a_chain_is_planned_again_from_each_of_its_states(
    question: Question,
) -> None:
    domain = compile_class(question.problem)
    state = domain.start(question.observed, question.remembered)
    answer = plan(domain, state, question.desired)
    if not isinstance(answer, Chain) or answer.doubts:
        return  # A hope that was fulfilled is no longer in doubt: what is left is another search.
    for number, link in enumerate(answer.links, start=1):
        state = domain.strip(after(domain, state, link))
        rest = plan(domain, state, question.desired)
        assert isinstance(rest, Chain)
        assert rest.links == answer.links[number:]
        assert rest.states == answer.states[number:]


@given(questions(), questions())
def test_two_problems_side_by_side_have_the_chains_of_each(one: Question, two: Question) -> None:
    both = ask(side_by_side(one, two))
    apart = (ask(one), ask(two))
    if all(isinstance(answer, Chain) and not answer.doubts for answer in apart):
        assert isinstance(both, Chain)
        assert both.cost == sum(answer.cost for answer in apart if isinstance(answer, Chain))
        assert both.optimal
    elif not isinstance(both, Chain):
        assert not all(isinstance(answer, Chain) for answer in apart)


@pytest.mark.slow
def test_each_method_decides_some_examples() -> None:
    decided: Counter[str] = Counter()
    for number in range(SHARES_EXAMPLES):
        decided.update(methods(case(drawn_with(Seeded(number)), Memory.TRUSTED)))
    assert set(decided) >= {"ahead", "straight", "bound alone", "search"}, decided


def methods(one: Case) -> list[str]:
    """Which table decides each part of a goal, and which way to search where none told."""
    return [
        name
        for part in factors_of(one.domain, one.question.desired, one.memory).parts
        for name in (by_table(one, part), by_search(one, part))
    ]


def decided_by(one: Case) -> list[str]:
    """What decides each part of a goal in ordinary use: tables, or else a search."""
    parts = factors_of(one.domain, one.question.desired, one.memory).parts
    found = [(by_table(one, part), part) for part in parts]
    return [by_search(one, part) if name == "no table" else name for name, part in found]


def by_table(one: Case, part: Factor) -> str:
    known = part.tables.next(one.root & part.task.within) is not End.UNKNOWN
    return "no table" if not known else "stages" if part.tables.stages else "ahead"


def by_search(one: Case, part: Factor) -> str:
    begun = AStar(part.task, one.root, part.estimate)
    if begun.straight() is not None:
        return "straight"
    return "search" if begun.best().expanded else "bound alone"


def after(domain: Domain, state: int, link: Find | Do) -> int:
    """The state with what a link sets, not yet stripped."""
    if isinstance(link, Find):
        field = domain.fields[link.look.at]
        return state & ~field.whole | field.holding((link.expect,))
    for change in link.step.changes:
        field = domain.fields[change.variable]
        bit = field.holding((change.target,))
        state = state & ~field.whole | (bit << field.width if change.expected else bit)
    return state


def word(domain: Domain, model: Model, status: dict[str, str], doubted: frozenset[str]) -> int:
    """A state of the plain model as a word."""
    known = {name: one for name, one in status.items() if model.is_known(name, one)}
    memory = {name: one.removesuffix("?") for name, one in status.items() if one.endswith("?")}
    trusted = (field.touched for name, field in domain.fields.items() if name not in doubted)
    state = domain.start(known, memory)
    assert meets(domain.known(state), known)
    return state | sum(trusted)
