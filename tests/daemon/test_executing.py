"""Commands that a parent has run on a node: what they write, how they end, and with whom."""

import os
import signal
import socket
import threading
from collections.abc import AsyncGenerator
from contextlib import aclosing
from pathlib import Path

import pytest

from haptera.daemon.executing.keeper import (
    NOT_EXECUTABLE,
    NOT_FOUND,
    TIMED_OUT,
    KeptCommand,
    keep,
)
from haptera.model.entity import EntityId, node_id
from haptera.runtime.network.peer_messages import ExecAnswer, ExecAsked, ExecTold, Unable
from haptera.wire.ipc import Frames
from tests.daemon.channel_rig import WITHIN_S, Rig, rig
from tests.kills.processes import lives
from tests.lab.rig import until

pytestmark = pytest.mark.net

N01 = node_id("n01")
EVERY_BYTE = bytes(range(256)) * 1_000


async def run(one: Rig, *words: str, **more: object) -> tuple[bytes, bytes, ExecAnswer]:
    """What a command wrote to each, and how it ended."""
    asked = ExecAsked(N01, words, **{"within_s": 60, **more})  # type: ignore[arg-type]
    return await gathered(one.parent.execute("n01", asked))


async def gathered(answers: AsyncGenerator[ExecAnswer, None]) -> tuple[bytes, bytes, ExecAnswer]:
    told = [answer async for answer in answers]
    wrote = [answer for answer in told if isinstance(answer, ExecTold)]
    out, err = b"".join(one.stdout for one in wrote), b"".join(one.stderr for one in wrote)
    return out, err, told[-1]


async def test_a_command_s_output_and_its_status_come_back_apart_and_unchanged(
    tmp_path: Path,
) -> None:
    async with rig(tmp_path) as one:
        assert await run(one, "sh", "-c", "printf out; printf err >&2; exit 3") == (
            b"out",
            b"err",
            ExecTold(status=3),
        )
        assert await run(one, "cat", stdin=EVERY_BYTE) == (EVERY_BYTE, b"", ExecTold(status=0))
        assert await run(one, "cat") == (b"", b"", ExecTold(status=0))
        # No shell is in between, and nothing of the agent's own environment.
        words = ("printf", "%s|", "$HOME", "a\nb", "", "-x", "é")
        assert (await run(one, *words))[0] == "$HOME|a\nb||-x|é|".encode()
        names = (await run(one, "env"))[0].decode().splitlines()
        assert {name.partition("=")[0] for name in names} <= {
            *("PATH", "LANG", "HAPTERA_NODE", "USER", "HOME"),
        }
        # What lives on in the background holds nobody up.
        out, _, last = await run(one, "sh", "-c", "sleep 600 & echo $!")
        os.kill(int(out), signal.SIGKILL)
        assert last == ExecTold(status=0)


async def test_a_command_that_does_not_end_by_itself_says_why(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        nowhere = ExecTold(status=NOT_FOUND, why="there is no command 'no-such-command'")
        assert (await run(one, "no-such-command"))[2] == nowhere
        folder = ExecTold(status=NOT_EXECUTABLE, why="'/etc' cannot be run: Permission denied")
        assert (await run(one, "/etc"))[2] == folder
        null = ExecTold(status=NOT_EXECUTABLE, why="'echo' cannot be run: embedded null byte")
        assert (await run(one, "echo", "a\0b"))[2] == null
        killed = ExecTold(status=128 + 9, why="it was ended by SIGKILL")
        assert (await run(one, "sh", "-c", "kill -9 $$"))[2] == killed
        late = ExecTold(status=TIMED_OUT, why="it was ended: it ran for 1 s, its time limit")
        assert (await run(one, "sleep", "600", within_s=1))[2] == late

        web, gone = EntityId("system", "web", "n01"), Unable("system:web@n01 is not known there")
        assert (await gathered(one.parent.execute("n01", ExecAsked(web, ("true",), 60))))[2] == gone
        nobody = Unable("the agent of n02 has not enrolled yet")
        assert (await gathered(one.parent.execute("n02", ExecAsked(N01, ("true",), 60))))[2] == (
            nobody
        )


async def test_a_command_ends_with_whoever_waits_for_it_and_with_its_keeper(tmp_path: Path) -> None:
    async with rig(tmp_path) as one:
        script = "echo $$; sleep 600 & echo $!; echo $PPID; wait"
        asked = ExecAsked(N01, ("sh", "-c", script), 600)
        async with aclosing(one.parent.execute("n01", asked)) as answers:
            shell, sleep, _ = await numbers(answers, 3)
            assert lives(shell)
            assert lives(sleep)
        await until_gone(shell, sleep)

        async with aclosing(one.parent.execute("n01", asked)) as answers:
            shell, sleep, keeper = await numbers(answers, 3)
            os.kill(keeper, signal.SIGKILL)
            lost = "the agent of n01 closed the connection before the command ended"
            assert (await gathered(answers))[2] == Unable(lost)
        os.killpg(shell, signal.SIGKILL)
        await until_gone(shell, sleep)


def test_a_command_that_writes_more_than_its_limit_is_ended() -> None:
    ours, theirs = socket.socketpair()
    kept = KeptCommand(("yes",), {"PATH": os.environ["PATH"]}, 60, output_bytes_max=100_000)
    given = os.open(os.devnull, os.O_RDONLY)
    keeping = threading.Thread(target=keep, args=(kept, theirs, given))
    with ours:
        keeping.start()
        frames, told = Frames(), list[dict[str, object]]()
        while "status" not in (told[-1] if told else {}):
            whole = frames.feed(ours.recv(1 << 16))
            assert isinstance(whole, list)
            told += whole
        keeping.join(WITHIN_S)
    theirs.close()
    *wrote, last = told
    assert 0 < sum(len(one["stdout"]) for one in wrote) <= 100_000  # type: ignore[arg-type]
    why = "it was ended: it wrote more than 100000 bytes, its output limit"
    assert (last["status"], last["why"]) == (TIMED_OUT, why)


async def numbers(answers: AsyncGenerator[ExecAnswer, None], count: int) -> list[int]:
    """The first numbers that a command writes, a line each."""
    wrote = b""
    while wrote.count(b"\n") < count:
        told = await anext(answers)
        assert isinstance(told, ExecTold), told
        wrote += told.stdout
    return [int(line) for line in wrote.splitlines()]


async def until_gone(*processes: int) -> None:
    await until(lambda: not any(map(lives, processes)))
