"""A chain that is not proven to be the cheapest holds, and whoever plans on the way goes on it."""

from collections import Counter
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.planning import entangled
from haptera.model.chain import Chain
from haptera.model.parts import Change, Look, Requirement, Step
from haptera.planner.domain.bitstate import strip
from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.problem import Problem
from haptera.planner.domain.task import Memory
from haptera.planner.planner import plan
from haptera.planner.search.a_star import Found, OutOfBudget, SearchResult, Unsolvable
from haptera.planner.search.ff_heuristic import FFHeuristic
from haptera.planner.search.policy_rollout import rollout
from haptera.planner.search.search_budget import OUTLOOKS_MAX, SearchBudget
from tests.planner.planner_model import freeze
from tests.planner.shapes import problem, switch
from tests.planner.strategies import Question, questions, show_each
from tests.planner.test_methods import Case, after, case, model_cost, word
from tests.planner.test_planner import from_memory

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)

SHARES_EXAMPLES = 400
# Too few states to prove anything of what is entangled.
BUDGET = 10


def walked(one: Case, barred: frozenset[str] = frozenset(), outlooks: int = OUTLOOKS_MAX) -> Found:
    task = one.task
    return rollout(
        task, FFHeuristic(task), one.root, SearchBudget(outlooks=outlooks), barred=barred
    )


def states(one: Case, found: SearchResult) -> list[int]:
    """Where the route leads, each of its moves found to be possible."""
    state, seen = one.root & one.task.within, [one.root & one.task.within]
    rows = {row[-1]: row for row in one.task.rows}
    for move in found.moves:
        forbidden, keep, put, _, upsets, _ = rows[move]
        assert not state & forbidden
        state = strip(state & keep | put, upsets)
        seen.append(state)
    assert state & one.task.wanted == one.task.wanted
    return seen


@given(question=questions(), memory=st.sampled_from(Memory))
def test_a_walk_arrives_where_there_is_a_chain(question: Question, memory: Memory) -> None:
    one = case(from_memory(question) if memory is Memory.DOUBTED else question, memory)
    found, cost = walked(one), model_cost(one)
    if isinstance(found, SearchResult):
        states(one, found)
        assert not found.optimal
        assert cost is not None
        assert found.cost == sum(move.part.cost for move in found.moves) >= cost
    elif isinstance(found, Unsolvable):
        assert cost is None


@given(question=questions(), memory=st.sampled_from(Memory))
def test_what_is_left_of_a_walk_is_the_walk_from_where_it_has_come_to(
    question: Question, memory: Memory
) -> None:
    one = case(from_memory(question) if memory is Memory.DOUBTED else question, memory)
    found = walked(one)
    if isinstance(found, SearchResult):
        for number, state in enumerate(states(one, found)):
            rest = walked(replace(one, root=state))
            assert isinstance(rest, SearchResult)
            assert rest.moves == found.moves[number:]


@given(questions(), st.randoms(use_true_random=False))
def test_a_walk_is_the_same_however_the_problem_is_written(
    question: Question, random: Random
) -> None:
    written = question.problem
    looks, steps, variables = list(written.looks), list(written.steps), list(written.variables)
    for some in (looks, steps, variables):
        random.shuffle(some)
    other = replace(
        written,
        looks=tuple(looks),
        steps=tuple(steps),
        variables={name: written.variables[name] for name in variables},
    )
    one, two = (
        walked(case(replace(question, problem=each), Memory.TRUSTED)) for each in (written, other)
    )
    assert type(one) is type(two)
    if isinstance(one, SearchResult) and isinstance(two, SearchResult):
        assert [move.link for move in one.moves] == [move.link for move in two.moves]


@given(questions(), st.data())
def test_a_walk_begins_with_nothing_barred(question: Question, data: st.DataObject) -> None:
    paths = [part.path for part in question.problem.parts]
    barred = frozenset(data.draw(st.sets(st.sampled_from(paths)))) if paths else frozenset()
    one = case(question, Memory.TRUSTED)
    found = walked(one, barred)
    if isinstance(found, SearchResult):
        states(one, found)
        assert all(move.part.path not in barred for move in found.moves[:1])


@given(question=questions(), memory=st.sampled_from(Memory))
def test_no_way_is_told_only_where_there_is_none(question: Question, memory: Memory) -> None:
    """Held against the plain model in every state within reach."""
    one = case(question, memory)
    model, start = question.model, question.start
    doubted = frozenset(model.remembered(start) if memory is Memory.DOUBTED else ())
    relaxation = FFHeuristic(one.task)
    for frozen, doubts in model.costs((freeze(start), doubted)):
        state = word(one.domain, model, dict(frozen), doubts) & one.task.within
        if relaxation.outlook(state).left is None:
            assert model.cheapest(dict(frozen), question.desired, doubted=doubts) is None


def test_a_value_that_strip_forgets_may_make_way_for_a_step() -> None:
    """`swap` starts from an unknown `d`, which is known for as long as `b` is 1."""
    variables = dict.fromkeys("abd", ("unknown", "1", "2"))
    looks = [Look("m", f"look_{name}", "k", name, ("1", "2")) for name in "ab"]
    looks.append(Look("m", "look_d", "k", "d", ("1", "2"), (Requirement("b", ("1",)),)))
    lower = Step("m", "lower", "k", (Change("b", ("1",), "2"),))
    swap = Step("m", "swap", "k", (Change("a", ("1",), "2"), Change("d", ("unknown",), "1")))
    problem = Problem(variables, {}, tuple(looks), (lower, swap))
    known = dict.fromkeys("abd", "1")
    found = walked(case(Question(problem, known, {}, {"a": "2"}), Memory.TRUSTED))
    assert isinstance(found, SearchResult)
    assert [move.part for move in found.moves] == [lower, swap]


