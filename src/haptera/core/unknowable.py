"""Whether a goal can be known at all, and if not, why not."""

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Final

from haptera.core.knowledge import Domain
from haptera.core.missing import for_others, listed, named
from haptera.core.word import Grounds
from haptera.model.chain import Reason, ReasonKind
from haptera.model.parts import Condition, Look

# Choices of looks that are tried to see whether the goal can be known at all.
CHOICES_MAX: Final = 10_000

# A look, and one of the conditions that it requires.
Requirement = tuple[Look, Condition]


def unknowable(domain: Domain, goal: Mapping[str, str]) -> Reason | None:
    """Told of one value where one is enough, else of two, else of all."""
    if _can_be_known(domain, goal):
        return None
    for name in sorted(goal):
        if not _can_be_known(domain, {name: goal[name]}):
            text = f"{name}={goal[name]} can never be known{_no_look(domain, name, goal[name])}"
            return Reason(ReasonKind.UNKNOWABLE_GOAL, name, text)
    for one, other in combinations(sorted(goal), 2):
        pair = {one: goal[one], other: goal[other]}
        if not _can_be_known(domain, pair):
            text = f"{one}={goal[one]} cannot be known together with {other}={goal[other]}"
            return Reason(ReasonKind.UNKNOWABLE_GOAL, one, text + _rests(domain, pair))
    text = f"{listed(goal.items())} cannot all be known at once"
    return Reason(ReasonKind.UNKNOWABLE_GOAL, min(goal), text)


def _no_look(domain: Domain, name: str, value: str) -> str:
    """Why no look can ever find this value, to be added to words that say so."""
    finding = [one for one in domain.problem.looks if one.at == name and value in one.outcomes]
    looks = finding or [one for one in domain.problem.looks if one.at == name]
    for look in (one for one in looks if one in domain.looks):
        for one in (one for one in look.requires if one.name in domain.fields):
            if not any(_can_be_known(domain, {one.name: needed}) for needed in one.values):
                return f": {look.path} requires {named(one.name, one.values)}"
    return for_others(domain, looks) or ": no look that could find it can be open"


def _rests(domain: Domain, pair: Mapping[str, str]) -> str:
    """How knowing one of two values comes to require that the other is another, where it does."""
    for one, other in (tuple(pair), tuple(pair)[::-1]):
        for trail in _trails(domain, one, pair[one]):
            needed = trail[-1][1]
            if needed.name == other and pair[other] not in needed.values:
                each = (f"{look.path} requires {named(it.name, it.values)}" for look, it in trail)
                return f": {', and '.join(each)}"
    return ""


def _trails(domain: Domain, name: str, value: str) -> Iterator[list[Requirement]]:
    """What looks at a value require, and looks at that: the first trail to each variable."""
    trails: list[tuple[str, tuple[str, ...], list[Requirement]]] = [(name, (value,), [])]
    met = {name}
    for at, values, trail in trails:
        for look in domain.looks:
            if look.at != at or set(values).isdisjoint(look.outcomes):
                continue
            for one in look.requires:
                if one.name in domain.fields and one.name not in met:
                    met.add(one.name)
                    trails.append((one.name, one.values, [*trail, (look, one)]))
                    yield [*trail, (look, one)]


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
