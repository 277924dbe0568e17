"""The controller of groups: declares replicas and leases, as state says they should be.

It holds nothing between two turns: all that it knows it reads, and what must outlive it (the last
epoch of each group) is written before anybody is told of it.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from haptera.controllers.leadership import Contender, Grant, Succession, succeed
from haptera.controllers.replication import ReplicaHost, Settled, settle, shared
from haptera.kinds import group, lease, node, replica
from haptera.kinds.group import (
    LeaderPolicy,
    members_of,
    numbered,
    parse_dimensions,
    parse_leader,
)
from haptera.kinds.lease import LeaseState
from haptera.kinds.node import Power
from haptera.kinds.service import Run
from haptera.model.entity import EntityId
from haptera.model.facts import Method
from haptera.sdk import Cluster, Condition, Conflict, Controller, EntityView
from haptera.selectors.names import ALL_NODES, GroupName
from haptera.selectors.nodeset import parse_nodeset

KINDS: Final = (node.kind.name, group.kind.name, replica.kind.name, lease.kind.name)
# What a replica takes over from its group as it is.
_SAME: Final = ("command", "port", "ready")
# After a write that came too late, the next try.
AGAIN_S: Final = 0.05

Patch = dict[str, str | int | None]


@dataclass(slots=True)
class Writes:
    """What is to be desired, declared and undeclared, all in one write."""

    desired: dict[str, Patch] = field(default_factory=dict)
    declare: dict[str, dict[str, str]] = field(default_factory=dict)
    undeclare: list[str] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.desired or self.declare or self.undeclare)


@dataclass(frozen=True, slots=True)
class NoSettings:
    """There is nothing to set."""


controller = Controller("groups", settings=NoSettings)


@controller.run
async def keep_groups(cluster: Cluster[NoSettings]) -> None:
    async for changes in cluster.watch(kinds=KINDS):
        views, revision = changes.now, changes.revision
        while writes := decide(views, cluster.owner):
            try:
                await cluster.write(
                    writes.desired,
                    declare=writes.declare,
                    undeclare=writes.undeclare,
                    if_revision=revision,
                )
            except Conflict:
                # Something else was desired meanwhile: decide on what is so now.
                await asyncio.sleep(AGAIN_S)
                revision = await cluster.write({})
                views = {
                    name: view
                    for kind in KINDS
                    for name, view in (await cluster.read(f"{kind}:*")).items()
                }
            else:
                break  # The watch tells what came of it.


def decide(views: Mapping[str, EntityView], owner: str) -> Writes:
    """All that is to be written now, for all groups."""
    cluster = _Views(views, owner)
    writes = Writes()
    for view in cluster.groups.values():
        _decide_group(cluster, view, writes)
    for view in cluster.orphans():
        writes.undeclare.append(view.entity)
    return writes


class _Views:
    """The views of all entities as this controller takes them, by kind."""

    def __init__(self, views: Mapping[str, EntityView], owner: str) -> None:
        of_kind: dict[str, dict[str, EntityView]] = {kind: {} for kind in KINDS}
        for name in sorted(views):
            of_kind[views[name].kind][name] = views[name]
        self.nodes = {one.name: one for one in of_kind["node"].values()}
        self.groups = {one.name: one for one in of_kind["group"].values() if one.desired}
        self.replicas = _by_group(of_kind["replica"].values(), "placement", owner)
        self.leases = _by_group(of_kind["lease"].values(), "rank", owner)
        self.loads = Counter(
            str(one.node) for replicas in self.replicas.values() for one in replicas
        )
        self._hosts: dict[tuple[str | None, tuple[str, ...]], dict[str, ReplicaHost]] = {}

    def orphans(self) -> Iterator[EntityView]:
        """What is there for a group that is not any more."""
        for there in (self.replicas, self.leases):
            for group_name, some in there.items():
                if group_name not in self.groups:
                    yield from some

    def hosts(self, text: str | None, dimensions: tuple[str, ...]) -> dict[str, ReplicaHost]:
        """The nodes that may run replicas now, of those that a node-set names."""
        if (text, dimensions) not in self._hosts:
            self._hosts[text, dimensions] = self._found(text, dimensions)
        return self._hosts[text, dimensions]

    def _found(self, text: str | None, dimensions: tuple[str, ...]) -> dict[str, ReplicaHost]:
        nodeset = None if text is None else parse_nodeset(text)
        return {
            name: ReplicaHost(name, {one: fault_groups(view, one) for one in dimensions})
            for name, view in self.nodes.items()
            if may_run(view) and (nodeset is None or nodeset.has(name, self._in_group))
        }

    def _in_group(self, asked: GroupName) -> Collection[str]:
        if asked == ALL_NODES:
            return self.nodes
        source = asked.source or node.groups.name
        return [
            name
            for name, view in self.nodes.items()
            if asked.name in members_of(view.attributes.get(source, ""))
        ]


def _decide_group(cluster: _Views, view: EntityView, writes: Writes) -> None:
    replicas = cluster.replicas.get(view.name, [])
    ranks = range(int(desired(view, "replicas") or 0))
    dimensions = parse_dimensions(str(desired(view, "apart") or ""))
    text = desired(view, "on")
    hosts = cluster.hosts(None if text is None else str(text), dimensions)
    now = {rank_of(one): str(one.node) for one in replicas}
    runs = {rank for one in replicas if (rank := rank_of(one)) in now and runs_ms(one) is not None}
    settled = settle(ranks, hosts, now, runs, dimensions, cluster.loads)
    _write_replicas(view, replicas, settled, writes)
    cluster.loads.update(set(settled.nodes.values()) - set(now.values()))
    stays = {rank for rank, where in settled.nodes.items() if now.get(rank) == where}
    members = {
        rank_of(one): Contender(rank_of(one), str(one.node), runs_ms(one), has_stopped(one))
        for one in replicas
        if rank_of(one) in stays
    }
    grants = [_grant(cluster, one) for one in cluster.leases.get(view.name, [])]
    policy, configured = parse_leader(str(desired(view, "leader") or LeaderPolicy.LOWEST))
    lead, last = desired(view, "lead"), int(desired(view, "epoch") or 0)
    named = None if lead is None else int(lead)
    grants.sort(key=lambda one: one.epoch)
    next_ = succeed(members, grants, policy, configured, named, last)
    _write_leases(view, next_, writes)
    near = shared(settled.nodes, hosts, dimensions)
    says = f"{_placed(len(ranks), settled, near, dimensions)}; {_led(grants, next_)}"
    if desired(view, "says") != (says := says[: group.SAYS_BYTES_MAX]):
        writes.desired.setdefault(view.entity, {})["says"] = says


def _placed(count: int, settled: Settled, near: Sequence[str], dimensions: Sequence[str]) -> str:
    """How far a group is placed, in words."""
    by = [one for one in dimensions if one not in near]
    text = f"{len(settled.nodes)} of {count} placed"
    text += f", apart by {', '.join(by)}" if by else ""
    return f"{text}, not by {', '.join(near)}" if near else text


def _led(grants: Sequence[Grant], next_: Succession) -> str:
    """Who leads, in words."""
    held = [one for one in grants if one.wanted and one not in next_.take_back]
    one = next_.grant or next(reversed(held), None)
    if one is None:
        return "nobody leads now"
    return f"rank {one.rank} leads on {one.node} under epoch {one.epoch}"


def _write_replicas(
    view: EntityView, replicas: Sequence[EntityView], settled: Settled, writes: Writes
) -> None:
    there = {one.entity: one for one in replicas}
    placements = {rank_of(one): int(desired(one, "placement") or 0) for one in replicas}
    same = {name: desired(view, name) for name in _SAME}
    for rank, where in settled.nodes.items():
        name = str(EntityId("replica", f"{view.name}.{rank}", where))
        held = there.pop(name, None)
        wish: Patch = {**same, "run": Run.RUNNING}
        if held is None:
            writes.declare[name] = {"placed": settled.why.get(rank, "")}
            wish["placement"] = placements.get(rank, 0) + 1
        patch = {key: value for key, value in wish.items() if _differs(held, key, value)}
        if patch:
            writes.desired[name] = patch
    writes.undeclare.extend(there)


def _differs(held: EntityView | None, name: str, value: str | int | None) -> bool:
    """Whether this is to be written: what a person wants of a replica is left to them."""
    if held is None:
        return value is not None
    before = held.desired.get(name)
    if before is None:
        return value is not None
    return before.value != value and before.owner == held.desired["placement"].owner


def _write_leases(view: EntityView, next_: Succession, writes: Writes) -> None:
    for one in next_.take_back:
        writes.desired[_lease_name(view, one.epoch, one.node)] = {"state": LeaseState.SPENT}
    writes.undeclare.extend(_lease_name(view, one.epoch, one.node) for one in next_.forget)
    if (lead := next_.grant) is not None:
        name = _lease_name(view, lead.epoch, lead.node)
        writes.desired.setdefault(view.entity, {})["epoch"] = lead.epoch
        writes.declare[name] = {}
        writes.desired[name] = {"state": LeaseState.HELD, "rank": lead.rank}


def _lease_name(view: EntityView, epoch: int, where: str) -> str:
    return str(EntityId("lease", f"{view.name}.{epoch}", where))


def _grant(cluster: _Views, view: EntityView) -> Grant:
    state = view.observed.get("state")
    spent = state is not None and state.known and state.value == LeaseState.SPENT
    where = cluster.nodes.get(str(view.node))
    return Grant(
        epoch=numbered(view.name)[1],
        rank=int(desired(view, "rank") or 0),
        node=str(view.node),
        wanted=desired(view, "state") == LeaseState.HELD,
        over=spent or where is None or holds_nothing(where),
    )


def _by_group(views: Iterable[EntityView], name: str, owner: str) -> dict[str, list[EntityView]]:
    """Those that are the controller's own, as the owner of this value shows, by their groups."""
    found: dict[str, list[EntityView]] = {}
    for view in views:
        held = view.desired.get(name)
        if held is not None and held.owner == owner:
            found.setdefault(numbered(view.name)[0], []).append(view)
    return found


