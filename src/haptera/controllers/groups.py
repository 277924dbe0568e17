"""The controller of groups: declares replicas and leases, as state says they should be.

It holds nothing between two turns: all that it knows it reads, and what must outlive it (the last
epoch of each group) is written before anybody learns of it.
"""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from haptera.controllers.group_channels import CHANNEL_KEYS, channels_of
from haptera.controllers.group_views import (
    by_group,
    fault_groups,
    has_failed,
    has_stopped,
    holds_nothing,
    is_trial,
    lacks,
    placement_of,
    rank_in,
    rank_of,
    runs_ms,
    silence_of,
    vacated,
)
from haptera.controllers.group_words import in_vain, led, placed, waits
from haptera.controllers.handover import Handover, Incumbent, hand_over
from haptera.controllers.leadership import Contender, Grant, Succession, succeed
from haptera.controllers.relocation import relocate
from haptera.controllers.replication import ReplicaHost, Settled, settle, shared
from haptera.controllers.versions import (
    Leading,
    Version,
    contending,
    is_leading,
    outlasting,
    own_until,
    versions_of,
)
from haptera.controllers.writes import Patch, Writes
from haptera.kinds import group, health, lease, node, replica, system
from haptera.kinds.group import (
    LeaderPolicy,
    members_of,
    numbered,
    parse_leader,
)
from haptera.kinds.lease import LeaseState
from haptera.kinds.service import Run
from haptera.model.declared.schema import Applied
from haptera.model.entity import EntityId, parse_entity
from haptera.sdk import Cluster, Condition, Conflict, Controller, EntityView
from haptera.sdk.boundary import Boundary
from haptera.sdk.failures import cut
from haptera.selectors.names import ALL_NODES, GroupName
from haptera.selectors.nodeset import parse_nodeset

KINDS: Final = tuple(one.kind.name for one in (node, group, replica, lease, system, health))
# What a replica takes over from its group as it is.
_SAME: Final = ("command", "port", "ready", "limits", "hears", "recover")
_TAKEN_OVER: Final = (*_SAME, *CHANNEL_KEYS)
# After a write that came too late, the next try.
AGAIN_S: Final = 0.05
# While nothing is placed for now, the next look at whether that is over.
LOOK_AGAIN_S: Final = 5.0

Views = Mapping[str, EntityView]


@dataclass(frozen=True, slots=True)
class NoSettings:
    """There is nothing to set."""


controller = Controller("groups", settings=NoSettings)


@controller.run
async def keep_groups(cluster: Cluster[NoSettings]) -> None:
    held = False
    async for told in cluster.watch(kinds=KINDS, tick_s=LOOK_AGAIN_S):
        if held or told.fresh or told.changed or told.gone:
            held = await _keep(cluster, told.now, told.revision)


async def _keep(cluster: Cluster[NoSettings], views: Views, revision: int) -> bool:
    """Write what is to be written; whether time alone may change what that is."""
    ended = any(one.desired_value("run") == Run.STOPPED for one in views.values())
    for kind, has_ages in ((node, silence_of(_nodes(views)) is not None), (replica, ended)):
        if has_ages:
            # For how long they are lost, or run, is shown as of their last change.
            views = {**views, **await cluster.read(f"{kind.kind.name}:*")}
    wall_s = cluster.wall_s()
    while writes := decide(views, cluster.owner, wall_s):
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
            views, revision = await _read(cluster)
        else:
            break  # The watch tells what came of it.
    groups = [view for view in views.values() if view.kind == group.kind.name]
    ends = any((own_until(one) or 0) > wall_s for one in groups)
    return ends or silence_of(_nodes(views)) is not None


def _nodes(views: Views) -> list[EntityView]:
    return [view for view in views.values() if view.kind == node.kind.name]


async def _read(cluster: Cluster[NoSettings]) -> tuple[Views, int]:
    revision = await cluster.write({})
    read = [await cluster.read(f"{kind}:*") for kind in KINDS]
    return {name: view for some in read for name, view in some.items()}, revision


def decide(views: Views, owner: str, wall_s: float) -> Writes:
    """All that is to be written now, for all groups."""
    cluster = _Views(views, owner, wall_s)
    writes = Writes()
    for view in cluster.groups.values():
        own = Writes()
        with Boundary(view.entity) as one:
            _decide_group(cluster, view, own)
        if one.fault is not None:
            own = Writes()
            _say(view, f"it is not kept: {one.fault}", own)
        writes.add(own)
    for view in cluster.orphans():
        writes.undeclare.append(view.entity)
    return writes


