"""What the parent's queue says changed, to whoever asks for it, over its own store."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haptera.api.routes.job_list import JobList
from haptera.core.state.table import EntityTable
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.queue.entry import Submission
from haptera.queue.job import Job, JobSpec, Size
from haptera.runtime import clock
from haptera.runtime.store.store import STATE_FILE, Store

pytestmark = pytest.mark.slow

WITHIN_S = 60
SPEC = JobSpec(("true",), Size(1, 1))


@contextmanager
def opened(folder: Path) -> Iterator[ParentQueue]:
    store = Store.open(folder / STATE_FILE, deliver=lambda _: None, wall_s=clock.wall_s)
    try:
        yield ParentQueue(store, EntityTable({}), lambda done: done())
    finally:
        store.close()


def numbers(jobs: list[Job]) -> list[int]:
    return [job.id for job in jobs]


def test_whoever_waits_is_told_what_changed_and_after_a_restart_of_everything(
    tmp_path: Path,
) -> None:
    async def changes(queue: ParentQueue) -> None:
        every = JobList(queue, lambda _: True, 10)
        async with asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(every.changed(0, WITHIN_S))
            await queue.submit(Submission(owner="eve", name="it", spec=SPEC, count=3))
        first = waiting.result()
        assert numbers(first.jobs) == [1, 2, 3]
        await queue.prioritize(3, 5)
        await queue.cancel([1], "a typo")
        then = await every.changed(first.last, WITHIN_S)
        assert numbers(then.jobs) == [3, 1]
        assert numbers((await every.changed(then.last, 0)).jobs) == []

    async def restarted(queue: ParentQueue) -> None:
        every = JobList(queue, lambda _: True, 10)
        assert numbers((await every.changed(0, 0)).jobs) == [1, 2, 3]

    for life in (changes, restarted):
        with opened(tmp_path) as queue:
            asyncio.run(life(queue))
