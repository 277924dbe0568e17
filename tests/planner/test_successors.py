"""What is looked up to be open in a state is what trying each move finds."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.planner.domain.domain import compile_class
from haptera.planner.domain.task import Memory, Task, task_of
from tests.planner.shapes import Parts, entangled, in_chain, problem, services
from tests.planner.strategies import Question, questions

STATES = 60


def hold_to_rows(task: Task, random: Random) -> None:
    for _ in range(STATES):
        state = sum(random.choice(field.bits) for field in task.fields)
        state |= sum(field.touched for field in task.fields if random.random() < 1 / 2)
        state &= task.within
        tried = [row for row in task.rows if not state & row[0]]
        assert task.openings.rows(state) == tried


@given(questions(), st.sampled_from(Memory), st.randoms(use_true_random=False))
def test_what_is_open_is_what_nothing_forbids(
    question: Question, memory: Memory, random: Random
) -> None:
    domain = compile_class(question.problem)
    hold_to_rows(task_of(domain, question.desired, memory), random)


@pytest.mark.parametrize("parts", [in_chain(40), services(4, 36), entangled(20, Random(1))])
@pytest.mark.parametrize("memory", Memory)
def test_what_is_open_with_many_variables_is_what_nothing_forbids(
    parts: Parts, memory: Memory
) -> None:
    domain = compile_class(problem(parts))
    goal = {name: values[1] for name, values in domain.problem.variables.items()}
    hold_to_rows(task_of(domain, goal, memory), Random(1))
