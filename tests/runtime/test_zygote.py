import asyncio
import contextlib
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from haptera.runtime.processes.forking import Child, LoopZygote, ZygoteClient, exec_zygote

pytestmark = pytest.mark.net

WAIT_S = 60
HERE = "tests.runtime.forked"


@pytest.fixture
def zygote() -> Iterator[ZygoteClient]:
    client = exec_zygote([HERE])
    yield client
    client.close()


def test_a_forked_process_runs_its_target_with_its_arguments(zygote: ZygoteClient) -> None:
    assert said_by(zygote, "say", {"text": "hello"}) == "hello"


def test_how_a_process_ended_is_told_to_who_asked_for_it(zygote: ZygoteClient) -> None:
    by_itself = zygote.fork(f"{HERE}:end_with", {"status": 7})
    killed = zygote.fork(f"{HERE}:wait", {})
    os.kill(killed.pid, signal.SIGKILL)
    await_end(by_itself, killed)

    assert ends(zygote, 2) == {by_itself.pid: 7, killed.pid: -signal.SIGKILL}


def test_a_process_starts_with_nothing_but_what_it_was_given(zygote: ZygoteClient) -> None:
    assert said_by(zygote, "describe", {}) == "[] [] []"


def test_what_a_process_prints_and_its_traceback_go_to_its_output(
    zygote: ZygoteClient, tmp_path: Path
) -> None:
    with (tmp_path / "output").open("wb") as output:
        child = zygote.fork(f"{HERE}:print_and_fail", {}, output=output.fileno())
    await_end(child)

    lines = (tmp_path / "output").read_text().splitlines()
    assert {"said on the way", "ValueError: the last word"} <= set(lines)
    assert ends(zygote, 1) == {child.pid: 1}


def test_a_target_that_is_nowhere_ends_its_process_only(
    zygote: ZygoteClient, tmp_path: Path
) -> None:
    with (tmp_path / "output").open("wb") as output:
        child = zygote.fork("no.such:thing", {}, output=output.fileno())
    await_end(child)

    assert "ModuleNotFoundError" in (tmp_path / "output").read_text()
    assert said_by(zygote, "say", {"text": "still here"}) == "still here"


def test_processes_end_with_their_zygote_unless_they_are_to_survive() -> None:
    zygote = exec_zygote([HERE])
    children = [
        zygote.fork(f"{HERE}:wait", {}),
        zygote.fork(f"{HERE}:wait", {}, survives=True),
    ]
    zygote.close()
    try:
        assert readable([children[0].pidfd], WAIT_S)
        assert not readable([children[1].pidfd], 0)
    finally:
        for child in children:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(child.pidfd, signal.SIGKILL)
        await_end(*children)


def test_a_zygote_ends_with_its_starter(tmp_path: Path) -> None:
    starter = (
        "import signal\n"
        "from haptera.runtime.processes.forking import exec_zygote\n"
        "zygote = exec_zygote([])\n"
        f"child = zygote.fork('{HERE}:wait', {{}})\n"
        "print(zygote._pid, child.pid, flush=True)\n"
        "signal.pause()\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter], stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        pids = [int(word) for word in process.stdout.readline().split()]
        pidfds = [os.pidfd_open(pid) for pid in pids]
        process.kill()
        for pidfd in pidfds:
            assert readable([pidfd], WAIT_S)
            os.close(pidfd)


def test_a_zygote_can_be_a_copy_of_its_starter() -> None:
    program = (
        "from haptera.runtime.processes.forking import fork_zygote\n"
        "zygote = fork_zygote([])\n"
        f"child = zygote.fork('{HERE}:end_with', {{'status': 3}})\n"
        "import select\n"
        "select.select([zygote], (), (), 10)\n"
        "print([one.status for one in zygote.ended()])\n"
        "zygote.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert (done.stdout, done.stderr) == ("[3]\n", "")


def test_what_is_no_request_ends_the_zygote_of_its_sender() -> None:
    zygote = exec_zygote([])
    os.write(zygote.fileno(), b"rubbish")

    assert readable([zygote.fileno()], WAIT_S)
    with pytest.raises(ConnectionError):
        zygote.ended()
    zygote.close()


def test_a_killed_zygote_takes_its_processes_along_and_is_started_anew() -> None:
    async def scenario() -> list[Any]:
        clients: list[ZygoteClient] = []

        def start() -> ZygoteClient:
            clients.append(exec_zygote([HERE]))
            return clients[-1]

        zygote = LoopZygote(start)
        status: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        first = await zygote.fork(f"{HERE}:wait", {}, ended=status.set_result)
        assert clients[0]._pid is not None
        os.kill(clients[0]._pid, signal.SIGKILL)
        lost = await status
        again: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        second = await zygote.fork(f"{HERE}:end_with", {"status": 4}, ended=again.set_result)
        seen = [lost, await again, len(clients)]
        for child in (first, second):
            await_end(child)
        zygote.close()
        return seen

    seen = asyncio.run(asyncio.wait_for(scenario(), WAIT_S))

    assert seen == [-signal.SIGKILL, 4, 2]


async def test_where_no_zygote_can_be_had_the_fork_fails_with_the_reason() -> None:
    def start() -> ZygoteClient:
        raise OSError("no more processes")

    with pytest.raises(OSError, match="no more processes"):
        await LoopZygote(start).fork(f"{HERE}:wait", {}, ended=print)


def said_by(zygote: ZygoteClient, target: str, arguments: dict[str, Any]) -> str:
    """What a process writes to the pipe that it is given first."""
    reading, writing = os.pipe()
    child = zygote.fork(f"{HERE}:{target}", arguments, (writing,))
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        said = pipe.read().decode()
    await_end(child)
    return said


def await_end(*children: Child) -> None:
    for child in children:
        assert readable([child.pidfd], WAIT_S)
        os.close(child.pidfd)


def ends(zygote: ZygoteClient, count: int) -> dict[int, int]:
    """How so many processes ended, by their pids."""
    seen: dict[int, int] = {}
    while len(seen) < count:
        seen |= {ended.pid: ended.status for ended in zygote.ended()}
        if len(seen) < count:
            assert readable([zygote.fileno()], WAIT_S)
    return seen


def readable(descriptors: list[int], within_s: float) -> bool:
    return bool(select.select(descriptors, (), (), within_s)[0])
