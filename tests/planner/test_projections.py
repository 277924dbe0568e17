"""A variable on its own, by sets of its states, is what it is state by state."""

from functools import reduce
from operator import or_

from hypothesis import given
from hypothesis import strategies as st

from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.task import Memory, task_of
from haptera.planner.search.projections import JointProjection, SingleProjection, projections_of
from haptera.planner.search.search_budget import SearchBudget
from tests.planner.strategies import Question, questions


def plainer(one: SingleProjection) -> JointProjection:
    """The same variable, one state after the other."""
    return JointProjection(one.fields, one.whole, one.rows, ((one.loose, one.field.width),))


def states(one: SingleProjection) -> list[int]:
    """All states of a variable, touched and, where doubts count, not."""
    touched = one.whole & one.field.touched
    return [*(bit | touched for bit in one.field.bits), *(one.field.bits if touched else ())]


@given(questions(), st.sampled_from(Memory), st.data())
def test_a_variable_costs_and_is_led_to_the_same_by_sets_and_state_by_state(
    question: Question, memory: Memory, data: st.DataObject
) -> None:
    domain = compile_class(question.problem)
    for one in projections_of(task_of(domain, question.desired, memory)):
        if not isinstance(one, SingleProjection):
            continue
        plain = plainer(one)
        some = data.draw(st.sets(st.sampled_from(one.field.bits), min_size=1))
        bad = reduce(or_, some)
        for state in states(one):
            assert one.cost(state, bad, SearchBudget()) == plain.cost(state, bad, SearchBudget())
            # State by state a row leads from where its variable stands or is in doubt, not both.
            leading, others = one.leading(state, bad), plain.leading(state, bad)
            assert leading == [row for row in others if row in leading]
            assert leading == others or memory is Memory.DOUBTED
