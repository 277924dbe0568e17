"""A task without some conditions: what a plan could do if these variables did not matter."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from haptera.model.chain import Find, Hurdle, Role
from haptera.planner.domain.bitstate import Field, Operator, Support, strip
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task


@dataclass(frozen=True, slots=True)
class IgnoredConditions:
    """What does not matter, as the bits of variables, one word for each role of a hurdle.

    No part requires or excludes any of `conditions`, and no look rests on it. Steps start
    wherever `sources` stand. Looks at `readings` may find anything, whatever is known of these.
    """

    conditions: int = 0
    sources: int = 0
    readings: int = 0

    def covers(self, move: Operator) -> int:
        """The bits that do not hinder a move."""
        own = self.readings if isinstance(move.link, Find) else self.sources
        return self.conditions & ~move.touches | own & move.touches


def ignored_of(fields: Iterable[Field], hurdles: Iterable[Hurdle]) -> IgnoredConditions:
    """The bits of hurdles among the variables of these fields."""
    bits = dict.fromkeys(Role, 0)
    wholes = {field.name: field.whole for field in fields}
    for one in hurdles:
        bits[one.role] |= wholes[one.variable]
    return IgnoredConditions(bits[Role.CONDITION], bits[Role.SOURCE], bits[Role.READING])


def relaxed(task: Task, relief: IgnoredConditions) -> Task:
    """The task, its moves the same but less hindered, its states forgotten less."""
    grounds = {one.variable: _grounds(one, relief) for one in task.grounds}
    allowed = task.within
    for field in task.fields:
        if field.whole & task.wanted:
            allowed &= ~field.whole | task.wanted
    rows = tuple(_row(row, grounds, relief) for row in task.rows)
    return replace(task, allowed=allowed, grounds=tuple(grounds.values()), rows=rows)


def after(state: int, row: OperatorRow) -> int:
    """The state that a row leads to."""
    _, keep, put, _, upsets, _ = row
    return strip(state & keep | put, upsets)


def _grounds(one: Support, relief: IgnoredConditions) -> Support:
    looks = tuple((yields, closed & ~relief.conditions) for yields, closed in one.looks)
    return replace(one, looks=looks, reads=one.reads & ~relief.conditions)


def _row(row: OperatorRow, grounds: dict[str, Support], relief: IgnoredConditions) -> OperatorRow:
    forbidden, keep, put, cost, upsets, move = row
    freed = tuple(grounds[one.variable] for one in upsets)
    return forbidden & ~relief.covers(move), keep, put, cost, freed, move
