"""Replicas and leases on this node: a replica is kept as a service is; a lease goes to a process.

A lease never goes back: OPEN, then HELD by one process, then SPENT, for whatever reason. So who
sees it SPENT knows, on this node's word, that nobody will ever act under its epoch again.
"""

import asyncio
import fcntl
import functools
import os
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from haptera.app.lease import (
    ENDING,
    HELD,
    LEASE_TIME,
    LEASES,
    SPENT,
    DamagedLeaseError,
    Lease,
    now_ns,
    opened,
    read_lease,
    read_time,
    write_lease,
)
from haptera.keeping.cgroups import cgroup_name, cgroups_of, memory_cgroups_of
from haptera.keeping.home import (
    Home,
    ServiceProcess,
    replica_home,
    replica_homes,
    send_all,
    session,
)
from haptera.keeping.services import KEEPS, Service, serve
from haptera.kinds import lease, node, replica
from haptera.kinds.group import numbered, parse_limits
from haptera.kinds.lease import LeaseState
from haptera.kinds.node import Agent
from haptera.kinds.replica import ReplicaRole
from haptera.modules.replica.channels.door import CHANNELS_SOCKET
from haptera.modules.replica.channels.serving import (
    BEGUN,
    channels_socket,
    compared_text,
    is_carried,
)
from haptera.modules.replica.leader_socket import leader_socket
from haptera.sdk import SELF, Module, Refused, Target

# A file in the node's run directory: while it is there, nothing of a group is started.
HELD_MARK: Final = f"{LEASES}/.held"
# At the root of a node's cgroups: one for each replica with limits.
CGROUPS: Final = "haptera-replicas"
# Of those that keep a node from being disturbed, so many are named.
TOLD_MAX: Final = 3
# So long has the holder to unlock a lease that is taken back; then it is killed.
UNLOCK_WITHIN_S: Final = 1.0
LOCK_EVERY_S: Final = 0.01
WATCH_EVERY_S: Final = 0.2
# A lease counts as over by time only so long after: the agent may be about to move its end on.
OVER_AFTER_NS: Final = 1_000_000_000


class GroupOnNode(Service):
    """A replica, or the lease of one, where its group's lease lies."""

    @property
    def lease_file(self) -> Path:
        return self.target.run_dir / LEASES / numbered(self.target.name)[0]

    @property
    def epoch(self) -> int:
        """The epoch of a lease."""
        return numbered(self.target.name)[1]

    def held(self) -> Lease | None:
        """What the lease's file says, while it is held by a process that lives."""
        try:
            found = self.read()
        except DamagedLeaseError:
            return None
        if found.state == SPENT or not found.holder_lives:
            return None
        ends = read_time(self.target.run_dir / LEASE_TIME)
        return None if ends.over(found, now_ns() - OVER_AFTER_NS) else found

    def read(self) -> Lease:
        self.lease_file.parent.mkdir(parents=True, exist_ok=True)
        with opened(self.lease_file) as descriptor:
            return read_lease(descriptor)

    def state(self) -> LeaseState:
        """How the lease of this epoch stands."""
        try:
            found = self.read()
        except DamagedLeaseError:
            return self._mended()
        if found.epoch < self.epoch:
            return LeaseState.OPEN
        held = self.held()
        return LeaseState.HELD if held and held.epoch == self.epoch else LeaseState.SPENT

    def _mended(self) -> LeaseState:
        """A damaged file says that its lease is spent, once nobody acts under that."""
        with opened(self.lease_file) as descriptor:
            if not _locks(descriptor):
                return LeaseState.HELD
            found = self.found(descriptor)
            write_lease(descriptor, replace(found, state=SPENT))
        return LeaseState.SPENT if found.epoch >= self.epoch else LeaseState.OPEN

    def found(self, descriptor: int) -> Lease:
        """What its file says; where that is damaged, only the process that runs may hold it."""
        try:
            return read_lease(descriptor)
        except DamagedLeaseError as error:
            record = self.home.record()
            holder = ServiceProcess(0, 0) if record is None else record.service
            epoch = max(self.epoch, error.epoch)
            return Lease(epoch, holder.pid, holder.started, 0, HELD)


def connect(target: Target) -> GroupOnNode:
    """A replica knows its group, and the place of its group's lease."""
    run_dir, name = target.run_dir, target.name
    group, rank = numbered(name)
    if target.entity.kind == lease.kind.name:
        name = f"{group}.{target.values.get(lease.rank.name)}"
    told = {
        "HAPTERA_GROUP": group,
        "HAPTERA_RANK": rank,
        "HAPTERA_PLACEMENT": target.values.get("placement"),
        "HAPTERA_LEASE": run_dir / LEASES / str(group),
        "HAPTERA_LEASE_TIME": run_dir / LEASE_TIME,
    }
    home = replica_home(run_dir, name)
    limits, carried = limits_of(target, home), is_carried(target)
    if carried:
        told["HAPTERA_CHANNELS"] = home.path / CHANNELS_SOCKET
    begins = home.path / BEGUN if carried else None
    return GroupOnNode(target, home, told, limits, run_dir / HELD_MARK, begins)


def limits_of(target: Target, home: Home) -> tuple[str, ...]:
    """The limits of a replica for its keeper."""
    text = target.values.get(replica.limits.name)
    if text is None:
        return ()
    limits = parse_limits(str(text))
    memory = None if limits.memory_mb is None else limits.memory_mb << 20
    said = {
        "cgroup": _cgroup_of(home, _cgroups()),
        "memory_cgroup": None if memory is None else _cgroup_of(home, _memory_cgroups()),
        "memory": memory,
        "cpu": limits.cpu_percent,
        "sentinel": limits.sentinel and f"{limits.silent_ms} {limits.sentinel}",
    }
    return tuple(f"{name} {value}" for name, value in said.items() if value is not None)