def desired(view: EntityView, name: str) -> str | int | None:
    """What is desired of a view by this name."""
    held = view.desired.get(name)
    return None if held is None else held.value


def rank_of(view: EntityView) -> int:
    """Of a replica."""
    return numbered(view.name)[1]


def runs_ms(view: EntityView) -> int | None:
    """For how long a replica is known to run; None where it does not, or nobody knows."""
    run = view.observed.get("run")
    return run.age_ms if run is not None and run.known and run.value == Run.RUNNING else None


def has_stopped(view: EntityView) -> bool:
    """Whether a replica is known not to run."""
    run = view.observed.get("run")
    return run is not None and run.known and run.value in (Run.STOPPED, Run.FAILED)


def fault_groups(view: EntityView, dimension: str) -> frozenset[str]:
    return frozenset(members_of(view.attributes.get(dimension, "")))


def may_run(view: EntityView) -> bool:
    """Whether a node may be given replicas: it is there, or is not known to have failed."""
    if desired(view, "power") == Power.OFF:
        return False
    agent = view.observed.get("agent")
    if agent is not None and agent.known:
        return True
    # It was heard, and is not any more; else it boots, as far as anybody knows.
    failed = view.lost_ms is not None or (agent is not None and agent.method == Method.READ)
    return not failed and view.condition is not Condition.STUCK


def holds_nothing(view: EntityView) -> bool:
    """Whether no process on a node can act under a lease: it is off, or was silent for too long."""
    power, agent = view.observed.get("power"), view.observed.get("agent")
    if agent is not None and agent.known:
        return False
    off = power is not None and power.known and power.value == Power.OFF
    return view.lost_ms is not None or (off and power is not None and power.contested is None)
