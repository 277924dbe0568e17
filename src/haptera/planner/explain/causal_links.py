"""Causal links: which later condition, or which goal, each link of a chain is for.

McAllester, Rosenblitt, "Systematic Nonlinear Planning", AAAI 1991.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from haptera.model.chain import Do, Find
from haptera.planner.domain.bitstate import Field, Operator, Support, is_grounded
from haptera.planner.domain.domain import Domain, excluded, unmet
from haptera.planner.domain.replay import Trail
from haptera.planner.reasons.achievers import named
from haptera.planner.reasons.obstacles import standing


@dataclass(frozen=True, slots=True)
class Need:
    """After so many links, a variable must have none of these bits.

    That is what `move` needs, which comes next, or the goal, at the end; or else what knowing
    another variable `rests` on, which was just brought about.
    """

    place: int
    field: Field
    bits: int
    move: Operator | None = None
    rests: str | None = None


def purposes(domain: Domain, goal: Mapping[str, str], trail: Trail) -> list[list[Need]]:
    """The needs that each link serves: those that were met last by what it brought about."""
    served: list[list[Need]] = [[] for _ in trail.moves]
    for need in (*_needs(domain, goal, trail.moves), *_rests(domain, trail)):
        place = _served_at(need, trail.states)
        if place is not None and (need.rests is None or place < need.place - 1):
            served[place].append(need)
    return served


def so_that(domain: Domain, needs: Sequence[Need], before: int, after: int) -> str | None:
    """What a link is for that leads from one state to another, in words."""
    if not needs:
        return None
    goals = [one for one in needs if one.move is None and one.rests is None]
    if goals:
        values = " and ".join(standing(one.field, after) for one in goals)
        return f"so that {values}, as desired"
    return f"so that {_asked(domain, needs[0], before, after)}"


def _needs(domain: Domain, goal: Mapping[str, str], moves: Sequence[Operator]) -> Iterator[Need]:
    fields = domain.fields
    for place, move in enumerate(moves):
        for field in fields.values():
            if bits := move.forbidden & field.whole:
                yield Need(place, field, bits, move)
    for name in sorted(goal):
        bits = fields[name].whole & ~fields[name].holding((goal[name],))
        yield Need(len(moves), fields[name], bits)


def _rests(domain: Domain, trail: Trail) -> Iterator[Need]:
    """What must be so for that to be known which steps bring about."""
    for place, (move, state) in enumerate(zip(trail.moves, trail.states[1:], strict=True), start=1):
        for grounds in domain.grounds if isinstance(move.link, Do) else ():
            value = move.put & grounds.known & state
            for field in domain.fields.values() if value else ():
                if bits := _ungrounding(grounds, value, field, state):
                    yield Need(place, field, bits, rests=grounds.variable)


def _ungrounding(grounds: Support, value: int, field: Field, state: int) -> int:
    """The bits of a variable with which a value would have no grounds, all else as it is."""
    if not grounds.reads & field.whole:
        return 0
    others = state & ~field.whole
    return sum(bit for bit in field.bits if not is_grounded(others | bit, grounds, value))


def _served_at(need: Need, states: Sequence[int]) -> int | None:
    """The last link before which the need was not met; None: it was met all along."""
    before = reversed(range(need.place))
    return next((place for place in before if states[place] & need.bits), None)


def _asked(domain: Domain, need: Need, before: int, after: int) -> str:
    """What a later part needs, which was not so before."""
    name, stands = need.field.name, standing(need.field, after)
    if need.move is None:
        return f"{stands}: {need.rests} can be known only then"
    part = need.move.part
    for one in part.requires:
        if one.name == name and before & unmet(one, domain.fields):
            return f"{stands}, as {part.path} requires"
    for one in part.excludes:
        if one.name == name and before & excluded(one, domain.fields):
            return f"{stands}: {part.path} is excluded by {named(name, one.values)}"
    if isinstance(need.move.link, Find):
        return f"{part.path} can find {name}={need.move.link.expect}"
    return f"{stands}, where {part.path} starts"
