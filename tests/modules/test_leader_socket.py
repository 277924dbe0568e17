"""Programs of other languages learn over a socket whether they lead: as Perl, and as a shell."""

import asyncio
import json
import os
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from haptera.app.lease import LEASE_TIME, LeaseTime, now_ns, opened, write_time
from haptera.keeping.services import start, stop
from haptera.model.entity import EntityId
from haptera.modules.replica.leader_socket import LINE_BYTES_MAX, SOCKET, LeaderCaller
from haptera.modules.replica.module import GroupOnNode, connect, take, take_back, watch_role
from haptera.sdk import Target
from tests.lab.rig import until

pytestmark = pytest.mark.net

HERE = Path(__file__).parent
WITHIN_S = 60
S = 1_000_000_000
CLIENTS = {
    "perl": f"perl {HERE / 'leader.pl'}",
    "socat": f"socat UNIX-CONNECT:{SOCKET} EXEC:'sh {HERE / 'leader.sh'}'",
}


def on_node(run_dir: Path, kind: str, name: str, **values: str | int) -> GroupOnNode:
    return connect(Target(EntityId(kind, name, "n1"), values=values, digest="d", run_dir=run_dir))


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    (tmp_path / "leases").mkdir()
    write_time(tmp_path / LEASE_TIME, LeaseTime(now_ns() + 3600 * S, 0))
    return tmp_path


def lease(run_dir: Path, epoch: int) -> GroupOnNode:
    return on_node(run_dir, "lease", f"ledger.{epoch}", rank=1)


@asynccontextmanager
async def running(run_dir: Path, command: str) -> AsyncIterator[GroupOnNode]:
    """A replica that is watched, as by an agent."""
    one = on_node(run_dir, "replica", "ledger.1", command=command, placement=1)

    async def watched() -> None:
        async for _ in watch_role(one):
            pass

    watch = asyncio.create_task(watched())
    await until(lambda: (one.home.path / SOCKET).exists())
    await start(one)
    try:
        yield one
    finally:
        await stop(one)
        watch.cancel()


def said(one: GroupOnNode) -> list[str]:
    """What the client wrote down: each frame that it was sent."""
    path = one.home.path / "said"
    return path.read_text().splitlines() if path.exists() else []


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_in_another_language_acts_while_it_leads_and_stands_by_after(
    run_dir: Path, client: str
) -> None:
    if shutil.which(client) is None:
        pytest.skip(f"there is no {client}")

    async def history() -> list[str]:
        async with running(run_dir, CLIENTS[client]) as one:
            await until(lambda: len(said(one)) == 1)
            await take(lease(run_dir, 7))
            await until(lambda: len(said(one)) == 4)
            await take_back(lease(run_dir, 7))
            await until(lambda: len(said(one)) == 5)
            await take(lease(run_dir, 8))
            await until(lambda: len(said(one)) == 8)
            return said(one)

    told = [json.loads(line) for line in asyncio.run(history())]

    assert told == [
        {"op": "stands_by"},
        {"op": "leads", "epoch": 7},
        {"op": "acting", "id": 1, "epoch": 7},
        {"op": "ended", "id": 1},
        {"op": "stands_by"},
        {"op": "leads", "epoch": 8},
        {"op": "acting", "id": 2, "epoch": 8},
        {"op": "ended", "id": 2},
    ]


SLEEPS = "sleep 600"


def test_a_process_that_is_not_the_replica_s_is_told_nothing(run_dir: Path) -> None:
    async def answered() -> bytes:
        async with running(run_dir, SLEEPS) as one:
            await take(lease(run_dir, 1))
            return await asyncio.to_thread(called, one)

    def called(one: GroupOnNode) -> bytes:
        with closing(_connected(one)) as caller:
            return caller.makefile("rb").read()

    assert json.loads(asyncio.run(answered())) == {
        "op": "refused",
        "why": "this is not a process of the replica",
    }


def _connected(one: GroupOnNode) -> socket.socket:
    caller = socket.socket(socket.AF_UNIX)
    caller.settimeout(WITHIN_S)
    place = os.open(one.home.path, os.O_RDONLY)
    try:
        caller.connect(f"/proc/self/fd/{place}/{SOCKET}")
    finally:
        os.close(place)
    return caller


# Says what it is given, then writes down all that it is answered, until it is hung up on.
SPEAKS = """python3 -I -S -c '
import socket, sys, signal
door = socket.socket(socket.AF_UNIX); door.connect("leader.sock")
door.sendall(bytes.fromhex("{}"))
heard = door.makefile("rb").read()
open("heard", "wb").write(heard); open("over", "w").close(); signal.pause()'
"""


@pytest.mark.parametrize(
    "words",
    [
        b"hello\n",
        b'{"op": "act"}\n',
        b'{"op": "kill", "id": 1}\n',
        b'{"op": "act", "id": 1, "more": 2}\n',
        b"[]\n",
        b"\xff\n",
        b"x" * (3 * LINE_BYTES_MAX),
    ],
)
def test_who_speaks_otherwise_is_hung_up_on_and_locks_nothing(run_dir: Path, words: bytes) -> None:
    async def heard() -> bytes:
        async with running(run_dir, SPEAKS.format(words.hex())) as one:
            await until(lambda: (one.home.path / "over").exists())
            await take(lease(run_dir, 1))
            await take_back(lease(run_dir, 1))
            return (one.home.path / "heard").read_bytes()

    assert asyncio.run(heard()) in (b"", b'{"op":"stands_by"}\n')


# Waits until it leads, says that it acts, and never that it is done.
NEVER_DONE = """python3 -I -S -c '
import socket, signal
door = socket.socket(socket.AF_UNIX); door.connect("leader.sock")
lines = door.makefile("rb")
while b"leads" not in lines.readline(): pass
door.sendall(bytes.fromhex("{}"))
open("answer", "wb").write(lines.readline()); signal.pause()'
"""


def test_who_acts_when_the_lease_is_taken_back_and_never_ends_is_killed(run_dir: Path) -> None:
    async def lives_after() -> bool:
        words = b'{"op":"act","id":4}\n'.hex()
        async with running(run_dir, NEVER_DONE.format(words)) as one:
            await take(lease(run_dir, 1))
            answer = one.home.path / "answer"
            await until(lambda: answer.exists() and answer.read_bytes())
            assert json.loads(answer.read_bytes()) == {"op": "acting", "id": 4, "epoch": 1}
            await take_back(lease(run_dir, 1))
            return one.home.lives

    assert asyncio.run(lives_after()) is False


def test_who_acts_as_the_socket_is_closed_is_hung_up_on_once_that_is_done(run_dir: Path) -> None:
    one = on_node(run_dir, "replica", "ledger.1", command=SLEEPS, placement=1)

    async def heard() -> bytes:
        ours, its = socket.socketpair()
        closed = asyncio.Event()
        closed.set()
        with closing(its), opened(one.lease_file) as descriptor:
            its.sendall(b'{"op":"done","id":1}\n')
            reader, writer = await asyncio.open_connection(sock=ours)
            times = run_dir / LEASE_TIME
            caller = LeaderCaller(
                descriptor, os.getpid(), times, closed, reader, writer, acting=True
            )
            await caller.attend()
            writer.close()
            return await asyncio.to_thread(its.makefile("rb").read)

    assert asyncio.run(heard()) == b'{"op":"stands_by"}\n{"op":"ended","id":1}\n'
