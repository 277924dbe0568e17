"""The settings of a group's replicas for their channels; pure.

The servers that carry them are the replicas of another group, where these are placed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from haptera.controllers.writes import Patch
from haptera.kinds import group, replica
from haptera.kinds.group import LeaderPolicy, parse_hears, parse_leader
from haptera.kinds.host_port import HostPort
from haptera.kinds.service import Run
from haptera.sdk import EntityView

# Settings of a replica besides those of its group.
CHANNEL_KEYS: Final = (replica.carriers.name, replica.voice.name)

Groups = Mapping[str, EntityView]


@dataclass(frozen=True, slots=True)
class ReplicaChannels:
    """The values for each replica, and the faults, in words for people.

    Where a group `waits`, its carrier runs nowhere yet: it is not begun, to learn of it at once.
    """

    wish: Patch = field(default_factory=lambda: dict.fromkeys(CHANNEL_KEYS))
    fault: str = ""
    waits: bool = False


def channels_of(
    view: EntityView,
    groups: Groups,
    replicas: Mapping[str, Sequence[EntityView]],
    nodes: Mapping[str, EntityView],
) -> ReplicaChannels:
    """The values for a group's replicas, by its channels."""
    carrier = view.desired_value(group.carrier.name)
    if carrier is None:
        return ReplicaChannels()
    servers = groups.get(str(carrier))
    port = None if servers is None else servers.desired_value(group.port.name)
    if port is None:
        what = "is no group" if servers is None else "has no port"
        return ReplicaChannels(fault=f"its carrier {carrier} {what}", waits=True)
    policy, _ = parse_leader(str(view.desired_value(group.leader.name) or LeaderPolicy.LOWEST))
    addresses = sorted(_addresses(replicas.get(str(carrier), ()), nodes))
    if not addresses:
        return ReplicaChannels(fault=f"it waits for its carrier {carrier}", waits=True)
    wish: Patch = {
        replica.carriers.name: ",".join(str(HostPort(one, int(port))) for one in addresses),
        replica.voice.name: replica.ALONE if policy is LeaderPolicy.NONE else None,
    }
    return ReplicaChannels(wish, hearing_fault(view.name, groups))


def _addresses(replicas: Sequence[EntityView], nodes: Mapping[str, EntityView]) -> Iterator[str]:
    for one in replicas:
        where = nodes.get(str(one.node))
        if where is not None and one.desired_value("run") != Run.STOPPED:
            yield where.attributes.get("address", where.name)


def hearing_fault(name: str, groups: Groups) -> str:
    """The fault in what a group hears: a missing group, or itself, over others."""
    seen, wanted = set[str](), [name]
    while wanted:
        one = wanted.pop()
        for heard in _heard(groups[one]):
            if heard not in groups:
                return f"{heard}, which {one} hears, is no group"
            if heard == name:
                return f"it hears itself over {one}" if one != name else "it hears itself"
            if heard not in seen:
                seen.add(heard)
                wanted.append(heard)
    return ""


def _heard(view: EntityView) -> tuple[str, ...]:
    return parse_hears(str(view.desired_value(group.hears.name) or ""))
