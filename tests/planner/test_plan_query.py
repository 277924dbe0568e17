"""A worker's answer is the planner's own: the same chain, of the same parts, by way of bytes."""

from dataclasses import replace
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, Find, Link, NoChain, ToldChain
from haptera.planner.domain.bars import NO_BARS, Bars
from haptera.planner.domain.bitstate import Operator
from haptera.planner.domain.domain import compile_class
from haptera.planner.plan_query import PlanQuery, query_of, search_for, understood
from haptera.planner.planner import plan
from haptera.planner.search.search_budget import SearchBudget
from haptera.testing.searching import searched
from tests.planner.shapes import drawn, entangled
from tests.planner.shapes import problem as problem_of
from tests.planner.strategies import Question, questions
from tests.planner.test_planner import follow, from_memory, known

# Shrinking takes up to five minutes; to end it sooner would hide the example.
pytestmark = pytest.mark.timeout(360)


def asked(question: Question, barred: Bars = NO_BARS) -> PlanQuery:
    domain = compile_class(question.problem)
    start = domain.start(question.observed, question.remembered)
    return query_of(domain, start, question.desired, barred)


def planned(one: PlanQuery, budget: int) -> Chain | NoChain:
    return plan(one.domain, one.start, dict(one.goal), SearchBudget(budget), barred=one.barred)


def answered(one: PlanQuery, budget: int) -> ToldChain | NoChain:
    """What comes back from a worker that may go on from so many states."""
    search = search_for(one, 7, 0)
    answer = searched(msgspec.structs.replace(search, states_max=budget))
    assert answer.search == 7
    return answer.answer


@given(questions(), st.booleans(), st.sampled_from([0, 1, 2, 5, 20, 4_000]), st.data())
def test_a_worker_finds_what_the_planner_finds(
    question: Question, forgotten: bool, budget: int, data: st.DataObject
) -> None:
    question = from_memory(question) if forgotten else question
    free, barred = planned(asked(question), 4_000), NO_BARS
    if isinstance(free, Chain) and free.links and data.draw(st.booleans()):
        barred = first_barred(asked(question), free)
    one = asked(question, barred)  # Compiled anew: it must know as little as a worker does.
    expected = planned(asked(question, barred), budget)
    assert understood(one, answered(one, budget)) == expected


@given(questions(), st.data())
def test_a_chain_that_was_tampered_with_is_refused_or_holds_all_the_same(
    question: Question, data: st.DataObject
) -> None:
    one = asked(question)
    told = answered(one, 4_000)
    if not isinstance(told, ToldChain):
        return
    links = list(told.links)
    other = data.draw(st.sampled_from([*links, *map(name, one.domain.moves)]))
    place = data.draw(st.integers(0, len(links)))
    links[place : place + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from([[], [other]]))
    found = understood(one, replace(told, links=tuple(links)))
    if found is not None:
        assert isinstance(found, Chain)
        end = known(question, follow(question, found)[-1])
        assert question.desired.items() <= end.items()


@pytest.mark.parametrize("seed", [9, 14, 43])
def test_what_is_left_of_an_answer_need_not_be_sought(seed: int) -> None:
    random = Random(seed)
    problem = problem_of(entangled(10, random))
    observed, desired = drawn(problem, random), drawn(problem, random)
    desired = dict(list(desired.items())[:4])
    one = asked(Question(problem, observed, {}, desired))
    start, goal = one.start, dict(one.goal)
    assert isinstance(plan(one.domain, start, goal, SearchBudget(0, 0)), NoChain)
    chain = understood(one, answered(one, 4_000))
    assert isinstance(chain, Chain)
    for number, state in enumerate(chain.states):
        rest = plan(one.domain, one.domain.start(state, {}), desired, SearchBudget(0, 0))
        assert isinstance(rest, Chain)
        assert rest.links == chain.links[number:]


def first_barred(one: PlanQuery, chain: Chain) -> Bars:
    """What the chain begins with was tried in vain."""
    link = chain.links[0]
    if isinstance(link, Find):
        return Bars(looks=frozenset([link.look.path]))
    return Bars(steps=frozenset([(link.step.path, one.start)]))


def name(move: Operator) -> tuple[str, str | None]:
    return name_of(move.link)


def name_of(link: Link) -> tuple[str, str | None]:
    return (link.look.path, link.expect) if isinstance(link, Find) else (link.step.path, None)
