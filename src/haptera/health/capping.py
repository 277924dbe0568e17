"""The power profiles by which nodes stay below a cap on watts or inlet temperature; pure.

It lowers at once what it must, and raises later what it may: only what it has lowered itself, and
nothing that is hot.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum
from math import inf
from typing import Final

# The share of its full power that a node draws, about: what it draws is measured again before the
# next decision, so a wrong one costs a round, and not the cap.
SHARES: Final = (1.0, 0.85, 0.7)
# What may be drawn once nodes are raised, as a share of the cap.
RAISED_SHARE: Final = 0.92
# Between two decisions, so that the first one is measured; and from the last change until nodes are
# raised again.
SETTLE_S: Final = 30.0
CALM_S: Final = 300.0
# An inlet counts as hot until it is this much below its limit.
CLEAR_CELSIUS: Final = 3.0


class Restraint(IntEnum):
    """How far a node is lowered: not, to the profile `balanced`, or to `powersave`."""

    NONE = 0
    SOME = 1
    MOST = 2


@dataclass(frozen=True, slots=True)
class PowerCap:
    """The most that some nodes may draw together, in watts, and that each inlet may have, in °C."""

    watts: int | None = None
    inlet_celsius: int | None = None


@dataclass(frozen=True, slots=True)
class CappedNode:
    """One node below a cap; what is None is not known.

    `restraint` is what is desired, `in_force` what was read. It is `free` to be changed where no
    person has said what it should be; what is `ours` was lowered, and nothing else is raised. One
    that `leads` is lowered after all others; of those that are alike, one that is `busy` is. A
    health rule says of one that is `hot` that it is too warm.
    """

    name: str
    watts: float | None = None
    inlet_celsius: float | None = None
    restraint: Restraint = Restraint.NONE
    in_force: Restraint | None = Restraint.NONE
    free: bool = True
    ours: bool = False
    leads: bool = False
    busy: bool = False
    hot: bool = False

    @property
    def expected_watts(self) -> float | None:
        """The watts that it draws once what is desired is in force."""
        if self.watts is None or self.in_force is None:
            return self.watts
        return self.watts * SHARES[self.restraint] / SHARES[self.in_force]

    @property
    def moves(self) -> bool:
        """True if something comes of desiring another profile."""
        return self.free and self.in_force is not None

    def measured(
        self, *, watts: float | None, inlet_celsius: float | None, leads: bool
    ) -> "CappedNode":
        """The same node with what is measured of it, and its rank below a cap."""
        return replace(self, watts=watts, inlet_celsius=inlet_celsius, leads=leads)

    def to(self, restraint: Restraint) -> "CappedNode":
        """The same node with this desired of it."""
        return replace(self, restraint=restraint)

    def more_watts(self, restraint: Restraint) -> float:
        """The watts that it draws more with this desired of it; less than 0 where it draws less."""
        return (self.to(restraint).expected_watts or 0.0) - (self.expected_watts or 0.0)


@dataclass(frozen=True, slots=True)
class CapDecision:
    """The new restraints of nodes, and the reason in words; None where there is none."""

    restraints: Mapping[str, Restraint]
    why: str | None = None


def decide_cap(nodes: Iterable[CappedNode], cap: PowerCap, *, calm_s: float) -> CapDecision:
    """The next restraints; `calm_s` is for how long none was changed.

    >>> nodes = [CappedNode("n1", 400.0, busy=True), CappedNode("n2", 200.0)]
    >>> decide_cap(nodes, PowerCap(watts=580), calm_s=0.0).restraints
    {'n2': <Restraint.SOME: 1>}
    """
    before = sorted(nodes, key=_order)
    after = [_cooled(one, cap) for one in before]
    hot = sum(map(_differ, before, after))
    why = [f"{hot} inlets have {cap.inlet_celsius} °C or more"] if hot else []
    drawn = drawn_watts(after)
    if cap.watts is not None and drawn is not None and drawn > cap.watts:
        after = _lowered(after, drawn - cap.watts)
        why.append(f"{drawn:.0f} W are drawn of {cap.watts} W")
    elif not hot and calm_s >= CALM_S and (room := _room(cap, drawn)) is not None:
        after = _raised(after, cap, room)
    changed = {
        one.name: one.restraint for was, one in zip(before, after, strict=True) if _differ(was, one)
    }
    return CapDecision(changed, "; ".join(why) if why and changed else None)


def drawn_watts(nodes: Iterable[CappedNode]) -> float | None:
    """The watts that all of them draw; an unmeasured one counts as the largest measured one.

    None where none is measured: nothing follows from that.
    """
    expected = [one.expected_watts for one in nodes]
    known = [one for one in expected if one is not None]
    if not known:
        return None
    return sum(known) + (len(expected) - len(known)) * max(known)


def _sort(one: CappedNode) -> tuple[bool, bool]:
    """The sort key by which nodes are lowered: first idle ones, then those that do not lead."""
    return one.leads, one.busy


def _order(one: CappedNode) -> tuple[tuple[bool, bool], float, str]:
    """Of one sort, who draws most is lowered first."""
    return _sort(one), -(one.watts or 0.0), one.name


def _lowered(nodes: list[CappedNode], excess: float) -> list[CappedNode]:
    """As many lowered as it takes: all of one sort to the end before the next sort begins."""
    after = [*nodes]
    for sort in dict.fromkeys(map(_sort, nodes)):
        for to in (Restraint.SOME, Restraint.MOST):
            for at, one in enumerate(after):
                if excess <= 0:
                    return after
                if _sort(one) == sort and one.moves and one.restraint < to:
                    excess += one.more_watts(to)
                    after[at] = one.to(to)
    return after


def _room(cap: PowerCap, drawn: float | None) -> float | None:
    """How many watts more may be drawn; None where nobody knows what is drawn."""
    if cap.watts is None:
        return inf
    return None if drawn is None else RAISED_SHARE * cap.watts - drawn


def _raised(nodes: list[CappedNode], cap: PowerCap, room: float) -> list[CappedNode]:
    """As many raised by one step as there is room for, in the reverse order."""
    after = [*nodes]
    for at, one in reversed([*enumerate(nodes)]):
        if not _may_rise(one, cap):
            continue
        up = Restraint(one.restraint - 1)
        if (more := one.more_watts(up)) <= room:
            room -= more
            after[at] = one.to(up)
    return after


def _cooled(one: CappedNode, cap: PowerCap) -> CappedNode:
    """A node with a hot inlet is lowered by one step, once the last one is in force."""
    limit, inlet = cap.inlet_celsius, one.inlet_celsius
    too_hot = limit is not None and inlet is not None and inlet >= limit
    waits = one.restraint is not Restraint.NONE and one.in_force != one.restraint
    if not too_hot or waits or not one.moves or one.restraint is Restraint.MOST:
        return one
    return one.to(Restraint(one.restraint + 1))


def _may_rise(one: CappedNode, cap: PowerCap) -> bool:
    if one.hot or not one.ours or not one.moves or one.restraint is Restraint.NONE:
        return False
    if cap.inlet_celsius is None:
        return True
    # An inlet that is not read may be hot.
    inlet = one.inlet_celsius
    return inlet is not None and inlet < cap.inlet_celsius - CLEAR_CELSIUS


def _differ(one: CappedNode, other: CappedNode) -> bool:
    return one.restraint is not other.restraint