def test_what_a_walk_can_do_without_is_not_left_out_where_what_is_barred_would_be_first() -> None:
    variables = {"b": ("unknown", "1", "2"), "d": ("unknown", "1", "2", "3")}
    looks = [Look("m", f"look_{name}", "k", name, values[1:]) for name, values in variables.items()]
    aside = Step("m", "aside", "k", (Change("d", ("1",), "2"),))
    swap = Step("m", "swap", "k", (Change("b", ("1",), "2"),), (), (Requirement("d", ("3",)),))
    written = Problem(variables, {}, tuple(looks), (aside, swap))
    one = case(Question(written, dict.fromkeys("bd", "1"), {}, {"b": "2"}), Memory.TRUSTED)
    parts = []
    for barred in (frozenset[str](), frozenset({swap.path})):
        found = walked(one, barred)
        assert isinstance(found, SearchResult)
        parts.append([move.part for move in found.moves])
    assert parts == [[swap], [aside, swap]]


def test_an_outlook_counts_all_that_the_goal_needs_and_nothing_else() -> None:
    """`near` and `far` are both needed, so the dearer one too; `aside` could be, and is not."""
    variables = dict.fromkeys(("near", "far", "aside", "goal"), ("unknown", "1", "2", "3"))
    looks = tuple(Look("m", f"look_{name}", "k", name, ("1", "2", "3")) for name in variables)
    costs = {"near": 1, "far": 5, "aside": 1}
    steps = [
        Step("m", f"set_{name}", "k", (Change(name, ("1",), "2"),), cost=cost)
        for name, cost in costs.items()
    ]
    needs = tuple(Requirement(name, ("2",)) for name in ("near", "far"))
    steps.append(Step("m", "set_more", "k", (Change("aside", ("2",), "3"),)))
    bars = (Requirement("aside", ("3",)),)
    steps.append(Step("m", "set_goal", "k", (Change("goal", ("1",), "2"),), needs, bars))
    written = Problem(variables, {}, looks, tuple(steps))
    known = dict.fromkeys(variables, "1")
    one = case(Question(written, known, {}, {"goal": "2"}), Memory.TRUSTED)
    found = FFHeuristic(one.task).outlook(one.root & one.task.within)
    rows = [one.task.rows[number] for _, some in found.preferred for _, number in some]
    assert found.left == 1 + 5 + 1
    assert {row[-1].part.name for row in rows} == {"set_near", "set_far"}


@pytest.mark.slow
def test_nearly_all_walks_arrive() -> None:
    """Some go in a circle: what looks best here may lead away from what looks best there."""
    arrived: Counter[bool] = Counter()

    def count(question: Question) -> None:
        one = case(question, Memory.TRUSTED)
        if model_cost(one) is not None:
            arrived[isinstance(walked(one), SearchResult)] += 1

    show_each(questions(), SHARES_EXAMPLES, count)
    assert arrived[True] > 0.98 * arrived.total(), arrived


# Of many variables


@pytest.mark.parametrize("seed", [3, 7, 8])
def test_with_little_to_prove_it_by_what_is_planned_anew_on_the_way_is_what_was_left(
    seed: int,
) -> None:
    question = entangled(12, seed).question
    domain, other = compile_class(question.problem), compile_class(question.problem)
    goal = question.desired
    state = domain.start(question.observed, question.remembered)
    answers: list[Chain] = []
    while not domain.meets(state, goal):
        answer, cheapest = plan(domain, state, goal, SearchBudget(BUDGET)), plan(other, state, goal)
        assert isinstance(answer, Chain)
        assert isinstance(cheapest, Chain)
        assert answer.cost == cheapest.cost if answer.optimal else answer.cost >= cheapest.cost
        if answers and not answer.optimal:
            assert answer.links == answers[-1].links[1:]
        answers.append(answer)
        state = domain.strip(after(domain, state, answer.links[0]))
    proven = [answer.optimal for answer in answers]
    assert proven == sorted(proven)
    assert not proven[0]
    assert proven[-1]


@pytest.mark.parametrize("name", ["aside", "zone"])
def test_a_chain_of_which_any_part_is_not_proven_is_not_called_the_cheapest(name: str) -> None:
    """A switch beside what is entangled, before it in order, and after it."""
    question, beside = entangled(12, 3).question, problem(switch(name, {}, {}))
    domain = compile_class(
        replace(
            question.problem,
            variables={**question.problem.variables, **beside.variables},
            looks=(*question.problem.looks, *beside.looks),
            steps=(*question.problem.steps, *beside.steps),
        )
    )
    start = domain.start({**question.observed, name: "off"}, question.remembered)
    answer = plan(domain, start, {**question.desired, name: "on"}, SearchBudget(BUDGET))
    assert isinstance(answer, Chain)
    assert not answer.optimal


def test_a_walk_gives_up_when_it_has_looked_at_as_many_states_as_it_may() -> None:
    question = entangled(12, 2).question
    one = case(question, Memory.TRUSTED)
    few = walked(one, outlooks=20)
    assert few == OutOfBudget(20)
    assert isinstance(walked(one), SearchResult)
