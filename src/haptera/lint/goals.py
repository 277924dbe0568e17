"""The lint's rules for goals: whether they can be known, and whether parts lead there."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from typing import Final

from haptera.lint.demands import Demand, clash, spoken
from haptera.lint.reachability import Reachability
from haptera.lint.subject import example, nearest
from haptera.model.answers.finding import Example, Finding, Rule
from haptera.planner.domain.bitsets import each
from haptera.planner.domain.bitstate import Field
from haptera.planner.domain.problem import subjects
from haptera.planner.domain.witness import CHOICES_MAX, TooLargeError
from haptera.planner.reasons.achievers import for_others, nothing_leads
from haptera.planner.reasons.unknowable import unknowable

Values = Mapping[str, str]
_ATTRIBUTES: Final = "give them the attributes that these parts are for, or desire other values"


@dataclass(frozen=True, slots=True)
class Aim:
    """The desired values of entities of one class, and their names."""

    place: str
    kind: str
    goal: Values
    prospects: Reachability

    def finding(
        self, rule: Rule, name: str, text: str, *shown: Example, fix: str | None
    ) -> Finding:
        return Finding(rule, self.place, text, self.kind, None, name, shown, fix)

    def fits(self, also: Mapping[str, str | None]) -> bool:
        """Whether the goal can be known while these are so, too; None: while it is not known."""
        fields, bits = self.prospects.domain.fields, -1
        for some in (self.goal, also):
            for name, value in some.items():
                bits &= _as(fields[name], value)
        return self.prospects.states.find(bits) is not None


def lint_goal(aim: Aim) -> Iterator[Finding]:
    """What stands in the way, whatever the state that the entities are in.

    Raises:
        TooLargeError: it takes too long to tell.
    """
    unknowable = _unknowable(aim)
    if unknowable is not None:
        yield unknowable
        return
    for name, value in sorted(aim.goal.items()):
        yield from _led(aim, name, value)


def lint_together(aim: Aim, node: Aim) -> Iterator[Finding]:
    """Whether the goal of a node rules out what the goal of entities on it needs of it.

    Raises:
        TooLargeError: it takes too long to tell.
    """
    prefix = f"{node.kind}."
    names = [name for name in aim.prospects.domain.problem.borrowed if name.startswith(prefix)]
    values = [(None, *aim.prospects.domain.fields[name].values[1:]) for name in names]
    if prod(map(len, values)) > CHOICES_MAX:
        raise TooLargeError
    choices = [dict(zip(names, some, strict=True)) for some in product(*values)]
    fitting = [choice for choice in choices if aim.fits(choice)]
    theirs = [{name.removeprefix(prefix): one for name, one in some.items()} for some in fitting]
    if not fitting or not node.fits({}) or any(node.fits(some) for some in theirs):
        return
    needs = spoken(f"{name}={value}" for name, value in fitting[0].items() if value is not None)
    ever = any(replace(node, goal={}).fits(some) for some in theirs)
    if ever:
        desired = spoken(f"{name}={value}" for name, value in sorted(node.goal.items()))
        text = f"it needs {needs}, which cannot be while {node.place} is as desired: {desired}"
        fix = "desire it on nodes that are to be up, or change what is desired of the node"
    else:
        text = f"it needs {needs}, which can never be known of {node.place}"
        problem = node.prospects.domain.problem
        text += for_others(node.prospects.domain, problem.looks)
        fix = "desire it on other nodes, or give these the attributes that looks require"
    yield aim.finding(Rule.NODE_FORBIDS, min(aim.goal), text, fix=fix)


def _unknowable(aim: Aim) -> Finding | None:
    fields = aim.prospects.domain.fields
    wanted = [
        Demand(name, "", f"{name}={value}", ~_as(fields[name], value))
        for name, value in sorted(aim.goal.items())
    ]
    found = clash(aim.prospects, wanted, -1)
    if found is None:
        return None
    domain, name = aim.prospects.domain, found.demands[0].variable
    least = {one.variable: aim.goal[one.variable] for one in found.demands}
    why = unknowable(domain, least)
    text = f"{found.text} can never be known" if why is None else why.text
    looks = (one for one in domain.problem.looks if one.at == name)
    fix = _ATTRIBUTES if for_others(domain, looks) else "add a look that can find it"
    if len(least) > 1:
        fix = "remove one of the desired values"
    return aim.finding(Rule.UNKNOWABLE_GOAL, name, text, *nearest(domain, found), fix=fix)


def _led(aim: Aim, name: str, value: str) -> Iterator[Finding]:
    """Whether parts lead to a desired value: from anywhere, and from all that can come about."""
    prospects, field = aim.prospects, aim.prospects.domain.fields[name]
    bit = field.holding((value,))
    if name in prospects.domain.problem.borrowed:
        fix = f"add a look at {name}, and steps that change it"
        yield aim.finding(Rule.NO_WAY, name, f"no part looks at {name} or changes it", fix=fix)
        return
    if not prospects.possible & bit:
        told = nothing_leads(prospects.domain, name, value)
        text = told or f"no part that leads to {name}={value} can ever run"
        yield aim.finding(Rule.NO_WAY, name, text, fix=_served(aim, name))
        return
    stuck = [
        (field.value(one), found)
        for one in each(prospects.possible & field.known & ~bit)
        if not prospects.reach(field, one) & bit and (found := prospects.find(~field.whole | one))
    ]
    if stuck:
        values = " or ".join(str(one) for one, _ in stuck)
        text = f"if {name} is {values}, no part leads to {value}"
        fix = f"add a step from {values} to {value}"
        shown = example(prospects.domain, stuck[0][1])
        yield aim.finding(Rule.NO_WAY_FROM, name, text, shown, fix=fix)


def _served(aim: Aim, name: str) -> str:
    """What to do where no part of the class leads somewhere: what others have, or something new."""
    parts = [part for part in aim.prospects.domain.problem.parts if name in subjects(part)]
    if for_others(aim.prospects.domain, parts):
        return _ATTRIBUTES
    return "add a step that leads there, or a look that finds it"


def _as(field: Field, value: str | None) -> int:
    """All states in which the variable has this value, or is not known."""
    return ~field.known if value is None else ~field.whole | field.holding((value,))
