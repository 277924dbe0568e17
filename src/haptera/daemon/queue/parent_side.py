"""The queue of jobs on the parent's side: what it decides is written before anybody hears of it."""

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, Protocol

from haptera.kinds import node
from haptera.model.changes import Desired
from haptera.model.entity import EntityId
from haptera.model.errors import Code, HapteraError
from haptera.planner.domain.pieces import slices
from haptera.queue.asking import ask, has_news, preference, tell
from haptera.queue.capacity import capacity_of
from haptera.queue.choice import Room
from haptera.queue.demand import Wanted, demand
from haptera.queue.duty import OBSERVED, duty_of, own
from haptera.queue.entry import Holder, Moment, StoredQueue, Submission
from haptera.queue.job import ENDED, NOTHING, Job, Size
from haptera.queue.news import JobNews
from haptera.queue.queue import JobQueue
from haptera.queue.reason import why
from haptera.queue.work import HoldingPhase, WorkAsked, WorkTold
from haptera.runtime import clock
from haptera.runtime.store.sqlite_writer import Failure
from haptera.runtime.store.store import Store
from haptera.sdk.boundary import Boundary

# How often it is seen whether leases, or deadlines of drains, are over.
EXPIRE_EVERY_S: Final = 1.0
MS_PER_S: Final = 1_000
# The engine hears of so many nodes at once: a turn of it is short.
NOTICED_AT_ONCE: Final = 100

_log = logging.getLogger(__name__)


