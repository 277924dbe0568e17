"""Missing parts of a class, and the parts of other classes that would do."""

from collections.abc import Iterable
from typing import Final

from haptera.model.parts import Look, Part, Requirement
from haptera.planner.domain.domain import Domain, excluding_attribute

# Parts of other classes that are named where the class has none.
PARTS_TOLD_MAX: Final = 3


def nothing_leads(domain: Domain, name: str, value: str) -> str | None:
    """That no part of the class makes or finds this value, in words; None where one does."""
    parts: tuple[Part, ...] = (*domain.looks, *domain.steps)
    if any(leads(part, name, (value,)) for part in parts):
        return None
    others = (one for one in domain.problem.parts if leads(one, name, (value,)))
    return f"nothing leads to {name}={value}{for_others(domain, others)}"


def no_step_leads(domain: Domain, name: str, values: tuple[str, ...]) -> str | None:
    """That no step of the class makes any of these values, in words; None where one does."""
    if any(leads(step, name, values) for step in domain.steps):
        return None
    others = (one for one in domain.problem.steps if leads(one, name, values))
    return f"no step leads there{for_others(domain, others)}"


def leads(part: Part, name: str, values: tuple[str, ...]) -> bool:
    """Whether a part finds or makes one of these values."""
    if isinstance(part, Look):
        return part.at == name and not set(values).isdisjoint(part.outcomes)
    return any(
        one.variable == name and one.target in values and not one.expected for one in part.changes
    )


def named(name: str, values: Iterable[str]) -> str:
    return f"{name}={' or '.join(values)}"


def listed(values: Iterable[tuple[str, str]]) -> str:
    return " and ".join(f"{name}={value}" for name, value in sorted(values))


def for_others(domain: Domain, parts: Iterable[Part]) -> str:
    """Which attribute keeps these parts out of the class, where all are of others."""
    told: dict[str, list[str]] = {}
    for part in sorted(parts, key=lambda part: part.path):
        if (condition := excluding_attribute(domain.problem, part)) is not None:
            has = domain.problem.attributes[condition.name] or "not given"
            where = f" where {condition.name} is {has}: "
            told.setdefault(where, []).append(f"{part.path} is {_meant(part, condition)}")
    return next((where + ", ".join(some[:PARTS_TOLD_MAX]) for where, some in told.items()), "")


def _meant(part: Part, condition: Requirement) -> str:
    meant = named(condition.name, condition.values)
    return f"for {meant}" if condition in part.requires else f"not for {meant}"