class _Views:
    """The views of all entities as this controller takes them, by kind."""

    def __init__(self, views: Views, owner: str, wall_s: float) -> None:
        self.wall_s = wall_s
        of_kind: dict[str, dict[str, EntityView]] = {kind: {} for kind in KINDS}
        for name in sorted(views):
            of_kind[views[name].kind][name] = views[name]
        self.nodes = {one.name: one for one in of_kind["node"].values()}
        self.silence = silence_of(self.nodes.values())
        self._vacated = vacated(self.nodes, of_kind["system"], of_kind["health"])
        self.groups = {one.name: one for one in of_kind["group"].values() if one.desired}
        self.replicas = by_group(of_kind["replica"].values(), "placement", owner)
        self.leases = by_group(of_kind["lease"].values(), "rank", owner)
        self.loads = Counter(
            str(one.node)
            for replicas in self.replicas.values()
            for one in replicas
            if one.desired_value("run") != Run.STOPPED
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
            if name not in self._vacated
            and not has_failed(view)
            and (nodeset is None or nodeset.has(name, self._in_group))
        }

    def is_vacated(self, name: str) -> bool:
        """Whether a node is about to be disturbed: its replicas go elsewhere before."""
        return name in self._vacated

    def is_silent(self, name: str) -> bool:
        """Whether a node that nobody is about to disturb has failed."""
        view = self.nodes.get(name)
        return view is not None and not self.is_vacated(name) and has_failed(view)

    def is_gone(self, one: EntityView) -> bool:
        """Whether a replica does not run, as its node says, or as its node has failed."""
        where = self.nodes.get(str(one.node))
        return has_stopped(one) or where is None or has_failed(where)

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
    replicas = sorted(cluster.replicas.get(view.name, []), key=placement_of)
    channels = channels_of(view, cluster.groups, cluster.replicas, cluster.nodes)
    if channels.waits and not replicas:
        return _say(view, channels.fault, writes)
    grants = [_grant(cluster, one) for one in cluster.leases.get(view.name, [])]
    grants.sort(key=lambda one: one.epoch)
    leading = {(one.rank, one.node) for one in grants if one.wanted and not one.over}
    says: list[str] = []
    own, trial = versions_of(view, channels.wish, leading, cluster.wall_s)
    stays = outlasting(trial, own, replicas, leading)
    kept = [one for one in replicas if one not in stays]
    for version in (own, trial):
        its = [one for one in kept if is_trial(rank_of(one)) == (version is trial)]
        words, ending = _keep_version(cluster, view, version, its, leading, writes)
        stays += [one for one in its if one.entity not in ending]
        says.append(words)
    policy, configured = parse_leader(str(view.desired_value("leader") or LeaderPolicy.LOWEST))
    lead, last = rank_in(view, "lead"), int(view.desired_value("epoch") or 0)
    choice = rank_in(view, "choice") if policy is LeaderPolicy.PLUG_IN else configured
    members = contending(view, _contenders(stays, leading), leading)
    if any(map(is_trial, members)):
        policy = LeaderPolicy.LOWEST  # ranks are named of the group's own version
    next_ = succeed(members, grants, policy, choice, lead, last)
    _write_leases(view, next_, writes)
    missing = lacks(view, choice, own.ranks)
    all_ = filter(None, [missing, channels.fault, *says, led(grants, next_)])
    return _say(view, "; ".join(all_), writes)


def _keep_version(
    cluster: _Views,
    view: EntityView,
    version: Version,
    replicas: Sequence[EntityView],
    leading: Leading,
    writes: Writes,
) -> tuple[str, Collection[str]]:
    """Place one version's replicas, and write what is wanted of them; its words, and what ends."""
    text = view.desired_value("on")
    hosts = cluster.hosts(None if text is None else str(text), version.dimensions)
    command = version.wish.get("command", view.desired_value("command"))
    free, moves = () if cluster.silence else hosts, int(view.desired_value("moves") or 0)
    moved = relocate(replicas, version.ranks, free, command, moves)
    hosts = {name: one for name, one in hosts.items() if name not in moved.barred}
    newest = {rank_of(one): one for one in moved.counting}
    now = {rank: str(one.node) for rank, one in newest.items()}
    runs = {rank for rank, one in newest.items() if runs_ms(one) is not None}
    if cluster.silence is None:
        settled = settle(version.ranks, hosts, now, runs, version.dimensions, cluster.loads)
    else:
        settled = Settled({rank: where for rank, where in now.items() if rank in version.ranks})
    cluster.loads.update(set(settled.nodes.values()) - set(now.values()))
    wishes = _wishes(view, replicas, settled, version.wish)
    there = [
        _incumbent(cluster, one, wishes.get(one.entity, {}), leading) for one in moved.counting
    ]
    handover = hand_over(settled.nodes, version.ranks, there, version.down)
    _write_replicas(moved.counting, wishes, settled, handover, writes)
    writes.desired |= {name: {"run": Run.STOPPED} for name in moved.given_up}
    near = shared(settled.nodes, hosts, version.dimensions)
    vain = filter(None, [waits(handover, version.down), in_vain(moved.failed)])
    held = cluster.silence or "; ".join(vain)
    says = placed(len(version.ranks), settled, near, () if held else version.dimensions)
    return version.words(says, held), handover.ending


