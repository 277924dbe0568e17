"""Keeps the cluster's pools as the queue needs them: looks, has it decided, and writes.

All that it remembers is how long each slot has been in its phase, and what was refused lately; a
parent that starts anew counts from there, but for what is being made: since when is an attribute.
What exists is read from what is declared and seen.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from typing import Final

from haptera.controllers.pool import (
    PoolDecision,
    Slot,
    SlotPhase,
    Unmet,
    decide,
    held_until,
    standing,
)
from haptera.controllers.supply import (
    NAME,
    NodeStanding,
    PoolSaid,
    PoolWrites,
    Supply,
    Views,
    pool_said,
    relieve,
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
from haptera.sdk.boundary import Boundary

# It is looked so often whatever happens: the power of machines is heard of in no other way.
LOOK_EVERY_S: Final = 2.0
# A pool that cannot be read or written is tried again so much later.
RETRY_S: Final = 1.0
_S: Final = 1_000_000_000
_COMING: Final = (SlotPhase.CREATING, SlotPhase.BOOTING)

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Kept:
    """One pool, what is seen of it, and what is to be written."""

    said: PoolSaid
    supply: Supply
    views: Views
    slots: list[Slot] = field(default_factory=list)
    writes: PoolWrites = field(default_factory=PoolWrites)


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
        self._unmet: dict[str, tuple[Unmet, ...]] = {}
        # What stands in the way of keeping a pool, by its name: all others are kept.
        self._wrong: dict[str, str] = {}
        # Instances by pool and phase, and refusals by pool and cause, since this process began.
        self.standing: Counter[tuple[str, str]] = Counter()
        self.refused: Counter[tuple[str, str]] = Counter()

    async def run(self) -> None:
        """Keep them until cancelled."""
        cluster, control = linked(NAME, self._source)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(control.run())
            tasks.create_task(self._hear_of_entities(cluster))
            tasks.create_task(self._hear_of_jobs())
            while True:
                wait_s = RETRY_S
                with Boundary("pools"):  # of the queue, which all of them follow
                    wait_s = await self._look(cluster)
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
        wrong: dict[str, str] = {}
        kept = [one async for one in self._read(cluster, wrong)]
        # From here on nothing is waited for: demand and holders are of one moment.
        now = clock.now_ns()
        wanted = self._jobs.demand()
        until_ns = now + int(LOOK_EVERY_S * _S)
        self.standing.clear()
        for gone in self._jobs.pools.keys() - {one.said.name for one in kept} - wrong.keys():
            del self._jobs.pools[gone]
        for one in kept:
            with self._by_itself(one.said.name, wrong):
                wanted, again_ns = self._decide(one, wanted, now)
                until_ns = min(until_ns, until_ns if again_ns is None else again_ns)
        for one in kept:
            with self._by_itself(one.said.name, wrong):
                await self._forget(one)
                await self._write(cluster, one.writes)
        self._wrong = wrong
        if wrong:
            return RETRY_S
        return max(0.0, (until_ns - clock.now_ns()) / _S)

    async def _read(self, cluster: Cluster[None], wrong: dict[str, str]) -> AsyncIterator[_Kept]:
        """The pools that can be kept, with what is seen of them; what is `wrong` with others."""
        for view in sorted(self._views.values(), key=lambda one: one.name):
            if view.kind != pool.kind.name or not view.desired:
                continue
            one: _Kept | None = None
            with self._by_itself(view.name, wrong):
                said = pool_said(view)
                supply = supply_of(said, self._owner, clock.wall_s())
                one = _Kept(said, supply, await self._seen(cluster, supply))
            if one is not None:
                yield one

    @contextmanager
    def _by_itself(self, name: str, wrong: dict[str, str]) -> Iterator[None]:
        """What goes wrong with a pool keeps this one alone from being kept."""
        try:
            with Boundary(f"pool {name}", (HapteraError, Conflict)) as one:
                yield
            fault = one.fault
        except (HapteraError, Conflict) as error:
            fault = str(error)
        if fault is not None:
            self._complain(wrong, name, fault)

    def _complain(self, wrong: dict[str, str], name: str, fault: str) -> None:
        """Say what keeps a pool from being kept: in answers, and, once, in the log."""
        wrong[name] = text = f"is not kept: {fault}"
        self._jobs.pools[name] = text
        if self._wrong.get(name) != text:
            _log.warning("pool %s %s; tries again each %g s", name, text, RETRY_S)

    def _decide(
        self, one: _Kept, wanted: list[Wanted], now: int
    ) -> tuple[list[Wanted], int | None]:
        """What one pool leaves unmet, and when it is to be looked at again by itself."""
        said, supply = one.said, one.supply
        standings = self._standings(one.views)
        asked_s = supply.asked_s(one.views)
        one.slots = self._dated(supply.slots(one.views, standings), asked_s, now)
        self.standing.update((said.name, each.phase.value) for each in one.slots)
        supply.reconcile(one.views, standings, one.writes)
        self._take_refusals(one)
        if one.writes:
            return wanted, now
        decision = decide(said.pool, one.slots, wanted, self._refusals_of(said.name, now), now)
        self._tell(said, decision)
        one.writes = writes_of(supply, decision.actions, one.views)
        unmet = self._unmet.get(said.name, ())
        self._jobs.pools[said.name] = standing(said.pool, one.slots, unmet)
        priorities = {each.size: each.priority for each in wanted}
        left = [
            Wanted(each.size, each.count, priorities.get(each.size, 0)) for each in decision.unmet
        ]
        return left, decision.until_ns

    def _take_refusals(self, one: _Kept) -> None:
        """Remember what was refused, and want it no more: what is asked for next is decided."""
        refused = one.supply.refusals(one.views)
        there = (slot for slot in one.slots if slot.phase is not SlotPhase.ABSENT)
        living = sum(slot.name not in refused for slot in there)
        for slot, (size, words) in refused.items():
            _log.info("pool %s: %s was refused: %s", one.said.name, slot, words)
            refusal = words.refusal(size.name, size.family, living, clock.now_ns())
            self.refused[one.said.name, refusal.cause.value] += 1
            key = one.said.name, refusal.cause, refusal.size, refusal.family
            self._refusals[key] = refusal
            one.supply.empty(slot, one.writes)

    async def _forget(self, kept: _Kept) -> None:
        """An asker on what is gone is gone too, and so is our drain of it."""
        for one in kept.slots:
            if one.phase is not SlotPhase.ABSENT:
                continue
            if one.name in self._jobs.queue.holders:
                await self._jobs.lose(one.name, f"{one.name} is gone")
            if f"node:{one.name}" not in kept.writes.undeclare:
                relieve(one.name, None, kept.views, kept.writes)

    async def _seen(self, cluster: Cluster[None], supply: Supply) -> Views:
        found = dict(self._views)
        for select in supply.select():
            found |= await cluster.read(select)
        return found

    def _standings(self, views: Views) -> Mapping[str, NodeStanding]:
        queue = self._jobs.queue
        names = {one.name for one in views.values()}
        return {name: _standing(queue.duty(name), name, self._jobs) for name in names}

    def _dated(self, slots: Iterable[Slot], asked_s: Mapping[str, float], now: int) -> list[Slot]:
        """The slots, each with the time since which it is in its phase.

        Since when one is being made outlives this process: those that never come up would be
        there for ever where parents come and go.
        """
        dated, wall_s = [], clock.wall_s()
        for one in slots:
            phase, since = self._since.get(one.name, (None, now))
            if phase is not one.phase:
                # Making one and booting it are one wait.
                goes_on = phase is SlotPhase.CREATING and one.phase is SlotPhase.BOOTING
                since = since if goes_on else now
                self._since[one.name] = one.phase, since
            if one.phase in _COMING and one.name in asked_s:
                since = min(since, now - int((wall_s - asked_s[one.name]) * _S))
            dated.append(replace(one, since_ns=since))
        return dated

    def _refusals_of(self, name: str, now: int) -> list[Refusal]:
        for key, one in list(self._refusals.items()):
            if held_until(one) <= now:
                del self._refusals[key]
        return [one for key, one in self._refusals.items() if key[0] == name]

    def _tell(self, said: PoolSaid, decision: PoolDecision) -> None:
        for action in decision.actions:
            _log.info("pool %s: %s", said.name, action)
        # Numbers change all the time; that some of a size wait is news once.
        known = self._unmet.get(said.name, ())
        if {one.size for one in decision.unmet} != {one.size for one in known}:
            self._unmet[said.name] = decision.unmet
            for unmet in decision.unmet:
                text = "pool %s: no instance for %d jobs of %s: %s"
                _log.info(text, said.name, unmet.count, unmet.size, unmet.why)

    async def _write(self, cluster: Cluster[None], writes: PoolWrites) -> None:
        """The words of users about nodes that go come first: these could not go before."""
        for owner, patches in writes.released.items():
            await cluster.write(patches, owner=owner)
        if writes:
            await cluster.write(writes.desired, declare=writes.declare, undeclare=writes.undeclare)


def _standing(state: DutyState, name: str, jobs: ParentQueue) -> NodeStanding:
    holder = jobs.queue.holders.get(name)
    return NodeStanding(
        state, jobs.queue.duties.get(name), holder is not None and bool(holder.held)
    )
