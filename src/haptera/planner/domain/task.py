"""The task of a goal: what of a class it depends on (relevance closure)."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import cached_property, reduce
from operator import or_

from haptera.planner.domain.bitstate import Field, Operator, Support
from haptera.planner.domain.domain import Domain
from haptera.planner.domain.successors import OperatorRow, SuccessorGenerator


class Memory(Enum):
    """Whether looks rely on what is remembered (semantics.md, Doubt)."""

    TRUSTED = auto()
    DOUBTED = auto()


@dataclass(frozen=True, eq=False)
class Task:
    """A goal, and the variables and moves that it depends on.

    States are words without the bits outside `within`; `allowed` are the bits of those that can
    be last in a chain.
    """

    goal: Mapping[str, str]
    wanted: int
    within: int
    allowed: int
    fields: tuple[Field, ...]
    grounds: tuple[Support, ...]
    rows: tuple[OperatorRow, ...]

    @cached_property
    def openings(self) -> SuccessorGenerator:
        """Which rows can be taken in a state."""
        return SuccessorGenerator(self.rows, self.fields)


def task_of(domain: Domain, goal: Mapping[str, str], memory: Memory) -> Task:
    """The closure of what the goal's variables depend on, by conditions, changes and looks."""
    moves = domain.moves if memory is Memory.TRUSTED else (*domain.moves, *domain.doubts)
    within = _closure(domain, goal, moves)
    fields = tuple(field for field in domain.fields.values() if field.whole & within)
    grounds = tuple(one for one in domain.grounds if one.known & within)
    if memory is Memory.TRUSTED:
        within &= ~domain.touched  # Only doubts read these.
    return Task(
        goal,
        domain.wanted(goal),
        within,
        _allowed(domain, goal, within),
        fields,
        grounds,
        tuple(_row(move, within) for move in moves if move.touches & within),
    )


def apart(domain: Domain, goal: Mapping[str, str], memory: Memory) -> tuple[Task, ...]:
    """A task for each part of the goal that has nothing to do with the others.

    Two parts may read the same variable where nothing ever changes it.
    """
    whole = task_of(domain, goal, memory)
    vary = _varying(whole)
    groups = joined(bits & vary for bits in _together(whole))
    names: dict[int, list[str]] = {}
    for name in sorted(goal):
        bits = domain.fields[name].whole
        mine = next((one for one in groups if one & bits), bits)
        names.setdefault(mine, []).append(name)
    if len(names) == 1:
        return (whole,)
    goals = ({name: goal[name] for name in some} for some in names.values())
    return tuple(task_of(domain, one, memory) for one in goals)


def joined(spans: Iterable[int]) -> list[int]:
    """The bits of spans, those that overlap put together."""
    groups: list[int] = []
    for span in dict.fromkeys(spans):
        overlapping = [one for one in groups if one & span]
        groups = [one for one in groups if not one & span]
        groups.append(reduce(or_, overlapping, span))
    return groups


def _closure(domain: Domain, goal: Mapping[str, str], moves: Iterable[Operator]) -> int:
    within, before = sum(domain.fields[name].span for name in goal), -1
    links = {(move.touches, move.reads) for move in moves}
    while within != before:
        before = within
        for touches, reads in links:
            if touches & within:
                within |= reads
    return within


def _allowed(domain: Domain, goal: Mapping[str, str], within: int) -> int:
    """The goal, and what must be so for it to be known: read downwards from look to look."""
    allowed = within
    for name, value in goal.items():
        field = domain.fields[name]
        allowed &= ~field.whole | field.holding((value,))
    for one in reversed(domain.grounds):
        field = domain.fields[one.variable]
        if field.whole & within and not allowed & (field.remembered | field.unknown):
            allowed &= one.reading(allowed & field.known)
    return allowed


def _row(move: Operator, within: int) -> OperatorRow:
    upsets = tuple(one for one in move.upsets if one.known & within)
    return move.forbidden & within, move.keep, move.put & within, move.part.cost, upsets, move


def _varying(task: Task) -> int:
    """The bits of variables that moves touch, or that can be stripped because of these."""
    vary = reduce(or_, (move.touches for *_, move in task.rows), 0)
    for one in task.grounds:
        if one.reads & vary:
            vary |= one.known | one.known << one.width
    for field in task.fields:
        vary |= field.span if field.whole & vary else 0
    return vary


def _together(task: Task) -> list[int]:
    """For each variable and move, the bits of all variables that it joins.

    What strip joins, looks join: their moves read what they require.
    """
    return [field.span for field in task.fields] + [move.reads for *_, move in task.rows]
