"""Problems and answers as JSON, in the form that the planner's semantics give (As JSON)."""

from typing import Any

import msgspec

from haptera.core.problem import Problem, check, check_values
from haptera.model.chain import Chain, Find, Link, NoChain, Reason, ReasonKind
from haptera.model.errors import HapteraError
from haptera.model.parts import ANY, Change, Condition, Look, Step

# What a problem in this form calls its one module.
MODULE = "problem"

Conditions = dict[str, str | list[str]]


class LookForm(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    at: str
    outcomes: list[str]
    requires: Conditions = {}
    excludes: Conditions = {}
    cost: int = 1


class StepForm(msgspec.Struct, forbid_unknown_fields=True):
    name: str
    changes: dict[str, tuple[str | list[str], str]]
    requires: Conditions = {}
    excludes: Conditions = {}
    cost: int = 1


class ProblemForm(msgspec.Struct, forbid_unknown_fields=True):
    variables: dict[str, list[str]] = {}
    attributes: dict[str, str | None] = {}
    looks: list[LookForm] = []
    steps: list[StepForm] = []
    observed: dict[str, str] = {}
    remembered: dict[str, str] = {}
    desired: dict[str, str] = {}


class Question(msgspec.Struct, frozen=True):
    """A problem with one start and one goal; all of it well formed."""

    problem: Problem
    observed: dict[str, str]
    remembered: dict[str, str]
    desired: dict[str, str]


def problem_from_json(data: dict[str, Any]) -> Question:
    """Read a problem with its start and goal.

    Raises:
        HapteraError: it has another form, or is malformed, with the place.
    """
    try:
        form = msgspec.convert(data, ProblemForm)
    except msgspec.ValidationError as error:
        raise HapteraError(str(error), where="problem") from error
    problem = Problem(
        {name: tuple(values) for name, values in form.variables.items()},
        dict(form.attributes),
        tuple(_look(one) for one in form.looks),
        tuple(_step(one) for one in form.steps),
    )
    check(problem)
    check_values(problem, observed=form.observed, remembered=form.remembered, desired=form.desired)
    return Question(problem, form.observed, form.remembered, form.desired)


def answer_to_json(answer: Chain | NoChain) -> dict[str, Any]:
    """A chain, or the reason why there is none."""
    if isinstance(answer, Chain):
        return {
            "chain": [_link(one) for one in answer.links],
            "verdict": "chain",
            "cost": answer.cost,
            "optimal": answer.optimal,
            "doubts": answer.doubts,
            "states": [dict(state) for state in answer.states],
            "reason": None,
            "expanded": answer.expanded,
        }
    return {
        "chain": None,
        "verdict": "budget" if answer.reason.kind is ReasonKind.BUDGET else "none",
        "cost": None,
        "optimal": False,
        "doubts": False,
        "states": None,
        "reason": _reason(answer.reason),
        "expanded": answer.expanded,
    }


def _look(form: LookForm) -> Look:
    return Look(
        MODULE,
        form.name,
        MODULE,
        form.at,
        tuple(form.outcomes),
        _conditions(form.requires),
        _conditions(form.excludes),
        form.cost,
    )


def _step(form: StepForm) -> Step:
    return Step(
        MODULE,
        form.name,
        MODULE,
        tuple(_change(form.name, name, *pair) for name, pair in form.changes.items()),
        _conditions(form.requires),
        _conditions(form.excludes),
        form.cost,
    )


def _change(step: str, name: str, source: str | list[str], target: str) -> Change:
    if isinstance(source, list) and ANY in source:
        raise HapteraError(f"{ANY!r} stands alone", where=f"{MODULE}.{step} changes {name}")
    sources = tuple(source) if isinstance(source, list) else (source,)
    return Change(name, sources, target.removesuffix("?"), expected=target.endswith("?"))


def _conditions(form: Conditions) -> tuple[Condition, ...]:
    return tuple(
        Condition(name, tuple(values) if isinstance(values, list) else (values,))
        for name, values in form.items()
    )


def _link(link: Link) -> dict[str, Any]:
    if isinstance(link, Find):
        return {"look": link.look.name, "expect": link.expect, "hoped": link.hoped}
    return {"do": link.step.name}


def _reason(reason: Reason) -> dict[str, Any]:
    data = {"kind": reason.kind.value, "variable": reason.variable, "text": reason.text}
    return data | ({"waits_for": dict(reason.waits_for)} if reason.waits_for else {})
