"""Keeps the cluster's pools as the queue needs them: looks, has it decided, and writes.

All that it remembers is how long each slot has been in its phase, and what was refused lately; a
parent that starts anew counts from there. What exists is read from what is declared and seen.
"""

import asyncio
import logging
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from haptera.controllers.pool import Slot, SlotPhase, Unmet, decide, held_until
from haptera.controllers.supply import (
    NodeStanding,
    PoolSaid,
    PoolWrites,
    Supply,
    Views,
    pool_said,
    supply_of,
    writes_of,
)
from haptera.daemon.queue.linked import linked
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.kinds import instance, pool
from haptera.kinds.instance import Refusal
from haptera.model.errors import HapteraError
from haptera.queue.demand import Wanted
from haptera.queue.duty import DutyState
from haptera.runtime import clock
from haptera.runtime.processes.control import Source
from haptera.sdk import Cluster, Conflict

NAME: Final = "pools"
# It is looked so often whatever happens: the power of machines is heard of in no other way.
LOOK_EVERY_S: Final = 2.0
# What cannot be written is tried again so much later.
RETRY_S: Final = 1.0
_S: Final = 1_000_000_000

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Told:
    """What was decided of a pool last: said again only where it is another."""

    actions: tuple[object, ...] = ()
    unmet: tuple[Unmet, ...] = ()


class Pools:
    """All pools of a cluster; `owner` is its tag at providers."""

    def __init__(self, source: Source, jobs: ParentQueue, owner: str) -> None:
        self._source = source
        self._jobs = jobs
        self._owner = owner
        self._views: Views = {}
        self._waken = asyncio.Event()
        self._since: dict[str, tuple[SlotPhase, int]] = {}
        self._refusals: dict[tuple[object, ...], Refusal] = {}
        self._told: dict[str, _Told] = {}

    async def run(self) -> None:
        """Keep them until cancelled."""
        cluster, control = linked(NAME, self._source)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(control.run())
            tasks.create_task(self._hear_of_entities(cluster))
            tasks.create_task(self._hear_of_jobs())
            while True:
                wait_s = LOOK_EVERY_S
                try:
                    wait_s = await self._look(cluster)
                except (HapteraError, Conflict) as error:
                    _log.warning("pools: %s; tries again in %g s", error, RETRY_S)
                    await asyncio.sleep(RETRY_S)
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait_s):
                        await self._waken.wait()

    async def _hear_of_entities(self, cluster: Cluster[None]) -> None:
        async for changes in cluster.watch(kinds=[pool.kind.name, instance.kind.name]):
            self._views = changes.now
            self._waken.set()

    async def _hear_of_jobs(self) -> None:
        turn = 0
        while True:
            turn = await self._jobs.change(turn)
            self._waken.set()

    async def _look(self, cluster: Cluster[None]) -> float:
        """Do what each pool needs now; returns how long nothing more is needed by itself."""
        self._waken.clear()
        wanted: list[Wanted] = self._jobs.demand()
        wait_s = LOOK_EVERY_S
        for view in sorted(self._views.values(), key=lambda one: one.name):
            if view.kind != pool.kind.name or not view.desired:
                continue
            said = pool_said(view)
            supply = supply_of(said, self._owner)
            wanted, until_ns = await self._keep(cluster, said, supply, wanted)
            if until_ns is not None:
                wait_s = min(wait_s, max(0.0, (until_ns - clock.now_ns()) / _S))
        return wait_s

    async def _keep(
        self, cluster: Cluster[None], said: PoolSaid, supply: Supply, wanted: list[Wanted]
    ) -> tuple[list[Wanted], int | None]:
        """What one pool leaves unmet, and when it is to be looked at again by itself."""
        now = clock.now_ns()
        views = await self._seen(cluster, supply)
        tending = PoolWrites()
        supply.tend(views, tending)
        slots = self._dated(supply.slots(views, self._standings(views)), now)
        living = sum(one.phase is not SlotPhase.ABSENT for one in slots)
        for slot, refusal in supply.refusals(views, living, now).items():
            _log.info("pool %s: %s was refused: %s", said.name, slot, refusal)
            self._refusals[said.name, refusal.cause, refusal.size, refusal.family] = refusal
            supply.empty(slot, tending)
        if tending:
            await self._write(cluster, tending)
            self._waken.set()
            return wanted, None
        decision = decide(said.pool, slots, wanted, self._refusals_of(said.name, now), now)
        self._tell(said, _Told(decision.actions, decision.unmet))
        await self._write(cluster, writes_of(said, supply, decision.actions))
        priorities = {one.size: one.priority for one in wanted}
        left = [Wanted(one.size, one.count, priorities.get(one.size, 0)) for one in decision.unmet]
        return left, decision.until_ns

    async def _seen(self, cluster: Cluster[None], supply: Supply) -> Views:
        found = dict(self._views)
        for select in supply.select():
            found |= await cluster.read(select)
        return found

    def _standings(self, views: Views) -> Mapping[str, NodeStanding]:
        queue = self._jobs.queue
        names = {one.name for one in views.values()}
        return {name: _standing(queue.duty(name), name, self._jobs) for name in names}

    def _dated(self, slots: Iterable[Slot], now: int) -> list[Slot]:
        """The slots, each with the time since which it is in its phase."""
        dated = []
        for one in slots:
            phase, since = self._since.get(one.name, (None, now))
            if phase is not one.phase:
                # Making one and booting it are one wait.
                goes_on = phase is SlotPhase.CREATING and one.phase is SlotPhase.BOOTING
                since = since if goes_on else now
                self._since[one.name] = one.phase, since
            dated.append(replace(one, since_ns=since))
        return dated

    def _refusals_of(self, name: str, now: int) -> list[Refusal]:
        for key, one in list(self._refusals.items()):
            if held_until(one) <= now:
                del self._refusals[key]
        return [one for key, one in self._refusals.items() if key[0] == name]

    def _tell(self, said: PoolSaid, told: _Told) -> None:
        if told == self._told.get(said.name, _Told()):
            return
        self._told[said.name] = told
        for action in told.actions:
            _log.info("pool %s: %s", said.name, action)
        for unmet in told.unmet:
            _log.info("pool %s: %d of %s wait: %s", said.name, unmet.count, unmet.size, unmet.why)

    async def _write(self, cluster: Cluster[None], writes: PoolWrites) -> None:
        """Duties first: who is about to be ended is given nothing more from then on."""
        duties = self._jobs.queue.duties
        for name, duty in writes.duties.items():
            if duty != duties.get(name):
                await self._jobs.set_duty(name, duty)
        if writes.declare or writes.desired or writes.undeclare:
            await cluster.write(writes.desired, declare=writes.declare, undeclare=writes.undeclare)


def _standing(state: DutyState, name: str, jobs: ParentQueue) -> NodeStanding:
    holder = jobs.queue.holders.get(name)
    return NodeStanding(
        state, jobs.queue.duties.get(name), holder is not None and bool(holder.held)
    )
