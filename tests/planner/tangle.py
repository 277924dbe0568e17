"""A kind at its limit: twenty variables, all entangled, served by one module of the parent's."""

from dataclasses import replace
from enum import StrEnum
from random import Random
from typing import Any

from haptera.model.declared.schema import Kind, Variable
from haptera.model.parts import Context, Manifest
from haptera.planner.domain.problem import Problem
from tests.planner.shapes import drawn, entangled, problem

COUNT = 20


def kind_of(name: str, problem: Problem) -> Kind:
    return Kind(name, tuple(_variable(name, *one) for one in problem.variables.items()))


def at_parent(problem: Problem) -> Problem:
    """The same, its parts the parent's."""
    looks = tuple(replace(look, context=Context.PARENT) for look in problem.looks)
    steps = tuple(replace(step, context=Context.PARENT) for step in problem.steps)
    return replace(problem, looks=looks, steps=steps)


def _variable(kind: str, name: str, values: tuple[str, ...]) -> Variable[Any]:
    members = [(f"V{number}", value) for number, value in enumerate(values)]
    enum: type[StrEnum] = StrEnum(name, members)
    return Variable(kind, name, enum, {value: number for number, value in enumerate(enum)})


TANGLE = at_parent(problem(entangled(COUNT, Random(1))))
KIND = kind_of("k", TANGLE)
MANIFEST = Manifest("m", "1", Context.PARENT, TANGLE.looks, TANGLE.steps)


def goals(count: int) -> list[dict[str, str]]:
    """So many goals, each of them for all variables."""
    random = Random(7)
    return [drawn(TANGLE, random) for _ in range(count)]
