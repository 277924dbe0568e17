"""A replica with channels on its node: ready once it has begun, and told where its socket is."""

import asyncio
from pathlib import Path

import pytest

from haptera.kinds.service import Run
from haptera.model.entity import EntityId
from haptera.modules.replica.channels.serving import BEGUN
from haptera.modules.replica.module import GroupOnNode, connect
from haptera.modules.service.module import environment, look_run, start, stop
from haptera.sdk import Target
from tests.lab.rig import until

pytestmark = pytest.mark.net


def on_node(run_dir: Path, **values: str | int) -> GroupOnNode:
    told = {"command": "sleep 600", "placement": 1, **values}
    entity = EntityId("replica", "ledger.1", "n1")
    return connect(Target(entity, values=told, digest="d", run_dir=run_dir))


def test_a_replica_is_ready_once_its_process_has_begun_on_its_channels(tmp_path: Path) -> None:
    async def seen() -> list[Run]:
        one = on_node(tmp_path, carriers="n6:4222")
        # What an earlier process of the rank had counts for that alone.
        one.home.make()
        begun = one.home.path / BEGUN
        begun.symlink_to("1 1")
        starting = asyncio.create_task(start(one))
        record = await until(one.home.record)
        before = await look_run(one)
        begun.unlink()
        begun.symlink_to(str(record.service))
        await starting
        after = await look_run(one)
        await stop(one)
        return [before, after]

    assert asyncio.run(seen()) == [Run.UNREADY, Run.RUNNING]


def test_only_a_replica_with_a_carrier_has_channels(tmp_path: Path) -> None:
    with_one, without = on_node(tmp_path, carriers="n6:4222"), on_node(tmp_path)

    path = str(with_one.home.path / "channels.sock")
    assert environment(with_one)["HAPTERA_CHANNELS"] == path
    assert "HAPTERA_CHANNELS" not in environment(without)
    assert without.has_begun
