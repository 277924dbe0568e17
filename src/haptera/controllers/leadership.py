"""Who leads a group, and when the next epoch may be granted; pure, and the same each time.

One lease at a time is to be held. Where its holder cannot lead any more it is taken back first, by
a write of its own; the next one is granted once that is over: because its node says so (it is
spent), or because the node cannot hold leases any more (it is off, or lost for longer than the
longest lease, by clocks that drift). So an epoch is never granted while an earlier one may act.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from haptera.kinds.group import LeaderPolicy


@dataclass(frozen=True, slots=True)
class Contender:
    """A rank that could lead: its node, and for how long it is known to run, in ms.

    What is not known to run may have `stopped`, as its node says, or nobody knows.
    """

    rank: int
    node: str
    running_ms: int | None
    stopped: bool = False


@dataclass(frozen=True, slots=True)
class Grant:
    """A lease that was granted. `wanted`: it is not being taken back; `over`: nobody acts by it."""

    epoch: int
    rank: int
    node: str
    wanted: bool
    over: bool


@dataclass(frozen=True, slots=True)
class Lead:
    """Grant this epoch to this rank, there."""

    epoch: int
    rank: int
    node: str


@dataclass(frozen=True, slots=True)
class Succession:
    """What to do about a group's leases: take some back, forget some, or grant one."""

    take_back: tuple[Grant, ...] = ()
    forget: tuple[Grant, ...] = ()
    grant: Lead | None = None


def succeed(
    members: Mapping[int, Contender],
    grants: Sequence[Grant],
    policy: LeaderPolicy,
    configured: int | None,
    lead: int | None,
    last_epoch: int,
) -> Succession:
    """What comes next; `lead` is the rank that a person has lead for now, where one does.

    `last_epoch` is the last one that was ever granted to this group, 0 before the first.
    """
    chosen = _chosen(members, grants, policy, configured, lead)
    wanted = [one for one in grants if one.wanted]
    good = [one for one in wanted if not one.over and chosen is not None and _is(one, chosen)][-1:]
    bad = tuple(one for one in wanted if one not in good)
    forget = tuple(one for one in grants if one.over and not one.wanted)
    if bad or good or chosen is None:
        return Succession(bad, forget)
    if any(not one.over for one in grants):
        return Succession(forget=forget)
    epoch = max([last_epoch, *(one.epoch for one in grants)]) + 1
    return Succession(forget=forget, grant=Lead(epoch, chosen.rank, chosen.node))


def _is(grant: Grant, member: Contender) -> bool:
    return (grant.rank, grant.node) == (member.rank, member.node)


def _chosen(
    members: Mapping[int, Contender],
    grants: Sequence[Grant],
    policy: LeaderPolicy,
    configured: int | None,
    lead: int | None,
) -> Contender | None:
    """The rank that should lead: the one that does goes on, but where another is named."""
    alive = {rank: one for rank, one in members.items() if one.running_ms is not None}
    holders = [one for grant in grants if (one := _holder(members, grant)) is not None]
    if lead is not None and (lead in alive or lead in {one.rank for one in holders}):
        return members[lead]
    match policy:
        case LeaderPolicy.NONE:
            return None
        case LeaderPolicy.RANK | LeaderPolicy.PLUG_IN:
            named = [one for one in (*holders, *alive.values()) if one.rank == configured]
            return next(iter(named), None)
        case _ if holders:
            return holders[-1]
        case LeaderPolicy.FIRST:
            longest = sorted(alive.values(), key=lambda one: (-(one.running_ms or 0), one.rank))
            return next(iter(longest), None)
        case LeaderPolicy.LOWEST:
            return alive[min(alive)] if alive else None


def _holder(members: Mapping[int, Contender], grant: Grant) -> Contender | None:
    """Who holds a lease that counts; that nobody knows whether it runs does not end it."""
    one = members.get(grant.rank)
    if one is None or one.stopped or grant.over or not grant.wanted or one.node != grant.node:
        return None
    return one
