"""Which rank of a group runs on which node, and in words why; pure, and the same each time.

A rank stays where it is for as long as its node may run it. One that has lost its node gets another
at once; one that could be kept further apart moves only where all others run, and one at a time.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Final

from haptera.controllers.placement import Placement, Spot, place
from haptera.kinds.replica import WHY_BYTES_MAX
from haptera.sdk.failures import cut


@dataclass(frozen=True, slots=True)
class ReplicaHost:
    """A node that may run replicas: its fault groups by dimension."""

    name: str
    groups: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def shares(self, other: "ReplicaHost", dimensions: Iterable[str]) -> list[str]:
        """The fault groups that both are in, as `rack r1`."""
        return [
            f"{dimension} {name}"
            for dimension in dimensions
            for name in sorted(
                self.groups.get(dimension, _NONE) & other.groups.get(dimension, _NONE)
            )
        ]


_NONE: Final[frozenset[str]] = frozenset()


@dataclass(frozen=True, slots=True)
class Settled:
    """Where each rank is to run, why those that are new are there, and what was given up for it.

    `unplaced` are the ranks for which there is no node.
    """

    nodes: Mapping[int, str]
    why: Mapping[int, str] = field(default_factory=dict)
    shared: tuple[str, ...] = ()
    unplaced: tuple[int, ...] = ()


def settle(
    ranks: Sequence[int],
    hosts: Mapping[str, ReplicaHost],
    now: Mapping[int, str],
    running: Collection[int],
    dimensions: Sequence[str],
    loads: Mapping[str, int],
) -> Settled:
    """Give each rank a node among the hosts; `now` is where each is, `running` those that run.

    `loads` count what runs on each node, those of this group included.
    """
    living = {rank: node for rank, node in now.items() if rank in ranks and node in hosts}
    if len(living) == len(ranks) and not shared(living, hosts, dimensions):
        return Settled(living)
    own = set(now.values())
    spots = [
        Spot(one.name, one.groups, loads.get(one.name, 0) - (one.name in own))
        for one in hosts.values()
    ]
    found = place(ranks, spots, living, dimensions)
    chosen = dict(found.nodes)
    lost = [rank for rank in ranks if rank not in living]
    # One that runs is not moved while another does not, and never two at once.
    movable = set(found.moved[:1]) if not lost and set(running) >= set(ranks) else set()
    for rank in set(found.moved) - movable:
        chosen[rank] = living[rank]
    if len(set(chosen.values())) < len(chosen):
        return _forced(ranks, hosts, living, dimensions, loads)
    return _told(chosen, living, hosts, dimensions, found)


def shared(
    nodes: Mapping[int, str], hosts: Mapping[str, ReplicaHost], dimensions: Sequence[str]
) -> list[str]:
    """By which dimensions some two of these nodes are not apart."""
    there = [hosts[name] for name in nodes.values() if name in hosts]
    return [
        dimension
        for dimension in dimensions
        if any(one.shares(two, (dimension,)) for one, two in combinations(there, 2))
    ]


def _forced(
    ranks: Sequence[int],
    hosts: Mapping[str, ReplicaHost],
    living: Mapping[int, str],
    dimensions: Sequence[str],
    loads: Mapping[str, int],
) -> Settled:
    """Those without a node get one beside those that stay: the best there is for now."""
    chosen = dict(living)
    for rank in ranks:
        free = [one for name, one in hosts.items() if name not in chosen.values()]
        if rank in chosen or not free:
            continue
        taken = [hosts[name] for name in chosen.values()]
        best = min(
            free,
            key=lambda one: (
                sum(len(one.shares(other, dimensions)) for other in taken),
                loads.get(one.name, 0),
                one.name,
            ),
        )
        chosen[rank] = best.name
    unplaced = tuple(rank for rank in ranks if rank not in chosen)
    return _told(chosen, living, hosts, dimensions, Placement(chosen, unplaced=unplaced))


def _told(
    chosen: Mapping[int, str],
    living: Mapping[int, str],
    hosts: Mapping[str, ReplicaHost],
    dimensions: Sequence[str],
    found: Placement,
) -> Settled:
    why = {}
    for rank, name in chosen.items():
        if living.get(rank) != name:
            others = [hosts[other] for one, other in chosen.items() if one != rank]
            why[rank] = _why(hosts[name], others, dimensions, found.shared)
    return Settled(dict(sorted(chosen.items())), why, found.shared, found.unplaced)


def _why(
    one: ReplicaHost,
    others: Sequence[ReplicaHost],
    dimensions: Sequence[str],
    given_up: Sequence[str],
) -> str:
    """In words, for the replica's `placed`."""
    shared = [
        f"{', '.join(groups)} with {other.name}"
        for other in others
        if (groups := one.shares(other, dimensions))
    ]
    if shared:
        what = f"shares {'; '.join(shared)}"
        text = f"{what}: no nodes keep all apart by {', '.join(given_up)}" if given_up else what
    elif dimensions and others:
        names = ", ".join(sorted(other.name for other in others))
        text = f"shares no {' or '.join(dimensions)} with {names}"
    else:
        text = "is on the least loaded node that may run it"
    return cut(text, WHY_BYTES_MAX)