def _say(view: EntityView, says: str, writes: Writes) -> None:
    if view.desired_value("says") != (says := cut(says, group.SAYS_BYTES_MAX)):
        writes.desired.setdefault(view.entity, {})["says"] = says


def _wishes(
    view: EntityView, replicas: Sequence[EntityView], settled: Settled, told: Patch
) -> dict[str, Patch]:
    """What is to be written of each replica that should be there, by its name."""
    there = {one.entity: one for one in replicas}
    placements = {rank_of(one): placement_of(one)[0] for one in replicas}
    same = {name: view.desired_value(name) for name in _SAME} | told
    found = {}
    for rank, where in settled.nodes.items():
        name = str(EntityId("replica", f"{view.name}.{rank}", where))
        held = there.get(name)
        wish: Patch = {**same, "run": Run.RUNNING}
        # One that was stopped counts as placed anew: its node may have forgotten its starts.
        if held is None or _differs(held, "run", Run.RUNNING):
            wish["placement"] = placements.get(rank, 0) + 1
        found[name] = {key: value for key, value in wish.items() if _differs(held, key, value)}
    return found


def _incumbent(cluster: _Views, one: EntityView, wish: Patch, leading: Leading) -> Incumbent:
    rank, where, applied = rank_of(one), str(one.node), one.observed.get("applied")
    running = runs_ms(one) is not None
    return Incumbent(
        one.entity,
        rank,
        where,
        gone=cluster.is_gone(one),
        running=running,
        steady=running
        and applied is not None
        and applied.known
        and applied.value == Applied.CURRENT,
        stuck=one.condition is Condition.STUCK,
        outdated=not wish.keys().isdisjoint(_TAKEN_OVER),
        must_leave=cluster.is_vacated(where),
        silent=cluster.is_silent(where),
        leads=is_leading(one, leading),
    )


def _contenders(replicas: Sequence[EntityView], leading: Leading) -> dict[int, Contender]:
    """The candidate of each rank: its leader, or else the one that runs, or was placed last."""

    def weight(one: EntityView) -> tuple[bool, bool, tuple[int, str]]:
        return is_leading(one, leading), runs_ms(one) is not None, placement_of(one)

    return {
        rank_of(one): Contender(rank_of(one), str(one.node), runs_ms(one), has_stopped(one))
        for one in sorted(replicas, key=weight)
    }


def _write_replicas(
    replicas: Sequence[EntityView],
    wishes: Mapping[str, Patch],
    settled: Settled,
    handover: Handover,
    writes: Writes,
) -> None:
    there = {one.entity for one in replicas}
    for name, wish in wishes.items():
        patch = wish
        if name not in there:
            rank = numbered(parse_entity(name).name)[1]
            writes.declare[name] = {"placed": settled.why.get(rank, "")}
        elif name not in handover.changing:
            patch = {key: value for key, value in wish.items() if key not in _TAKEN_OVER}
        if patch:
            writes.desired[name] = patch
    left = {one.entity: one for one in replicas}
    for name in handover.ending:
        one = left.pop(name)
        if rank_of(one) not in {*settled.nodes, *map(rank_of, left.values())}:
            # The last place of a rank that has none now is kept, for its count goes on from there.
            if one.desired_value("run") != Run.STOPPED:
                writes.desired[name] = {"run": Run.STOPPED}
        else:
            writes.undeclare.append(name)


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
        rank=int(view.desired_value("rank") or 0),
        node=str(view.node),
        wanted=view.desired_value("state") == LeaseState.HELD,
        over=spent or where is None or holds_nothing(where),
    )
