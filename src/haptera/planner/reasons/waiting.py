"""The values that a chain waits for, of variables that nothing here changes or looks at."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, combinations, islice, product
from typing import Final

from haptera.model.chain import Hurdle, Role
from haptera.planner.domain.domain import Domain
from haptera.planner.reasons.excuses import Excuses
from haptera.planner.search.a_star import SearchResult
from haptera.planner.search.factors import Factors
from haptera.planner.search.search_budget import SearchBudget

# Sets of values that are tried one after the other. Where there are more, those are tried that a
# chain would ask for.
SETS_TRIED_MAX: Final = 1_000
# What it takes to try one, and to look up a part of the goal, in moves tried.
TRYING: Final = 50
LOOKING_UP: Final = 30

Values = tuple[tuple[str, str], ...]


def waits_for(domain: Domain, start: int, factors: Factors, budget: SearchBudget) -> Values:
    """Other values of the fewest borrowed variables, with which there is a chain.

    None where there is no chain with any, as far as the budget reaches.
    """
    within = factors.whole.within
    borrowed = [
        name
        for name in domain.problem.borrowed
        if domain.fields[name].whole & within and any(others(domain, start, [name]))
    ]
    left = SETS_TRIED_MAX
    for count in range(1, len(borrowed) + 1):
        every = (others(domain, start, names) for names in combinations(borrowed, count))
        some = list(islice(chain.from_iterable(every), left))
        if values := cheapest(domain, start, factors, some, budget):
            return values
        left -= len(some)
        if left == 0:
            return _asked(domain, start, factors, borrowed, budget)
    return ()


def others(
    domain: Domain, start: int, names: Iterable[str], goal: Mapping[str, str] | None = None
) -> Iterator[Values]:
    """All ways in which all of these variables have other known values, none as in the goal."""
    now = domain.known(start)
    values = [
        [
            (name, value)
            for value in domain.fields[name].values[1:]
            if value not in (now.get(name), (goal or {}).get(name))
        ]
        for name in names
    ]
    yield from product(*values)


def cheapest(
    domain: Domain, start: int, factors: Factors, some: Iterable[Values], budget: SearchBudget
) -> Values:
    """Those of these values with which the chain is cheapest, as far as the budget reaches.

    None where there is no chain with any.
    """
    chains: list[tuple[int, Values]] = []
    for values in some:
        if budget.is_spent:
            break
        found = factors.search(_with(domain, start, values), budget)
        looked_up = LOOKING_UP * len(factors.parts)
        budget.spend(TRYING + looked_up + len(factors.whole.rows), states=1)
        if isinstance(found, SearchResult):
            chains.append((found.cost, values))
    return min(chains)[1] if chains else ()


def _asked(
    domain: Domain, start: int, factors: Factors, borrowed: Sequence[str], budget: SearchBudget
) -> Values:
    """What a chain asks for that there would be if it did not matter how these stand.

    None of it can be left out; another chain might ask for less.
    """
    trials = Excuses(domain, [one.task for one in factors.parts], start, budget)
    way = trials.way(frozenset(Hurdle(name, Role.CONDITION) for name in borrowed))
    asked: dict[str, int] = {}
    for one in () if way is None else sorted(way.met, key=lambda one: one.rests):
        name = one.hurdle.variable
        bits = asked.get(name, domain.fields[name].known) & ~one.bits
        if bits or not one.rests:  # What is known may rest on any of several looks.
            asked[name] = bits
    fields = domain.fields
    listed = ((name, fields[name].value(bits & -bits)) for name, bits in sorted(asked.items()))
    values = tuple((name, value) for name, value in listed if value is not None)

    values = cheapest(domain, start, factors, [values], budget)
    for needed in values:
        fewer = tuple(one for one in values if one != needed)
        values = cheapest(domain, start, factors, [fewer], budget) or values
    return values


def _with(domain: Domain, start: int, values: Values) -> int:
    state = start
    for name, value in values:
        field = domain.fields[name]
        state = state & ~field.whole | field.holding((value,))
    return domain.strip(state) | domain.touched
