"""All that is done for a question is counted, and ends soon after its budget is spent.

Never is time measured here: what is counted is so on any machine.
"""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.model.chain import Chain, NoChain, ReasonKind
from haptera.planner.domain.domain import Domain, compile_class
from haptera.planner.explain.explain import PlanQuestion, explain
from haptera.planner.planner import plan
from haptera.planner.search.search_budget import WORK_MAX, SearchBudget, affordable
from tests.planner.shapes import drawn, entangled, in_chain, in_sequence, joint, problem, services
from tests.planner.strategies import Question, questions

# What is under way when the budget is spent ends after at most so much more work.
OVER = 10_000
# Each piece of work takes one function to be called and to return, or less, on the whole.
STEPS_MAX = 3 * WORK_MAX // 2
WORKS = st.sampled_from((1, 100, 1_000, 10_000, WORK_MAX))
HARD = (
    entangled(12, Random(1)),
    entangled(20, Random(2)),
    [part for part in entangled(20, Random(3)) if not part.name.endswith("_to_3")],
    in_chain(40),
    in_sequence(40),
    services(4, 36),
    joint(6, 2, 60, Random(4)),
    joint(2, 10, 60, Random(5)),
    joint(10, 2, 60, Random(6)),
)


def steps(asked: Callable[[], object]) -> int:
    """How many functions are called and return, of Python's own as well."""
    count = 0

    def step(*_: object) -> None:
        nonlocal count
        count += 1

    sys.setprofile(step)
    try:
        asked()
    finally:
        sys.setprofile(None)
    return count


def hard(number: int) -> Iterator[tuple[Domain, Question]]:
    """Questions about a class at its limit, with goals of all variables and of few."""
    asked, random = problem(HARD[number]), Random(number)
    domain = compile_class(asked)
    for count in (2, 5, len(asked.variables)) * 2:
        goal = dict(list(drawn(asked, random).items())[:count])
        yield domain, Question(asked, drawn(asked, random), {}, goal)


@given(questions(), WORKS)
def test_an_answer_is_what_it_would_be_with_all_the_time_there_is_or_is_cut(
    question: Question, work: int
) -> None:
    domain = compile_class(question.problem)
    start, budget = domain.start(question.observed, question.remembered), affordable(work)
    cut = plan(domain, start, question.desired, budget)
    whole = plan(compile_class(question.problem), start, question.desired)
    if not budget.is_spent:
        assert replace(cut, expanded=0) == replace(whole, expanded=0)
    elif isinstance(cut, Chain):
        assert (cut.links, cut.doubts) == (getattr(whole, "links", None), whole.doubts)
    else:
        assert cut.reason.kind is ReasonKind.BUDGET or isinstance(whole, NoChain)


@pytest.mark.parametrize("number", range(len(HARD)))
def test_a_hard_question_takes_hardly_more_than_its_allowance(number: int) -> None:
    spent = 0
    for domain, question in hard(number):
        for work in (WORK_MAX // 10, WORK_MAX):
            start, budget = domain.start(question.observed, {}), affordable(work)
            asked = partial(plan, domain, start, question.desired, budget)
            assert steps(asked) < STEPS_MAX
            assert budget.work > -OVER
            spent += budget.is_spent
    assert spent > 0


@pytest.mark.parametrize("number", range(len(HARD)))
def test_to_explain_an_answer_takes_hardly_more_than_its_allowance(number: int) -> None:
    for domain, question in hard(number):
        start, budget = domain.start(question.observed, {}), affordable()
        found = plan(domain, start, question.desired, SearchBudget(states=500, outlooks=0))
        asked = PlanQuestion(domain, start, question.desired, budget)
        assert steps(partial(explain, asked, found)) < STEPS_MAX
        assert budget.work > -OVER
