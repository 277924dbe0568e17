"""The parent's side of jobs in images: what it gives out depends on what its store has."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from haptera.core.state.table import EntityTable
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.queue.entry import Submission
from haptera.queue.job import JobSpec, JobState, Size
from haptera.queue.work import WAIT_MS_MAX, Holding, HoldingPhase, WorkAsked, WorkTold
from haptera.runtime.store.store import Store

ONE = Submission(
    owner="user:eve", name="it", spec=JobSpec(("true",), Size(1, 1), image="a"), count=1
)


class Desk:
    """A parent's queue, a node that asks it, and the images that there are."""

    def __init__(self, store: Store) -> None:
        self.store, self.images = store, {"a"}
        self.looks = self.asked = 0
        self.jobs = ParentQueue(store, EntityTable({}), lambda done: done())
        self.jobs.has_image = self._has

    def _has(self, reference: str) -> bool:
        self.looks += 1
        return reference in self.images

    async def ask(self, *held: Holding, wait_ms: int = 0) -> WorkTold:
        self.asked += 1
        asked = WorkAsked("b", self.asked, held, wait_ms=wait_ms, images=())
        return await self.jobs.ask("n1", Size(4, 4), asked)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    store = Store.open(tmp_path / "state.db", deliver=lambda _: None, wall_s=lambda: 1_000.0)
    yield Desk(store)
    store.close()


async def test_a_job_whose_image_was_removed_is_given_out_once_and_then_waits(desk: Desk) -> None:
    [job] = await desk.jobs.submit(ONE)
    [given] = (await desk.ask()).work
    assert desk.jobs.images_of("n1") == {"a"}
    assert desk.jobs.images_of("n2") == set()
    desk.images.clear()

    told = await desk.ask(Holding(job.id, given.token, HoldingPhase.RETURNED, None, "not here"))

    assert (told.work, told.noted) == ((), (given.token,))
    now = desk.jobs.queue.job(job.id)
    assert (now.state, now.locks) == (JobState.QUEUED, 1)
    why = "there is no image 'a' here yet: see haptera why image:a (before: not here)"
    assert desk.jobs.why(now) == why


async def test_a_job_is_given_out_soon_after_its_image_has_come(desk: Desk) -> None:
    desk.images.clear()
    await desk.jobs.submit(ONE)
    assert (await desk.ask()).work == ()
    desk.images.add("a")
    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(desk.jobs.run())
        told = await desk.ask(wait_ms=WAIT_MS_MAX)
        looking.cancel()
    assert [one.spec.image for one in told.work] == ["a"]


async def test_a_parent_that_restarts_gives_out_nothing_before_it_has_seen_the_image(
    desk: Desk,
) -> None:
    await desk.jobs.submit(ONE)
    restarted = Desk(desk.store)
    assert (await restarted.ask()).work == ()
    async with asyncio.TaskGroup() as tasks:
        looking = tasks.create_task(restarted.jobs.run())
        told = await restarted.ask(wait_ms=WAIT_MS_MAX)
        looking.cancel()
    assert [one.spec.image for one in told.work] == ["a"]


async def test_who_only_asks_has_nobody_look_at_the_disk(desk: Desk) -> None:
    desk.images.clear()
    await desk.jobs.submit(ONE)
    looks = desk.looks
    for _ in range(100):
        await desk.ask()
    assert desk.looks == looks
