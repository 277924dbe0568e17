"""Two problems as one, whose parts have nothing to do with each other."""

from collections.abc import Mapping
from dataclasses import replace

from haptera.model.parts import Look, Requirement, Step
from haptera.planner.domain.problem import Problem
from tests.planner.strategies import Question


def side_by_side(one: Question, two: Question) -> Question:
    """The two with all their names told apart."""
    left, right = _renamed(one, "left"), _renamed(two, "right")
    return Question(
        Problem(
            {**left.problem.variables, **right.problem.variables},
            {**left.problem.attributes, **right.problem.attributes},
            (*left.problem.looks, *right.problem.looks),
            (*left.problem.steps, *right.problem.steps),
        ),
        {**left.observed, **right.observed},
        {**left.remembered, **right.remembered},
        {**left.desired, **right.desired},
    )


def _renamed(question: Question, side: str) -> Question:
    problem = question.problem
    return Question(
        Problem(
            {f"{side}.{name}": values for name, values in problem.variables.items()},
            {f"{side}.{name}": value for name, value in problem.attributes.items()},
            tuple(_look(look, side) for look in problem.looks),
            tuple(_step(step, side) for step in problem.steps),
        ),
        _values(question.observed, side),
        _values(question.remembered, side),
        _values(question.desired, side),
    )


def _values(values: Mapping[str, str], side: str) -> dict[str, str]:
    return {f"{side}.{name}": value for name, value in values.items()}


def _look(look: Look, side: str) -> Look:
    return replace(
        look,
        module=side,
        at=f"{side}.{look.at}",
        requires=_conditions(look.requires, side),
        excludes=_conditions(look.excludes, side),
    )


def _step(step: Step, side: str) -> Step:
    changes = tuple(replace(one, variable=f"{side}.{one.variable}") for one in step.changes)
    return replace(
        step,
        module=side,
        changes=changes,
        requires=_conditions(step.requires, side),
        excludes=_conditions(step.excludes, side),
    )


def _conditions(conditions: tuple[Requirement, ...], side: str) -> tuple[Requirement, ...]:
    return tuple(replace(one, name=f"{side}.{one.name}") for one in conditions)
