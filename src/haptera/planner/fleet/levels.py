"""Tables of next moves, read by columns: of each factor a level for every entity, all at once.

The level is the number of the next move. Ends are levels, too, so that the lowest of all factors,
or stages, is that of the goal.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod
from operator import and_, or_
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from haptera.planner.domain.bitstate import Field, Operator
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.successors import OperatorRow
from haptera.planner.domain.task import Task
from haptera.planner.fleet.masks import Mask, Sheet, stands
from haptera.planner.fleet.states import numbering
from haptera.planner.search.factors import Factors
from haptera.planner.search.policy_cache import PolicyCache
from haptera.planner.search.serial_subgoals import End, Subgoal

Levels = NDArray[np.int32]
WALLED: Final = -2
UNKNOWN: Final = -1
MET: Final = 2**31 - 1
# Ways in which the variables of a table can stand, possible or not; above it is not read at once.
PLACES_MAX: Final = 65_536

Numbers = Mapping[Operator, int]


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """The level by how some variables stand together."""

    fields: tuple[Field, ...]
    levels: Levels

    def read(self, sheet: Sheet) -> Levels:
        first, *others = self.fields
        places = sheet[first.name].astype(np.intp)
        for field in others:
            places = places * len(field.bits) + sheet[field.name]
        return self.levels.take(places)


@dataclass(frozen=True, slots=True, eq=False)
class Staged:
    """One stage: the levels of its moves, each group with the stages that have to be done first."""

    stage: Subgoal
    fields: tuple[Field, ...]
    groups: tuple[tuple[tuple[int, ...], Lookup], ...]

    def missing(self, sheet: Sheet) -> Mask:
        """With which entities the stage is not done."""
        return _any(sheet, self.stage.fields, self.stage.missing)

    def resting(self, sheet: Sheet) -> Mask:
        """With which entities something known may rest on it."""
        return _any(sheet, self.fields, self.stage.resting)


@dataclass(frozen=True, slots=True, eq=False)
class Stages:
    """The levels of a goal that is reached one stage after the other."""

    each: tuple[Staged, ...]

    def read(self, sheet: Sheet) -> Levels:
        missing = [one.missing(sheet) for one in self.each]
        waiting = [mask * np.int32(MET) for mask in missing]
        levels = np.full(len(missing[0]), MET, np.int32)
        for number, one in enumerate(self.each):
            for asked, lookup in one.groups:
                group = lookup.read(sheet)
                for other in asked:
                    group |= waiting[other]
                np.minimum(levels, group, out=levels)
            unsure = missing[number] & one.resting(sheet)
            levels[unsure] = np.minimum(levels[unsure], UNKNOWN)
        return levels


@dataclass(frozen=True, slots=True, eq=False)
class Bare:
    """Without a table: only who meets the goal is told."""

    task: Task

    def read(self, sheet: Sheet) -> Levels:
        wanted = self.task.wanted
        fields = (field for field in self.task.fields if field.whole & wanted)
        met = reduce(and_, (stands(sheet, field, wanted) for field in fields))
        return np.where(met, np.int32(MET), np.int32(UNKNOWN))


Table = Lookup | Stages | Bare

_LEVELS: Final = WeakKeyDictionary[Factors, tuple[Table, ...]]()


def levels_of(domain: Domain, factors: Factors) -> tuple[Table, ...]:
    """What is read for each factor; kept as long as the factors are."""
    if factors not in _LEVELS:
        numbers = numbering(domain)
        _LEVELS[factors] = tuple(table(one.tables, one.task, numbers) for one in factors.parts)
    return _LEVELS[factors]


def table(moves: PolicyCache, task: Task, numbers: Numbers) -> Table:
    """The next moves of a factor, as far as they do not come from searches."""
    fields = task.fields
    if moves.ahead is not None and prod(len(field.bits) for field in fields) <= PLACES_MAX:
        begins = _begins(task, moves.ahead)
        return _lookup(fields, {state: _level(row, numbers) for state, row in begins.items()})
    if moves.stages:
        staged = (_staged(one, moves.stages, fields, numbers) for one in moves.stages)
        return Stages(tuple(staged))
    return Bare(task)


def _begins(task: Task, ahead: Mapping[int, OperatorRow | End]) -> Mapping[int, OperatorRow | End]:
    """Of the states in which searches begin: where doubts count, a memory is in doubt there."""
    for field in task.fields:
        if touched := field.touched & task.within:
            memory = field.remembered
            ahead = {
                one: row for one, row in ahead.items() if (not one & touched) == bool(one & memory)
            }
    return ahead


def _staged(
    stage: Subgoal, stages: tuple[Subgoal, ...], fields: tuple[Field, ...], numbers: Numbers
) -> Staged:
    groups: dict[tuple[int, ...], dict[int, int]] = {(): {}}
    for bits in product(*(field.bits for field in stage.fields)):
        state = sum(bits)
        rows = stage.rows.get(state)
        if state & stage.missing and not rows:
            groups[()][state] = UNKNOWN if rows is None else WALLED
        for _, row in rows or ():
            others = ((one is not stage and row[0] & one.whole) for one in stages)
            asked = tuple(place for place, asks in enumerate(others) if asks)
            groups.setdefault(asked, {}).setdefault(state, numbers[row[-1]])
    found = tuple((asked, _lookup(stage.fields, one, MET)) for asked, one in groups.items() if one)
    return Staged(stage, fields, found)


def _lookup(fields: tuple[Field, ...], levels: Mapping[int, int], other: int = UNKNOWN) -> Lookup:
    places: list[tuple[int, dict[int, int]]] = []
    count = 1
    for field in reversed(fields):
        places.append((field.whole, {bit: place * count for place, bit in enumerate(field.bits)}))
        count *= len(field.bits)
    table = np.full(count, other, np.int32)
    table[[sum([at[state & whole] for whole, at in places]) for state in levels]] = [
        *levels.values()
    ]
    return Lookup(fields, table)


def _level(row: OperatorRow | End, numbers: Numbers) -> int:
    return _ENDS[row] if isinstance(row, End) else numbers[row[-1]]


_ENDS: Final = {End.WALLED: WALLED, End.UNKNOWN: UNKNOWN, End.MET: MET}


def _any(sheet: Sheet, fields: Iterable[Field], bits: int) -> Mask:
    """With which entities one of these bits is set."""
    count = len(next(iter(sheet.values())))
    each = (stands(sheet, field, bits) for field in fields if field.whole & bits)
    return reduce(or_, each, np.zeros(count, np.bool_))
