"""A factor worked out ahead: the next move from each state that can be, by one pass backwards."""

from collections.abc import Iterable, Mapping

from haptera.core.distances import UNREACHED, distances
from haptera.core.scope import Row, Scope
from haptera.core.stages import End
from haptera.core.word import Field, is_grounded, strip


def solve(scope: Scope, states_max: int) -> Mapping[int, Row | End] | None:
    """The first move of the cheapest route from each state; None where there are too many."""
    states = knowable(scope, states_max)
    if states is None:
        return None
    around = {
        state: [
            (strip(state & row[1] | row[2], row[4]), row)
            for row in scope.rows
            if not state & row[0]
        ]
        for state in states
    }
    before: dict[int, list[tuple[int, int]]] = {state: [] for state in states}
    for state, afters in around.items():
        for after, row in afters:
            assert after in before, "strip has left what cannot be known"
            before[after].append((state, row[3]))
    costs = distances((one for one in states if one & scope.wanted == scope.wanted), before)
    return {state: _first(around[state], costs, costs.get(state)) for state in states}


def _first(
    around: Iterable[tuple[int, Row]], costs: Mapping[int, int], cost: int | None
) -> Row | End:
    for after, row in around:
        if costs.get(after, UNREACHED) + row[3] == cost:
            return row
    return End.WALLED if cost is None else End.MET


def knowable(scope: Scope, states_max: int) -> list[int] | None:
    """All states that strip leaves as they are; None where they are more than so many."""
    fields = {field.name: field for field in scope.fields}
    grounds = {one.variable: one for one in scope.grounds}
    states = [0]
    always = (name for name in fields if name not in grounds)
    for name in (*always, *grounds):
        one, field = grounds.get(name), fields[name]
        states = [
            state | bit
            for state in states
            for bit in _bits(field, scope.within)
            if one is None or not bit & one.known or is_grounded(state, one, bit)
        ]
        if len(states) > states_max:
            return None
    return states


def _bits(field: Field, within: int) -> tuple[int, ...]:
    """The ways in which a variable can stand; where doubts count, touched or not."""
    touched = field.touched & within
    return field.bits + tuple(bit | touched for bit in field.bits if touched)
