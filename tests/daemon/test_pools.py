"""Pools are kept each for itself: what is wrong with one stops no other."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from haptera.daemon.parent.backend import EngineBackend
from haptera.daemon.queue.pools import Pools
from haptera.model.changes import Declare, SetDesired
from haptera.model.entity import EntityId
from tests.api.real_backend import comes, real_backend

pytestmark = pytest.mark.slow

OWNER = "haptera-test"


def a_pool(name: str, **desired: str | int) -> list[Declare | SetDesired]:
    entity = EntityId("pool", name, None)
    return [
        Declare(entity, {}, "site"),
        *(SetDesired(entity, key, value, "site") for key, value in desired.items()),
    ]


WHOLE = {"provider": "local", "sizes": "small: 1 cpus, 512 MB, price 1", "min": 1, "max": 2}


@asynccontextmanager
async def pools_kept(folder: Path, *changes: Declare | SetDesired):
    async with real_backend(folder, *changes) as backend:
        keeping = asyncio.create_task(Pools(backend, backend.jobs, OWNER).run())
        try:
            yield backend, backend.jobs
        finally:
            keeping.cancel()
            await asyncio.wait([keeping])


def exists(backend: EngineBackend, name: str) -> str | int | None:
    """What is desired of an instance: all of the places of a pool that is kept are declared."""
    held = backend.declared(EntityId("instance", name, None))
    desired = None if held is None else held.desired.get("exist")
    return None if desired is None else desired.value


async def test_a_pool_that_lacks_settings_stops_no_other_and_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    lacking = {name: value for name, value in WHOLE.items() if name != "sizes"}
    changes = [*a_pool("a", **lacking), *a_pool("b", **WHOLE)]
    async with pools_kept(tmp_path, *changes) as (backend, jobs):
        await comes(lambda: exists(backend, "b-1") == "absent", lambda: jobs.pools)
        said = "is not kept: pool:a: its sizes is not given (desire its sizes)"
        assert jobs.pools["a"] == said
        assert exists(backend, "a-1") is None


async def test_a_pool_whose_instances_are_anothers_stops_no_other(tmp_path: Path) -> None:
    taken = EntityId("instance", "a-1", None)
    theirs = [Declare(taken, {}, "user:eve"), SetDesired(taken, "exist", "absent", "user:eve")]
    changes = [*a_pool("a", **WHOLE), *a_pool("b", **WHOLE), *theirs]
    async with pools_kept(tmp_path, *changes) as (backend, jobs):
        await comes(lambda: exists(backend, "b-1") == "absent", lambda: jobs.pools)
        await comes(lambda: "user:eve" in jobs.pools.get("a", ""), lambda: jobs.pools)