def _cgroup_of(home: Home, groups: str | None) -> str | None:
    """Where its cgroup may be made; None: nowhere on this node."""
    return None if groups is None else f"{groups}/{cgroup_name(home.path)}"


@functools.cache
def _cgroups() -> str | None:
    return cgroups_of(CGROUPS)


@functools.cache
def _memory_cgroups() -> str | None:
    return memory_cgroups_of(CGROUPS)


module = Module("replica", connect=connect, context=SELF, needs=KEEPS, writes=("/",))


@module.hold
async def hold(one: GroupOnNode) -> None:
    """Let no replica be started, unless one runs: that one has to go elsewhere first."""
    mark, homes = one.target.run_dir / HELD_MARK, replica_homes(one.target.run_dir)
    mark.parent.mkdir(mode=0o700, exist_ok=True)
    # Replicas write in this folder: a link that one of them left is not followed.
    os.close(os.open(mark, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600))
    if running := [home.path.name for home in homes if home.lives]:
        mark.unlink()
        raise Refused(f"{', '.join(running[:TOLD_MAX])} runs here")


@module.release
async def release(one: GroupOnNode) -> None:
    (one.target.run_dir / HELD_MARK).unlink(missing_ok=True)


serve(module, replica.run, replica.applied)
role = module.serves(replica.role)
state = module.serves(lease.state)


@role.look(
    every_s=10, outcomes=(ReplicaRole.STANDBY, ReplicaRole.LEADER), requires={node.agent: Agent.UP}
)
async def look_role(one: GroupOnNode) -> ReplicaRole:
    """Whether the process that runs now holds the lease now."""
    if (compared := compared_text(one)) is not None:
        one.target.note(compared)
    if (held := one.held()) is None:
        return ReplicaRole.STANDBY
    record = one.home.record()
    leads = record is not None and _holder(held) == record.service
    return ReplicaRole.LEADER if leads else ReplicaRole.STANDBY


@role.watch
async def watch_role(one: GroupOnNode) -> AsyncIterator[ReplicaRole]:
    told: tuple[ReplicaRole, str | None] | None = None
    async with (
        leader_socket(one.home, one.target.run_dir, one.lease_file),
        channels_socket(one, one.lease_file),
    ):
        while True:
            seen, text = await look_role(one), compared_text(one)
            if told != (seen, text):
                told = seen, text
                yield seen
            await asyncio.sleep(WATCH_EVERY_S)


@state.look(
    every_s=10,
    outcomes=(LeaseState.OPEN, LeaseState.HELD, LeaseState.SPENT),
    requires={node.agent: Agent.UP},
)
async def look_state(one: GroupOnNode) -> LeaseState:
    return one.state()


@state.watch
async def watch_state(one: GroupOnNode) -> AsyncIterator[LeaseState]:
    """The end of the process that holds it is reported at once."""
    told: LeaseState | None = None
    while True:
        if (seen := one.state()) is not told:
            told = seen
            yield seen
        held = one.held()
        if seen is LeaseState.HELD and held is not None:
            await _holder(held).ends(WATCH_EVERY_S)
        else:
            await asyncio.sleep(WATCH_EVERY_S)


@state.step(LeaseState.OPEN, LeaseState.HELD, within_s=5, late_s=1)
async def take(one: GroupOnNode) -> None:
    """Grant it to the process that runs now, and to no later one."""
    record = one.home.record()
    if record is None or not record.service.lives:
        raise Refused("its replica does not run here")
    one.lease_file.parent.mkdir(parents=True, exist_ok=True)
    with opened(one.lease_file) as descriptor:
        await _lock(descriptor)
        if one.state() is LeaseState.OPEN:
            holder = record.service
            granted = Lease(one.epoch, holder.pid, holder.started, now_ns(), HELD)
            write_lease(descriptor, granted)


@state.step((LeaseState.OPEN, LeaseState.HELD), LeaseState.SPENT, within_s=5, late_s=1)
async def take_back(one: GroupOnNode) -> None:
    """Let nobody act under it any more: who does not let go of it is killed."""
    one.lease_file.parent.mkdir(parents=True, exist_ok=True)
    with opened(one.lease_file) as descriptor:
        found = one.found(descriptor)
        if found.epoch < one.epoch:
            found = Lease(one.epoch, 0, 0, 0, SPENT)
        elif found.epoch > one.epoch:
            return
        else:
            write_lease(descriptor, replace(found, state=ENDING))
        with suppress(TimeoutError):
            async with asyncio.timeout(UNLOCK_WITHIN_S):
                await _lock(descriptor)
        with session(_holder(found)) as members:
            if not _locks(descriptor):
                send_all(members, signal.SIGKILL)
        await _lock(descriptor)
        write_lease(descriptor, replace(found, state=SPENT))


def _holder(held: Lease) -> ServiceProcess:
    return ServiceProcess(held.pid, held.started)


async def _lock(descriptor: int) -> None:
    """Wait until nobody acts under the lease; it is ours until the file is closed."""
    while not _locks(descriptor):  # noqa: ASYNC110  a lock is waited for
        await asyncio.sleep(LOCK_EVERY_S)


def _locks(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
