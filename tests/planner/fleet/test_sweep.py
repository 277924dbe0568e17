"""A sweep finds what a plain search finds: the very route, the same bounds, the same ways on."""

from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.planner.domain.bitstate import strip
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.task import Memory, Task, task_of
from haptera.planner.fleet.bounds import NEVER, Bounds
from haptera.planner.fleet.census import Census
from haptera.planner.fleet.packing import Packed, Packing
from haptera.planner.fleet.sweep import Sweep
from haptera.planner.fleet.thorough import PLAIN_STATES_MAX, thorough
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable, search
from haptera.planner.search.dijkstra import UNREACHED
from haptera.planner.search.landmark_heuristic import LandmarkHeuristic
from haptera.planner.search.search_budget import SearchBudget
from tests.planner.shapes import drawn, entangled, independent, problem
from tests.planner.strategies import Question, questions
from tests.planner.test_methods import Case, bounded, case, verdict
from tests.planner.test_planner import from_memory

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

STATES = 40


def swept(one: Case) -> Found:
    return Sweep(one.task, one.root, one.estimate).best(SearchBudget())


def packed(packing: Packing, states: list[int]) -> Packed:
    return np.concatenate([packing.pack(state) for state in states], axis=1)


def drawn_in(question: Question, memory: Memory, random: Random) -> tuple[Task, Packing, list[int]]:
    """States of a question's task: stripped, and touched here and there where that counts."""
    domain = compile_class(question.problem)
    task = task_of(domain, question.desired, memory)
    words = (
        sum(random.choice(field.bits) for field in domain.fields.values()) for _ in range(STATES)
    )
    touched = (random.getrandbits(domain.touched.bit_length()) for _ in range(STATES))
    states = [
        (domain.strip(word) | bits & domain.touched) & task.within
        for word, bits in zip(words, touched, strict=True)
    ]
    return task, Packing(task), states


@given(question=questions(), memory=st.sampled_from(Memory))
def test_a_sweep_alone_finds_the_route_that_a_search_finds(
    question: Question, memory: Memory
) -> None:
    one = case(from_memory(question) if memory is Memory.DOUBTED else question, memory)
    assert verdict(swept(one)) == verdict(bounded(one))


@given(question=questions(), memory=st.sampled_from(Memory), random=st.randoms())
def test_packed_states_are_moved_on_as_words_are(
    question: Question, memory: Memory, random: Random
) -> None:
    task, packing, states = drawn_in(question, memory, random)
    sources, rows, after = packing.onward(packed(packing, states))
    expected = [
        (number, row, packing.pack(strip(state & one[1] | one[2], one[4])).ravel().tolist())
        for number, state in enumerate(states)
        for row, one in enumerate(task.rows)
        if not state & one[0]
    ]
    found = zip(sources.tolist(), rows.tolist(), after.T.tolist(), strict=True)
    assert list(found) == expected
    met = [state & task.wanted == task.wanted for state in states]
    assert packing.meeting(packed(packing, states)).tolist() == met


@given(question=questions(), memory=st.sampled_from(Memory), random=st.randoms())
def test_the_bounds_are_those_of_the_estimate(
    question: Question, memory: Memory, random: Random
) -> None:
    task, packing, states = drawn_in(question, memory, random)
    estimate = LandmarkHeuristic(task)
    each = [estimate(state, SearchBudget()) for state in states]
    bounds = Bounds(packing, estimate)(packed(packing, states)).tolist()
    assert [UNREACHED if one >= NEVER else one for one in bounds] == each


@given(st.lists(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 2))), max_size=6))
def test_states_are_numbered_as_they_come(batches: list[list[tuple[int, int]]]) -> None:
    census, numbers = Census(2), dict[tuple[int, int], int]()
    for batch in batches:
        found = census.number(np.array(batch, np.uint64).reshape(-1, 2).T)
        for state, number in zip(batch, found.tolist(), strict=True):
            assert numbers.setdefault(state, number) == number
        assert sorted(numbers.values()) == list(range(census.count))
    known = np.array(sorted(numbers.values()), np.int32)
    assert sorted(map(tuple, census.states(known).T.tolist())) == sorted(numbers)


def test_a_census_has_room_for_many() -> None:
    """States that differ in their second word alone often look for room in the same slot."""
    census, random, some = Census(2), Random(3), 7_000
    drawn_words = [(random.getrandbits(2), random.getrandbits(18)) for _ in range(100_000)]
    states = np.array(drawn_words, np.uint64).T
    batches = (states[:, first : first + some] for first in range(0, len(drawn_words), some))
    numbers = np.concatenate([census.number(batch) for batch in batches])
    assert np.array_equal(census.states(numbers), states)
    assert census.count == len(set(drawn_words))


def test_a_sweep_gives_up_where_too_many_states_promise_the_same() -> None:
    """Each of ten variables may be turned first: all their thousand states promise ten."""
    asked = problem(independent(10))
    goal = dict.fromkeys(asked.variables, "on")
    one = case(Question(asked, dict.fromkeys(goal, "off"), {}, goal), Memory.TRUSTED)
    few, enough = SearchBudget(100), SearchBudget(1_000)
    assert isinstance(Sweep(one.task, one.root, one.estimate).best(few), OutOfBudget)
    assert few.is_spent
    assert isinstance(Sweep(one.task, one.root, one.estimate).best(enough), SearchResult)


def tangled(count: int, seed: int) -> Case:
    random = Random(seed)
    asked = problem(entangled(count, random))
    goal = drawn(asked, random)
    return case(
        Question(asked, drawn(asked, random), {}, dict(list(goal.items())[:5])), Memory.TRUSTED
    )


@pytest.mark.parametrize("seed", range(6))
def test_a_tangle_is_swept_to_the_same_route(seed: int) -> None:
    one = tangled(10, seed)
    assert verdict(swept(one)) == verdict(bounded(one))


@pytest.mark.parametrize(("count", "seed", "kind"), [(14, 7, SearchResult), (16, 4, Unsolvable)])
def test_what_takes_a_plain_search_long_is_found_thoroughly(
    count: int, seed: int, kind: type[Found]
) -> None:
    one = tangled(count, seed)
    plain = search(one.task, one.root, one.estimate, SearchBudget(10_000))
    assert isinstance(plain, kind)
    assert plain.expanded > PLAIN_STATES_MAX
    assert verdict(thorough(one.task, one.root, one.estimate, SearchBudget(10_000))) == verdict(
        plain
    )


@pytest.mark.parametrize("states", [PLAIN_STATES_MAX, PLAIN_STATES_MAX + 500])
def test_what_is_spent_is_told(states: int) -> None:
    one, budget = tangled(16, 0), SearchBudget(states)
    assert isinstance(thorough(one.task, one.root, one.estimate, budget), OutOfBudget)
    assert budget.is_spent


def test_a_barred_part_is_not_the_first_of_a_sweep() -> None:
    one = tangled(12, 6)
    freely = swept(one)
    assert isinstance(freely, SearchResult)
    barred = frozenset([freely.moves[0].part.path])
    found = Sweep(one.task, one.root, one.estimate, barred).best(SearchBudget())
    plain = search(one.task, one.root, one.estimate, SearchBudget(), barred=barred)
    assert verdict(found) == verdict(plain) != verdict(freely)
