"""Backends and their jobs, each for itself: what is wrong with one stops no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from haptera.daemon.queue.backends import Backends
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from haptera.queue.entry import Submission
from haptera.queue.job import Job, JobSpec, JobState, Size
from tests.api.real_backend import comes, real_backend
from tests.daemon.fake_slurm import a_slurm
from tests.queue.processes import ME

pytestmark = [pytest.mark.net, pytest.mark.slow]

SMALL = Size(1, 64)
# Nothing that the tests' own Slurm needs.
HIDDEN = ("/var/lib/haptera",)


def backend(name: str, **desired: str) -> list[Declare | SetDesired]:
    entity = EntityId("backend", name, None)
    # Its commands, here a script below the test's folder, are run by who runs the test.
    values = {"engine": "slurm", "user": ME, **desired}
    changes = [SetDesired(entity, key, value, "site") for key, value in values.items()]
    return [Declare(entity, {}, "site"), *changes]


@asynccontextmanager
async def kept(folder: Path, *changes: Declare | SetDesired) -> AsyncIterator[ParentQueue]:
    """Backends that run."""
    async with real_backend(folder, *changes) as parent:
        running = asyncio.create_task(Backends(parent, parent.jobs, "c0ffee", HIDDEN).run())
        try:
            yield parent.jobs
            assert not running.done()
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running


def submission(backend: str, *words: str) -> Submission:
    return Submission(owner="user:eve", name="j", spec=JobSpec(words, SMALL, backend=backend))


async def ended(jobs: ParentQueue, key: int) -> Job:
    await comes(lambda: jobs.queue.jobs[key].ended_s is not None, lambda: jobs.queue.jobs[key])
    return jobs.queue.jobs[key]


async def test_a_job_that_no_backend_can_begin_is_over_and_the_others_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slurm(tmp_path, monkeypatch)

    async with kept(tmp_path, *backend("one"), *backend("two")) as jobs:
        bad, *good = [
            (await jobs.submit(one))[0].id
            for one in (
                submission("one", "a\0b"),
                submission("one", "true"),
                submission("two", "true"),
            )
        ]
        assert [(await ended(jobs, key)).state for key in good] == [JobState.COMPLETE] * 2
        over = await ended(jobs, bad)
        assert over.state is JobState.CANCELLED
        assert "null byte" in (over.reason or "")


async def test_a_status_that_is_none_keeps_nobody_from_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    a_slurm(tmp_path, monkeypatch, code=0x7F)

    async with kept(tmp_path, *backend("one")) as jobs:
        (one,) = await jobs.submit(submission("one", "true"))
        await comes(lambda: jobs.queue.jobs[one.id].token is not None, lambda: one)
        (bad,) = await jobs.submit(submission("one", "a\0b"))
        assert (await ended(jobs, bad.id)).state is JobState.CANCELLED
