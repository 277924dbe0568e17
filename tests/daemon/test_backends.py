"""Backends and their jobs, each for itself: what is wrong with one stops no other."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from haptera.daemon.queue.backends import Backends
from haptera.daemon.queue.parent_side import ParentQueue
from haptera.kinds.backend import engine_named
from haptera.kinds.brought import BACKENDS_GROUP
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from haptera.model.errors import HapteraError
from haptera.queue.entry import Submission
from haptera.queue.job import Job, JobSpec, JobState, Size
from haptera.sdk.backends import BackendTerms
from tests.api.real_backend import comes, real_backend
from tests.daemon.fake_slurm import a_slurm
from tests.packages import install
from tests.queue.processes import ME
from tests.testing.shell_engine import ShellBackend, ShellEngine

pytestmark = [pytest.mark.net, pytest.mark.slow]

SMALL, HUGE = Size(1, 64), Size(65, 64)
NO_PARTITION = "no partition of backend:one has nodes with 65 CPUs, 64 MB"
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


# The engine of a package, which outlives each client of it.
ENGINE = ShellEngine()


def made(terms: BackendTerms) -> ShellBackend:
    assert terms.conf == "/etc/shell.conf"
    return ShellBackend(ENGINE)


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


async def test_a_package_brings_an_engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(HapteraError, match="there is no engine 'shell'"):
        engine_named("shell")
    install(tmp_path, monkeypatch, "shells", BACKENDS_GROUP, shell=f"{__name__}:made")

    declared = backend("one", engine="shell", conf="/etc/shell.conf")
    async with kept(tmp_path, *declared) as jobs:
        well, bad, large = [
            (await jobs.submit(one))[0].id
            for one in (
                submission("one", "true"),
                submission("one", "sh", "-c", "exit 3"),
                Submission(owner="e", name="j", spec=JobSpec(("true",), HUGE, backend="one")),
            )
        ]
        assert (await ended(jobs, well)).state is JobState.COMPLETE
        assert (await ended(jobs, bad)).status == 3
        assert (await ended(jobs, large)).reason == NO_PARTITION


async def test_two_packages_of_one_engine_are_refused_by_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        install(tmp_path, monkeypatch, name, BACKENDS_GROUP, shell=f"{__name__}:made")
    with pytest.raises(HapteraError, match="2 packages bring 'shell'"):
        engine_named("shell")
