"""Tables of next moves say what a search from the same state says, or that they do not know."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, Find, Link
from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.domain.problem import check
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Memory, Task
from haptera.planner.planner import next_part, plan
from haptera.planner.search.a_star import AStar, Found, SearchResult, Unsolvable, search
from haptera.planner.search.factors import Factors, factors_of
from haptera.planner.search.full_policy import knowable, solve
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.policy_cache import STATES_MAX, PolicyCache, next_moves
from haptera.planner.search.search_budget import SearchBudget
from haptera.planner.search.serial_subgoals import End, Subgoal, next_row, subgoals_of
from tests.planner.layers import layered
from tests.planner.shapes import Parts, drawn, entangled, in_chain, independent, problem, services
from tests.planner.strategies import Question, questions

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

# States of a drawn problem; where doubts count, some have more, and are left out.
ALL = 2_000
# States of one example that are searched from, to compare.
SEARCHED_MAX = 12

SHAPES: dict[str, Callable[[], Parts]] = {
    "independent": lambda: independent(40),
    "in a chain": lambda: in_chain(40),
    "services": lambda: services(4, 36),
}


def factors(domain: Domain, goal: dict[str, str], memory: Memory = Memory.TRUSTED) -> Factors:
    return factors_of(domain, goal, memory)


def first_found(task: Task, state: int) -> OperatorRow | End:
    """What a search with no bound says of the first move."""
    return first(AStar(task, state).best(), task)


def first(found: Found, task: Task) -> OperatorRow | End:
    if isinstance(found, SearchResult):
        rows = {row[-1]: row for row in task.rows}
        return rows[found.moves[0]] if found.moves else End.MET
    assert isinstance(found, Unsolvable)
    return End.WALLED


def some(states: list[int], random: Random) -> list[int]:
    return random.sample(states, min(len(states), SEARCHED_MAX))


def drawn_start(domain: Domain, random: Random) -> int:
    """Each variable known, remembered or unknown, whatever can be."""
    kept = {name: random.randrange(3) for name in domain.fields}
    values = drawn(domain.problem, random)
    observed = {name: value for name, value in values.items() if kept[name] == 0}
    remembered = {name: value for name, value in values.items() if kept[name] == 1}
    return domain.start(observed, remembered)


@given(questions(), st.sampled_from(Memory), st.randoms(use_true_random=False))
def test_a_factor_worked_out_ahead_says_what_a_search_from_each_state_says(
    question: Question, memory: Memory, random: Random
) -> None:
    domain = compile_class(question.problem)
    for part in factors(domain, dict(question.desired), memory).parts:
        table = solve(part.task, ALL) or {}
        for state in some(sorted(table), random):
            assert table[state] == first_found(part.task, state)


@given(questions())
def test_no_state_that_can_be_is_missed(question: Question) -> None:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    for part in factors(domain, dict(question.desired)).parts:
        states = knowable(part.task, ALL)
        if states is not None:
            assert start & part.task.within in states
            assert all(domain.strip(state) == state for state in states)


@given(st.randoms(use_true_random=False))
def test_stages_say_what_is_worked_out_ahead_or_that_they_do_not_know(random: Random) -> None:
    drawn_problem, goal = layered(random)
    check(drawn_problem)
    domain = compile_class(drawn_problem)
    for part in factors(domain, goal).parts:
        table, stages = solve(part.task, ALL) or {}, subgoals_of(part.task, ALL)
        for state, row in table.items():
            assert next_row(stages, state) in (row, End.UNKNOWN)


def test_stages_tell_of_a_good_part_of_the_states_of_problems_in_layers() -> None:
    told: Counter[str] = Counter()
    for seed in range(60):
        drawn_problem, goal = layered(Random(seed))
        for part in factors(compile_class(drawn_problem), goal).parts:
            stages = subgoals_of(part.task, ALL)
            for state in knowable(part.task, ALL) or ():
                row = next_row(stages, state)
                told[row.name if isinstance(row, End) else "row"] += 1
    assert told["row"] > told["UNKNOWN"] / 5


@dataclass(frozen=True)
class Stages:
    domain: Domain
    stages: tuple[Subgoal, ...]
    table: Mapping[int, OperatorRow | End]

    def at(self, **observed: str) -> tuple[str, str]:
        """The part that stages tell in a state, and the one that is worked out ahead."""
        state = self.domain.start(observed, {})
        return named(next_row(self.stages, state)), named(self.table[state])


def stages_and_table(goal: dict[str, str], *parts: Look | Step) -> Stages:
    domain = compile_class(problem(list(parts)))
    (part,) = factors(domain, goal).parts
    table = solve(part.task, ALL)
    assert table is not None
    return Stages(domain, subgoals_of(part.task, ALL), table)


def named(row: OperatorRow | End) -> str:
    return row.name if isinstance(row, End) else row[-1].part.name


@pytest.mark.parametrize(
    ("rests", "told"),
    [((), ("p_expected", "p_expected")), (("1", "2"), ("UNKNOWN", "p_surely"))],
)
def test_stages_do_not_know_where_something_known_rests_on_what_is_still_to_be_done(
    rests: tuple[str, ...], told: tuple[str, str]
) -> None:
    """To expect p is cheaper, but makes a memory of what rests on it."""
    at = stages_and_table(
        {"p": "1", "v": "1"},
        Look("m", "look_p", "k", "p", ("1", "2")),
        Look(
            "m", "look_v", "k", "v", ("1", "2"), (Requirement("p", rests),) if rests else (), cost=5
        ),
        Step("m", "p_expected", "k", (Change("p", ("2",), "1", expected=True),)),
        Step("m", "p_surely", "k", (Change("p", ("2",), "1"),), cost=3),
        Step("m", "v_up", "k", (Change("v", ("2",), "1"),), (Requirement("p", ("1",)),)),
    ).at
    assert at(p="2", v="1") == told


def test_stages_do_not_know_where_a_move_asks_for_what_is_not_desired() -> None:
    at = stages_and_table(
        {"p": "1", "v": "1"},
        Look("m", "look_p", "k", "p", ("1", "2")),
        Look("m", "look_v", "k", "v", ("1", "2")),
        Step("m", "p_down", "k", (Change("p", ("2",), "1"),)),
        Step("m", "p_up", "k", (Change("p", ("1",), "2"),)),
        Step("m", "v_up", "k", (Change("v", ("2",), "1"),), (Requirement("p", ("2",)),)),
    ).at
    assert at(p="2", v="1") == ("p_down", "p_down")
    assert at(p="1", v="2") == ("UNKNOWN", "p_up")
    assert at(p="2", v="2") == ("UNKNOWN", "v_up")


def test_stages_that_wait_for_each_other_are_none() -> None:
    at = stages_and_table(
        {"p": "1", "v": "1"},
        Step("m", "p_up", "k", (Change("p", ("2",), "1"),), (Requirement("v", ("1",)),)),
        Step("m", "v_up", "k", (Change("v", ("2",), "1"),), (Requirement("p", ("1",)),)),
        Look("m", "look_p", "k", "p", ("1", "2")),
        Look("m", "look_v", "k", "v", ("1", "2")),
    ).at
    assert at(p="2", v="2") == ("UNKNOWN", "WALLED")
    assert at(p="2", v="1") == ("UNKNOWN", "p_up")


@given(questions(), st.sampled_from(Memory))
def test_what_a_search_found_is_kept_for_all_states_that_it_tells_of(
    question: Question, memory: Memory
) -> None:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered) | domain.touched
    for part in factors(domain, dict(question.desired), memory).parts:
        kept, state = PolicyCache(part.task, ALL), start & part.task.within
        found = search(part.task, state, part.estimate, SearchBudget())
        kept.keep(state, found)
        route = kept.route(state)
        if isinstance(found, SearchResult):
            assert isinstance(route, SearchResult)
            assert (route.moves, route.cost) == (found.moves, found.cost)
        else:
            assert isinstance(found, Unsolvable)
            assert {kept.next(one) for one in found.reached} <= {End.WALLED}
            reached = (first_found(part.task, one) for one in found.reached[:SEARCHED_MAX])
            assert set(reached) <= {End.WALLED}


def test_no_more_is_kept_than_the_limit_allows() -> None:
    random = Random(5)
    domain = compile_class(problem(entangled(8, random)))
    goal = drawn(domain.problem, random)
    (part,) = factors(domain, goal).parts
    kept, most = PolicyCache(part.task, 50), 0
    for _ in range(40):
        state = domain.start(drawn(domain.problem, random), {}) & part.task.within
        found = search(part.task, state, part.estimate, SearchBudget())
        kept.keep(state, found)
        assert kept.next(state) == first(found, part.task)
        most = max(most, len(kept))
    assert 25 < most <= 50


def test_nothing_is_kept_of_a_search_that_gave_up() -> None:
    random = Random(5)
    domain = compile_class(problem(entangled(20, random)))
    start = domain.start(drawn(domain.problem, random), {})
    assert next_part(domain, start, drawn(domain.problem, random), expansions_max=1) is End.UNKNOWN


@given(questions())
def test_the_next_part_is_what_the_chain_begins_with(question: Question) -> None:
    domain = compile_class(question.problem)
    state = domain.start(question.observed, question.remembered)
    answer = plan(domain, state, question.desired)
    move = next_part(domain, state, question.desired)
    if not isinstance(answer, Chain):
        assert move is End.WALLED
    elif not answer.links:
        assert move is End.MET
    else:
        assert isinstance(move, Operator)
        assert _unhoped(answer.links[0]) == move.link


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(10))
def test_many_variables_are_planned_from_any_state_without_a_search(shape: str, seed: int) -> None:
    domain = compile_class(problem(SHAPES[shape]()))
    goal = dict.fromkeys(domain.fields, "on")
    start = drawn_start(domain, Random(seed))
    for part in factors(domain, goal).parts:
        state = start & part.task.within
        known = next_moves(part.task, STATES_MAX).route(state)
        assert isinstance(known, SearchResult)
        found = search(part.task, state, LandmarkHeuristic(part.task), SearchBudget())
        assert isinstance(found, SearchResult)
        assert (known.cost, known.moves) == (found.cost, found.moves)


def _unhoped(link: Link) -> Link:
    return replace(link, hoped=False) if isinstance(link, Find) else link