class KnownNodes(Protocol):
    """The nodes of a cluster, by their names, as far as a queue needs to know them."""

    def nodes(self) -> Iterable[str]: ...

    def attributes_of(self, node: str, /) -> Mapping[str, str]: ...

    def desired_of(self, node: str, /) -> Mapping[str, Desired]: ...

    def work_of(self, node: str, /) -> str | None: ...


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A holder that has asked and has no answer yet."""

    asked: WorkAsked
    told: asyncio.Future[WorkTold]

    def end(self) -> None:
        """It asked anew, and hears no more of this."""
        if not self.told.done():
            self.told.set_result(WorkTold())


class ParentQueue:
    """One queue, and who waits for it; all of it is used in the loop's own thread.

    A holder's asking is held back while there is nothing to tell it, and ends when it asks anew.
    `nodes` are what the cluster has; `settled` calls back once a standby that keeps up has what was
    written.
    """

    def __init__(
        self,
        store: Store,
        nodes: KnownNodes,
        settled: Callable[[Callable[[], None]], None],
    ) -> None:
        self._store = store
        self._settled = settled
        self._nodes = nodes
        self._queue = self._made(store.load_queue())
        self._broken = False
        self._waiting: dict[str, _Waiting] = {}
        self._changed = asyncio.Event()
        self._written: Future[Failure | None] | None = None
        self.turn = 0
        self.news = JobNews(self._queue.jobs)
        # Hears of each job that has run and ended, before that is durable.
        self.on_end: Callable[[Job], None] = lambda _: None
        # Hears whether nodes take jobs, where that is other than the cluster has heard.
        self.on_work: Callable[[Mapping[str, str | None]], None] = lambda _: None
        self._noticed: dict[str, str | None] = {}
        # True of an image that nodes can have, by its name or digest.
        self.has_image: Callable[[str], bool] = lambda _: False
        # Nothing is given out whose image was not seen yet.
        self._look_for_images()
        # Where each pool stands, in words, by its name.
        self.pools: dict[str, str] = {}

    @property
    def queue(self) -> JobQueue:
        """The queue.

        Raises:
            HapteraError: what it decided could not be written, and it is being read anew.
        """
        if self._broken:
            do = "check the disk, then try again"
            raise HapteraError("the queue cannot be written now", do=do, code=Code.STORAGE_FAILED)
        return self._queue

    async def run(self) -> None:
        """Take from who was silent beyond its lease what it holds, until cancelled.

        Jobs whose image has come are given out.
        """
        self._notice(self.queue.duties)
        while True:
            await asyncio.sleep(EXPIRE_EVERY_S)
            with Boundary("the queue of jobs"):
                self._notice(self.queue.expire(_now()))
                self._look_for_images()
                await self._write()

    # Holders

    async def ask_of_node(self, node: str, asked: WorkAsked) -> WorkTold:
        """A node's agent asks for work.

        Raises:
            HapteraError: the answer cannot be written.
        """
        return await self.ask(node, capacity_of(self._nodes.attributes_of(node)) or NOTHING, asked)

    async def ask(
        self, name: str, capacity: Size, asked: WorkAsked, backend: str | None = None
    ) -> WorkTold:
        """A holder asks for work: answered at once, or once there is news.

        Raises:
            HapteraError: the answer cannot be written.
        """
        if any(one.phase is HoldingPhase.RETURNED for one in asked.held):
            # Before it is given out again: its image may be gone.
            self._look_for_images(self.images_of(name))
        told = ask(self.queue, name, capacity, asked, _now(), backend)
        if backend is None:
            self._notice((name,))
        if told.lease_ms and (before := self._waiting.pop(name, None)) is not None:
            before.end()
        await self._write()
        if told.something or not asked.wait_ms:
            return told
        waiting = _Waiting(asked, asyncio.get_running_loop().create_future())
        self._waiting[name] = waiting
        try:
            async with asyncio.timeout(asked.wait_ms / MS_PER_S):
                told = await waiting.told
        except TimeoutError:
            return told
        finally:
            if self._waiting.get(name) is waiting:
                del self._waiting[name]
        await self._write()
        return told

    # People and programs

    async def submit(self, one: Submission) -> list[Job]:
        """Queue jobs; they are durable once this returns.

        Raises:
            HapteraError: there is no room for so many, or they cannot be written.
        """
        made = self.queue.submit(one, _now())
        if one.spec.image is not None:
            self._look_for_images()
        await self._write()
        return made

    async def cancel(self, keys: Iterable[int], reason: str) -> list[Job]:
        """As `JobQueue.cancel`, of these as they are now: nothing changes before that."""
        now = _now()
        ended = [self.queue.cancel(key, reason, now) for key in keys]
        await self._write()
        return ended

    async def prioritize(self, key: int, priority: int) -> Job:
        """As `JobQueue.prioritize`."""
        job = self.queue.prioritize(key, priority)
        await self._write()
        return job

    def heed(self, entities: Iterable[EntityId]) -> None:
        """Follow the desired work of these nodes, which may have changed."""
        if self._broken:
            return
        names = [one.name for one in entities if one.kind == node.kind.name]
        changed = sum(self._heed(self._queue, name) for name in names)
        for name in names:
            self._noticed.pop(name, None)
        self._notice(names)
        if changed:
            self._tell()
            self._turn_over()

    async def lose(self, name: str, reason: str) -> None:
        """As `JobQueue.lose`."""
        self.queue.lose(name, _now(), reason)
        self._notice((name,))
        await self._write()

    def why(self, job: Job) -> str:
        """Why a job is not done."""
        return why(self.queue, job, clock.wall_s(), self._declared())

    def demand(self) -> list[Wanted]:
        """What waits for a place that there is not, on the cluster's own nodes."""
        return demand(self.queue.lanes, self.queue.rooms(None))

    def holders(self) -> list[Holder]:
        """Who asks for work, or has some, by name."""
        return sorted(self.queue.holders.values(), key=lambda one: one.name)

    def rooms(self) -> list[Room]:
        """What there is of all nodes that take jobs."""
        return self.queue.rooms(None)

    def held_by(self, name: str) -> Mapping[int, int]:
        """The jobs that a holder has, by token."""
        holder = self.queue.holders.get(name)
        return {} if holder is None else holder.held

    def images_of(self, name: str) -> set[str]:
        """The images of the jobs that a holder has."""
        images = (self.queue.jobs[key].spec.image for key in self.held_by(name).values())
        return {one for one in images if one is not None}

    async def change(self, seen: int) -> int:
        """Wait until something is another than at this turn; the turn that it is now."""
        while self.turn == seen:
            await self._changed.wait()
        return self.turn

    def _declared(self) -> Iterator[tuple[str, Size]]:
        """What the cluster's nodes have for jobs, of those that take any."""
        for name in self._nodes.nodes():
            if (capacity := capacity_of(self._nodes.attributes_of(name))) is not None:
                yield name, capacity

    def _made(self, stored: StoredQueue) -> JobQueue:
        queue = JobQueue(stored, _now())
        for name in self._nodes.nodes():
            self._heed(queue, name)
        return queue

    def _heed(self, queue: JobQueue, name: str) -> bool:
        """Whether what is desired of a node's work is other than before."""
        duty, before = duty_of(self._nodes.desired_of(name)), queue.duties.get(name)
        if duty == before or (duty is None and before is not None and before.who == own(name)):
            return False
        queue.set_duty(name, duty)
        return True

    def _notice(self, names: Iterable[str]) -> None:
        """Have the cluster know whether these nodes take jobs; each news of it is told once."""
        stand = {name: OBSERVED.get(self._queue.duty(name)) for name in names}
        news = {
            name: value
            for name, value in stand.items()
            if value != self._nodes.work_of(name) and self._noticed.get(name, "") != value
        }
        self._noticed |= news
        for some in slices([*news], NOTICED_AT_ONCE):
            self.on_work({name: news[name] for name in some})

    async def _write(self) -> None:
        """Answer the waiting, and have all that changed written, no matter by whom.

        Raises:
            HapteraError: it cannot be; the queue is as it was written last.
        """
        self._tell()
        changes = self.queue.changes()
        if changes:
            self._written = self._store.save_queue(changes)
            for key, job in changes.jobs.items():
                if job is None:
                    self.news.forgotten(key)
                    continue
                self.news.changed(key)
                if job.state in ENDED and job.began_s is not None:
                    self.on_end(job)
            self._turn_over()
        if (written := self._written) is None:
            return
        failure = await asyncio.wrap_future(written)
        if failure is not None:
            await self._reload(written)
            do = "check the disk, then try again"
            raise HapteraError(failure.text, do=do, code=Code.STORAGE_FAILED)
        followed = asyncio.Event()
        self._settled(followed.set)
        await followed.wait()

    def _tell(self) -> None:
        """Give to who waits, those with the least room first: a small job goes to a small node."""
        now, queue = _now(), self.queue
        held = [queue.holders[name] for name in self._waiting if name in queue.holders]
        for holder in sorted(held, key=lambda one: preference(queue, one, now)):
            waiting = self._waiting[holder.name]
            if waiting.told.done() or not has_news(queue, holder, now):
                continue
            told = tell(queue, holder, waiting.asked, now)
            if told.something:
                waiting.told.set_result(told)

    def _look_for_images(self, also: Iterable[str] = ()) -> None:
        """See on the disk, so not often, which of those that jobs wait for are not there."""
        lanes = self.queue.lanes
        asked = {*lanes.images(), *also}
        lanes.lacking = {one for one in asked if not self.has_image(one)}

    async def _reload(self, written: Future[Failure | None]) -> None:
        """Be as it was written last; nobody is answered meanwhile."""
        if self._written is not written:
            return
        self._broken, self._written = True, None
        self._queue = self._made(await asyncio.to_thread(self._store.load_queue))
        self._broken = False
        self._look_for_images()
        for key in self._queue.jobs:
            self.news.changed(key)
        self._turn_over()

    def _turn_over(self) -> None:
        self.turn += 1
        self._changed.set()
        self._changed = asyncio.Event()


def _now() -> Moment:
    return Moment(clock.now_ns(), clock.wall_s())
