"""A replica with channels on its node: ready once it has begun, and told where its socket is."""

import asyncio
import sys
from pathlib import Path

import pytest

from haptera.keeping.services import environment, look_run, start, stop
from haptera.kinds.service import Run
from haptera.model.entity import EntityId
from haptera.modules.replica.channels.serving import (
    BEGUN,
    COMPARED,
    channels_socket,
    compared_text,
)
from haptera.modules.replica.module import GroupOnNode, connect, look_role, watch_role
from haptera.sdk import Target
from tests.lab.rig import until
from tests.modules.channels.carrier_rig import CarrierCluster, node_at
from tests.network import NETWORK

pytestmark = [
    pytest.mark.net,
    # The client leaves a connection open to a server that it does not reach.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


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
    assert without.unbegun is None


def test_until_it_has_begun_a_replica_says_why_its_carrier_cannot_be_reached(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    short = tmp_path_factory.mktemp("a")  # the path of a socket is
    program = "import os, socket; s = socket.socket(socket.AF_UNIX)"
    program += "; s.connect(os.environ['HAPTERA_CHANNELS']); s.recv(1); s.recv(1)"
    node = CarrierCluster(short).node("n1", node_at("127.0.0.1"))
    carrier = f"{NETWORK}.43.9:4222"
    one = on_node(node.run_dir, carriers=carrier, command=f'{sys.executable} -c "{program}"')

    async def said() -> str:
        async with channels_socket(one, one.lease_file):
            starting = asyncio.create_task(start(one))
            await until(lambda: carrier in (one.unbegun or ""))
            why = one.unbegun or ""
            starting.cancel()
        await stop(one)
        return why

    why = "it has not begun on its channels: no carrier at "
    assert asyncio.run(said()).startswith(f"{why}{carrier}: ")


def on_trial(run_dir: Path, **values: str | int) -> GroupOnNode:
    return on_node(run_dir, carriers=f"{NETWORK}.43.9:4222", voice="trial", **values)


def test_how_a_trial_compares_is_told_with_its_role(tmp_path: Path) -> None:
    one = on_trial(tmp_path)

    async def told() -> str:
        watching = watch_role(one)
        await anext(watching)
        text = await until(lambda: compared_text(one))
        await look_role(one)
        await watching.aclose()
        return text

    text = asyncio.run(told())
    assert text == "trial: 0 outputs are equal to the leader's"
    assert one.target.take_note() == text


@pytest.mark.parametrize(("digest", "goes_on"), [("d", True), ("another-digest", False)])
def test_the_counts_of_a_trial_outlive_the_module_and_not_what_is_desired(
    tmp_path: Path, digest: str, goes_on: bool
) -> None:
    counts = "trial: 3 of 120 outputs differ, the first at 41.1"
    one = on_trial(tmp_path)
    one.home.make()
    noted = one.home.path / COMPARED
    noted.symlink_to(f"{digest} {counts}")
    before = noted.lstat().st_ino

    async def told() -> str:
        async with channels_socket(one, one.lease_file):
            await until(lambda: noted.lstat().st_ino != before)
            return compared_text(one) or ""

    fresh = "trial: 0 outputs are equal to the leader's"
    assert asyncio.run(told()) == (counts if goes_on else fresh)
