"""Why there is no chain, in words for operators; the first reason that fits (SEMANTICS, reason)."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product
from typing import Final

from haptera.core.blocked import blocked
from haptera.core.factors import Factors
from haptera.core.knowledge import Domain, excluding_attribute
from haptera.core.problem import subjects
from haptera.core.search import Route, Search, Walled
from haptera.core.word import Grounds
from haptera.model.chain import Chain, Find, Reason, ReasonKind
from haptera.model.parts import Look, Part

# Choices of looks that are tried to see whether the goal can be known at all.
CHOICES_MAX: Final = 10_000


Values = tuple[tuple[str, str], ...]


def reason(
    domain: Domain,
    start: int,
    goal: Mapping[str, str],
    factors: Factors,
    budget: int,
) -> Reason:
    """Why the search that trusted memory was walled in."""
    return (
        _unknowable(domain, goal)
        or _no_step(domain, start, goal)
        or _waits(domain, start, factors, budget)
        or _blocked(domain, start, factors, budget)
    )


def gave_up(expanded: int) -> Reason:
    return Reason(ReasonKind.BUDGET, None, f"gave up after looking at {expanded} states")


def no_progress(chain: Chain) -> Reason:
    """All chains begin with barred parts, as this one does."""
    first = chain.links[0]
    part: Part = first.look if isinstance(first, Find) else first.step
    text = f"every chain begins with a part that was tried from here in vain, as {part.path}"
    return Reason(ReasonKind.NO_PROGRESS, subjects(part)[0], text)


def _unknowable(domain: Domain, goal: Mapping[str, str]) -> Reason | None:
    """Told of one value where one is enough, else of two, else of all."""
    if _can_be_known(domain, goal):
        return None
    for name in sorted(goal):
        if not _can_be_known(domain, {name: goal[name]}):
            text = f"{name}={goal[name]} can never be known: no look that could find it can be open"
            return Reason(ReasonKind.UNKNOWABLE_GOAL, name, text)
    for one, other in combinations(sorted(goal), 2):
        if not _can_be_known(domain, {one: goal[one], other: goal[other]}):
            text = f"{one}={goal[one]} cannot be known together with {other}={goal[other]}"
            return Reason(ReasonKind.UNKNOWABLE_GOAL, one, text)
    text = f"{_listed(goal.items())} cannot all be known at once"
    return Reason(ReasonKind.UNKNOWABLE_GOAL, min(goal), text)


def _can_be_known(domain: Domain, goal: Mapping[str, str]) -> bool:
    """Whether strip leaves some state that meets the goal alone, reachable or not.

    Dependents first, a look is chosen for each variable that must be known; what it requires
    narrows the variables below. True also where this takes more than CHOICES_MAX choices.
    """
    fields, grounds = domain.fields.values(), domain.grounds[::-1]
    allowed = sum(field.whole for field in fields)
    for name, value in goal.items():
        field = domain.fields[name]
        allowed &= ~field.whole | field.holding((value,))
    choices = [(0, allowed)]
    tried = set(choices)
    while choices and len(tried) <= CHOICES_MAX:
        number, allowed = choices.pop()
        if number == len(grounds):
            return True
        for narrowed in _narrowed(domain, grounds[number], allowed):
            choice = (number + 1, narrowed)
            if choice not in tried and all(narrowed & field.whole for field in fields):
                tried.add(choice)
                choices.append(choice)
    return bool(choices)


def _narrowed(domain: Domain, grounds: Grounds, allowed: int) -> Iterator[int]:
    """What each look that could find an allowed value leaves allowed of other variables."""
    if allowed & domain.fields[grounds.variable].unknown:
        yield allowed  # It need not be known.
        return
    for yields, forbidden in grounds.looks:
        if allowed & yields:
            yield allowed & ~forbidden


def _no_step(domain: Domain, start: int, goal: Mapping[str, str]) -> Reason | None:
    for name in sorted(goal):
        bit = domain.fields[name].holding((goal[name],))
        if not start & bit and not any(move.put & bit for move in domain.moves):
            text = f"nothing leads to {name}={goal[name]}{_elsewhere(domain, name, goal[name])}"
            return Reason(ReasonKind.NO_STEP, name, text)
    return None


def _elsewhere(domain: Domain, name: str, value: str) -> str:
    """A part of other classes that would lead there, and the attribute that keeps it out."""
    for part in sorted(domain.problem.parts, key=lambda part: part.path):
        condition = excluding_attribute(domain.problem, part)
        if condition is not None and _leads(part, name, value):
            has = domain.problem.attributes[condition.name]
            return f" where {condition.name} is {has or 'not given'}: {part.path} is for others"
    return ""


def _leads(part: Part, name: str, value: str) -> bool:
    if isinstance(part, Look):
        return part.at == name and value in part.outcomes
    return any(
        one.variable == name and one.target == value and not one.expected for one in part.changes
    )


def _waits(domain: Domain, start: int, factors: Factors, budget: int) -> Reason | None:
    """The fewest borrowed variables with whose values, were they others, there is a chain.

    Of several such values those with the cheapest chain, as far as the budget allows to look.
    """
    within = factors.whole.within
    borrowed = [name for name in domain.problem.borrowed if domain.fields[name].whole & within]
    for count in range(1, len(borrowed) + 1):
        chains: list[tuple[int, Values]] = []
        for values in _others(domain, start, borrowed, count):
            found = factors.search(_with(domain, start, values), budget=budget)
            budget -= found.expanded + 1
            if isinstance(found, Route):
                chains.append((found.cost, values))
            if budget <= 0:
                break
        if chains:
            _, values = min(chains)
            return Reason(ReasonKind.WAITS, values[0][0], f"waits for {_listed(values)}", values)
    return None


def _blocked(domain: Domain, start: int, factors: Factors, budget: int) -> Reason:
    """What stands in the way of the part of the goal that has no chain."""
    parts = (one for one in factors.parts if isinstance(one.search(start, budget=budget), Walled))
    scope = next(parts).scope
    found = Search(scope, start).best(budget)
    if isinstance(found, Walled):
        return blocked(domain, scope.goal, found.reached)
    text = f"no way to {_listed(scope.goal.items())}, whatever else is done"
    return Reason(ReasonKind.BLOCKED, min(scope.goal), text)


def _others(domain: Domain, start: int, borrowed: list[str], count: int) -> Iterator[Values]:
    """All ways in which so many borrowed variables can have other known values."""
    now = domain.known(start)
    for names in combinations(borrowed, count):
        values = [
            [(name, value) for value in domain.fields[name].values[1:] if value != now.get(name)]
            for name in names
        ]
        yield from product(*values)


def _with(domain: Domain, start: int, values: Values) -> int:
    state = start
    for name, value in values:
        field = domain.fields[name]
        state = state & ~field.whole | field.holding((value,))
    return domain.strip(state) | domain.touched


def _listed(values: Iterable[tuple[str, str]]) -> str:
    return " and ".join(f"{name}={value}" for name, value in sorted(values))
