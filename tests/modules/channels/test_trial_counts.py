"""The counts of a trial on its node are of what was started for it, and of no trial before it."""

import asyncio
import shlex
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from haptera.keeping import services
from haptera.keeping.services import start, stop
from haptera.kinds.replica import TrialCounts
from haptera.model.entity import EntityId
from haptera.modules.replica.channels.carrier import Voice
from haptera.modules.replica.channels.nats_carrier import NatsCarrier, nats_carrier
from haptera.modules.replica.channels.outbox import NumberedOutput, OutputPosition, PublishOutput
from haptera.modules.replica.channels.serving import BEGUN, compared_text
from haptera.modules.replica.module import GroupOnNode, connect, watch_role
from haptera.sdk import Target
from tests.lab.rig import until
from tests.modules.channels.carrier_rig import CarrierCluster, node_at, served
from tests.modules.channels.nats_rig import need_server
from tests.network import NETWORK

pytestmark = [pytest.mark.net, pytest.mark.campaign]

HOST = f"{NETWORK}.43.5"
ADDRESS = f"{HOST}:4222"
# Says the same of all that it hears, and notes for us that it did.
PROGRAM = """
import sys
from haptera.app.channels import ChannelMessage, Channels

with Channels.of_environment() as channels, open("said", "a", buffering=1) as said:
    channels.start()
    for event in channels:
        if isinstance(event, ChannelMessage):
            channels.emit(sys.argv[1].encode())
            print(event.number, file=said)
"""


async def lead(carrier: NatsCarrier) -> None:
    """Say something to the group again and again, and what its leader says of that."""
    await carrier.prepare("ledger", ("feed",))
    number = 0
    while True:
        for voice in (Voice("feed"), Voice("ledger")):
            output = NumberedOutput(OutputPosition(0, 0, number + 1, 1), b"right")
            await carrier.publish(voice, PublishOutput(output, 1, number))
        number += 1
        await asyncio.sleep(0.02)


@asynccontextmanager
async def during(forever: Callable[[], object]) -> AsyncIterator[None]:
    task = asyncio.ensure_future(forever())
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def on_trial(run_dir: Path, program: Path, says: str) -> GroupOnNode:
    words = shlex.join([sys.executable, str(program), says])
    told = {"command": words, "placement": 1, "carriers": ADDRESS}
    told |= {"hears": "feed", "voice": "trial"}
    entity = EntityId("replica", "ledger.64", "n1")
    return connect(Target(entity, values=told, digest=says, run_dir=run_dir))


async def watched(one: GroupOnNode) -> None:
    async for _ in watch_role(one):
        pass


def counts(one: GroupOnNode) -> TrialCounts:
    return TrialCounts.of(compared_text(one)) or TrialCounts()


def test_a_second_trial_is_counted_from_the_process_that_was_started_for_it(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    need_server()
    short = tmp_path_factory.mktemp("a")  # the path of a socket is
    cluster, program = CarrierCluster(short), short / "program.py"
    program.write_text(PROGRAM)
    node = cluster.node("n1", node_at(f"{NETWORK}.43.6", 2))
    wrong, right = (on_trial(node.run_dir, program, says) for says in ("wrong", "right"))
    said, begun = wrong.home.path / "said", wrong.home.path / BEGUN

    async def counted() -> TrialCounts:
        async with (
            asyncio.timeout(120),
            nats_carrier([ADDRESS], node.tls) as carrier,
            during(lambda: lead(carrier)),
        ):
            async with during(lambda: watched(wrong)):
                await start(wrong)
                await until(lambda: counts(wrong).different > 0)
            before = begun.lstat().st_ino
            async with during(lambda: watched(right)):
                # What runs is served on, by another watch, until it is replaced.
                await until(lambda: begun.lstat().st_ino != before)
                spoken = said.stat().st_size
                await until(lambda: said.stat().st_size > spoken + 100)
                await services.replace(right)
                await until(lambda: counts(right).equal > 0)
                await stop(right)
                return counts(right)

    with served(cluster.node("serving", node_at(HOST)), ADDRESS, short / "streams"):
        assert asyncio.run(counted()).different == 0
