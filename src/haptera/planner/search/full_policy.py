"""A full policy: the next operator from each knowable state, by one backward Dijkstra pass."""

from collections.abc import Mapping
from itertools import islice

from haptera.planner.domain.bitstate import Field, is_grounded, strip
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task
from haptera.planner.search.dijkstra import UNREACHED, distances
from haptera.planner.search.serial_subgoals import End, leads


def solve(task: Task, states_max: int) -> Mapping[int, OperatorRow | End] | None:
    """The first move of the cheapest route from each state; None where there are too many."""
    states = knowable(task, states_max)
    if states is None:
        return None
    ways = [(row, _stripped(leads(states, row), row)) for row in task.rows]
    before: dict[int, list[tuple[int, int]]] = {state: [] for state in states}
    for row, pairs in ways:
        for state, after in pairs:
            assert after in before, "strip has left what cannot be known"
            before[after].append((state, row[3]))
    costs = distances((one for one in states if one & task.wanted == task.wanted), before)
    nexts: dict[int, OperatorRow | End]
    nexts = {state: End.MET if state in costs else End.WALLED for state in states}
    for row, pairs in reversed(ways):  # The first in order has the last word.
        for state, after in pairs:
            if costs.get(after, UNREACHED) + row[3] == costs.get(state):
                nexts[state] = row
    return nexts


def _stripped(pairs: list[tuple[int, int]], row: OperatorRow) -> list[tuple[int, int]]:
    return [(state, strip(after, row[4])) for state, after in pairs] if row[4] else pairs


def knowable(task: Task, states_max: int) -> list[int] | None:
    """All states that strip leaves as they are; None where they are more than so many."""
    fields = {field.name: field for field in task.fields}
    grounds = {one.variable: one for one in task.grounds}
    states = [0]
    always = (name for name in fields if name not in grounds)
    for name in (*always, *grounds):
        one, bits = grounds.get(name), _bits(fields[name], task.within)
        more = (
            state | bit
            for state in states
            for bit in bits
            if one is None or not bit & one.known or is_grounded(state, one, bit)
        )
        states = list(islice(more, states_max + 1))
        if len(states) > states_max:
            return None
    return states


def _bits(field: Field, within: int) -> tuple[int, ...]:
    """The ways in which a variable can stand; where doubts count, untouched if still remembered."""
    touched = field.touched & within
    untouched = (bit for bit in field.bits if touched and bit & field.remembered)
    return (*(bit | touched for bit in field.bits), *untouched)
