"""Goals that cannot be known at all, and the reason."""

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from itertools import accumulate
from typing import Final

from haptera.model.chain import Reason, ReasonKind
from haptera.model.parts import Look, Requirement
from haptera.planner.domain.bitstate import Support
from haptera.planner.domain.domain import Domain
from haptera.planner.reasons.achievers import for_others, listed, named
from haptera.planner.search.search_budget import SearchBudget

# Choices of looks that are tried to see which values can be known.
CHOICES_MAX: Final = 10_000

# A look, and one of the conditions that it requires.
LookRequirement = tuple[Look, Requirement]


def unknowable(
    domain: Domain, goal: Mapping[str, str], budget: SearchBudget | None = None
) -> Reason | None:
    """Told of one value where one is enough, else of no more than it takes.

    None also where the budget is spent before that is proven.
    """
    choices = Choices(domain, SearchBudget() if budget is None else budget)
    values = choices.fewest(goal)
    if not values:
        return None
    if len(values) > 2:
        text = f"{listed(values.items())} cannot all be known at once"
        return Reason(ReasonKind.UNKNOWABLE_GOAL, min(values), text)
    (name, value), *other = values.items()
    if not other:
        text = f"{name}={value} can never be known{_no_look(choices, name, value)}"
        return Reason(ReasonKind.UNKNOWABLE_GOAL, name, text)
    text = f"{name}={value} cannot be known together with {listed(other)}{_rests(domain, values)}"
    return Reason(ReasonKind.UNKNOWABLE_GOAL, name, text)


def _no_look(choices: "Choices", name: str, value: str) -> str:
    """Why no look can ever find this value, to be added to words that say so.

    Of looks that rest on each other, the first that lacks something is named.
    """
    looks = _finding(choices.domain, name, (value,))
    rests = list[LookRequirement]()
    while (found := _never_met(choices, looks)) is not None:
        rests.append(found)
        looks = _finding(choices.domain, found[1].name, found[1].values)
    why = for_others(choices.domain, looks) or ": no look that could find it can be open"
    if not rests:
        return why
    look, needed = rests[-1]
    needs = named(needed.name, needed.values)
    rest = f"{look.path} requires {needs}" if len(rests) == 1 else f"it rests on {needs}"
    return f": {rest}, which can never be known{why}"


def _finding(domain: Domain, name: str, values: tuple[str, ...]) -> list[Look]:
    """The looks, of all classes, that find one of these values; where none does, all."""
    every = sorted(domain.problem.looks, key=lambda one: one.path)
    looks = [one for one in every if one.at == name]
    return [one for one in looks if not set(values).isdisjoint(one.outcomes)] or looks


def _never_met(choices: "Choices", looks: list[Look]) -> LookRequirement | None:
    """A look of the class, of these, with what it requires and can never be known."""
    for look in looks:
        for one in look.requires if look in choices.domain.looks else ():
            if one.name in choices.domain.fields and not any(
                choices.can_be_known({one.name: needed}) for needed in one.values
            ):
                return look, one
    return None


def _rests(domain: Domain, pair: Mapping[str, str]) -> str:
    """How knowing one of two values comes to require that the other is another, where it does."""
    for one, other in (tuple(pair), tuple(pair)[::-1]):
        for trail in _trails(domain, one, pair[one]):
            needed = trail[-1][1]
            if needed.name == other and pair[other] not in needed.values:
                each = (f"{look.path} requires {named(it.name, it.values)}" for look, it in trail)
                return f": {', and '.join(each)}"
    return ""


def _trails(domain: Domain, name: str, value: str) -> Iterator[list[LookRequirement]]:
    """What looks at a value require, and looks at that: the first trail to each variable."""
    trails: list[tuple[str, tuple[str, ...], list[LookRequirement]]] = [(name, (value,), [])]
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


class Choices:
    """Whether goals can be known at all, in a state that strip leaves alone, reachable or not."""

    def __init__(self, domain: Domain, budget: SearchBudget) -> None:
        self.domain = domain
        self._budget = budget
        # Dependents first: what a look requires is below.
        self._layers = [_Layer(domain, one) for one in domain.grounds[::-1]]
        whole = sum(field.whole for field in domain.fields.values())
        above = accumulate((one.field.whole for one in self._layers), initial=0)
        self._below = [whole & ~bits for bits in above]
        self._known: dict[tuple[int, int], bool] = {}

    def fewest(self, goal: Mapping[str, str]) -> dict[str, str]:
        """Values of a goal that cannot be known at once, though they can without any one of them.

        None where the whole goal can be; more than it takes where the budget is spent.
        """
        values = sorted(goal.items())
        if self.can_be_known(goal):
            return {}
        for name, value in values:
            if not self.can_be_known({name: value}):
                return {name: value}
        found: dict[str, str] = {}
        while values and self.can_be_known(found):
            # Where it cannot be known with so many of the values, but can with the ones before.
            last = bisect_left(
                range(len(values) - 1),
                1,
                key=lambda number: not self.can_be_known(found | dict(values[: number + 1])),
            )
            found |= dict(values[last : last + 1])
            values = values[:last]
        return dict(sorted(found.items()))

    def can_be_known(self, goal: Mapping[str, str]) -> bool:
        """True also where this takes more than CHOICES_MAX choices, or more than the budget."""
        allowed = self._below[0]
        for name, value in goal.items():
            field = self.domain.fields[name]
            allowed &= ~field.whole | field.holding((value,))
        return self._open(0, allowed)

    def _open(self, number: int, allowed: int) -> bool:
        """Whether what must be known from a layer on can be, by some choice of looks."""
        layers = enumerate(self._layers[number:], number)
        needed = next((one for one, layer in layers if not allowed & layer.field.unknown), None)
        if needed is None:
            return True
        choice = needed, allowed & self._below[needed]
        if choice not in self._known:
            self._budget.spend(len(self._below))
            if self._budget.is_spent or len(self._known) >= CHOICES_MAX:
                return True
            narrowed = self._layers[needed].narrowed(allowed)
            self._known[choice] = any(self._open(needed + 1, left) for left in narrowed)
        return self._known[choice]


class _Layer:
    """A variable that must be known, and what lets it be."""

    def __init__(self, domain: Domain, grounds: Support) -> None:
        self.field = domain.fields[grounds.variable]
        wholes = [field.whole for field in domain.fields.values()]
        self._looks = [
            (yields, forbidden, [whole for whole in wholes if whole & forbidden])
            for yields, forbidden in grounds.looks
        ]

    def narrowed(self, allowed: int) -> Iterator[int]:
        """What each look that could find an allowed value leaves allowed of other variables."""
        for yields, forbidden, wholes in self._looks:
            left = allowed & ~forbidden
            if allowed & yields and all(left & whole for whole in wholes):
                yield left
