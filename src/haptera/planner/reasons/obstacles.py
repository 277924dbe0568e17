"""Obstacles that moves meet, in words: the part, and the present values."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from haptera.model.chain import Do, Find, Hurdle, Role
from haptera.model.parts import ANY, Look, Part, Step
from haptera.planner.domain.bitstate import Field, Operator, is_grounded
from haptera.planner.domain.domain import Domain, unmet
from haptera.planner.domain.task import Task
from haptera.planner.reasons.achievers import named, no_step_leads
from haptera.planner.reasons.ignored_conditions import after


@dataclass(frozen=True, slots=True)
class Breach:
    """A part that may not be taken in this state, by the hurdle's variable.

    `bits` are those of the variable that must not be set. Where knowledge `rests` on the part,
    it was to be forgotten here. A look is to find what it is taken to `expect`.
    """

    hurdle: Hurdle
    part: Part
    state: int
    bits: int
    rests: bool = False
    expect: str | None = None


def breaches(
    domain: Domain, task: Task, freed: Task, start: int, moves: Sequence[Operator]
) -> Iterator[Breach]:
    """What the moves of a relaxed task meet that the task itself would not let pass."""
    rows = {row[-1]: row for row in freed.rows}
    fields = sorted(task.fields, key=lambda field: field.name)
    state = start & task.within
    for move in moves:
        for field in fields:
            bits = move.forbidden & field.whole
            if state & bits:
                hurdle = Hurdle(field.name, _role(field, move))
                expect = move.link.expect if isinstance(move.link, Find) else None
                yield Breach(hurdle, move.part, state, bits, expect=expect)
        state = after(state, rows[move])
        yield from _unfounded(domain, task, state)


def told(domain: Domain, met: Sequence[Breach]) -> str:
    """One hurdle in words, by the last part that meets it, and as it first stood."""
    met = [one for one in met if not one.rests] or met
    last = met[-1]
    others = len({one.part.path for one in met}) - 1
    plural = "" if others == 1 else "s"
    who = f"{last.part.path}, like {others} other part{plural}," if others else last.part.path
    name = last.hurdle.variable
    field = domain.fields[name]
    alike = (one.state for one in met if _held(field, one.state) == _held(field, last.state))
    last = replace(last, state=next(state for state in alike if state & last.bits))
    stands = standing(field, last.state)
    match last.part, last.hurdle.role:
        case _, Role.CONDITION:
            return _condition(domain, last, who)
        case Step(changes=changes), _:
            change = next(one for one in changes if one.variable == name)
            if change.sources == (ANY,):
                return f"{who} starts where {name} is not {change.target}, but {stands}"
            but = _lacking(domain, name, change.sources, stands)
            return f"{who} starts from {named(name, change.sources)}, but {but}"
        case part, _:
            wanted = () if last.expect is None else (last.expect,)
            but = _lacking(domain, name, wanted, stands)
            return f"{part.path} can only find what is so, but {but}"


def standing(field: Field, state: int) -> str:
    """How a variable stands."""
    if (value := field.value(state)) is not None:
        return f"{field.name} is {value}"
    if (memory := field.memory(state)) is not None:
        return f"{field.name} was last known as {memory}"
    return f"{field.name} is not known"


def _lacking(domain: Domain, name: str, values: tuple[str, ...], stands: str) -> str:
    """How a variable stands, and that no step brings it to one of these values, where none does."""
    unknown = domain.fields[name].values[0]
    lacking = None if unknown in values else no_step_leads(domain, name, values)
    return stands if lacking is None else f"{stands}, and {lacking}"


def _held(field: Field, state: int) -> str | None:
    return field.value(state) or field.memory(state)


def _role(field: Field, move: Operator) -> Role:
    if not field.whole & move.touches:
        return Role.CONDITION
    return Role.SOURCE if isinstance(move.link, Do) else Role.READING


def _unfounded(domain: Domain, task: Task, state: int) -> Iterator[Breach]:
    """Looks that what is known here rests on, and that could not be taken."""
    for grounds in task.grounds:
        held = state & grounds.known
        if not held or is_grounded(state, grounds, held):
            continue
        for look in domain.looks:
            for one in look.requires if look.at == grounds.variable else ():
                bits = unmet(one, domain.fields)
                if state & bits:
                    hurdle = Hurdle(one.name, Role.CONDITION)
                    yield Breach(hurdle, look, state, bits, rests=True)


def _condition(domain: Domain, breach: Breach, who: str) -> str:
    name = breach.hurdle.variable
    for one in breach.part.requires:
        if one.name == name and breach.state & unmet(one, domain.fields):
            stands = standing(domain.fields[name], breach.state)
            but = _lacking(domain, name, one.values, stands)
            needs = named(name, one.values)
            if breach.rests and isinstance(breach.part, Look):
                return f"{breach.part.at} is known only while {needs}, but {but}"
            return f"{who} requires {needs}, but {but}"
    return f"{who} is excluded {_excluding(domain.fields[name], breach)}"


def _excluding(field: Field, breach: Breach) -> str:
    if (value := field.value(breach.state)) is not None:
        return f"by {named(field.name, (value,))}"
    memory = field.memory(breach.state)
    excludes = (one.values for one in breach.part.excludes if one.name == field.name)
    if memory is not None and any(memory in values for values in excludes):
        return f"by {named(field.name, (memory,))}, as last known"
    return f"while {field.name} is not known"
