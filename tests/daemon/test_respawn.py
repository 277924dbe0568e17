"""What starts the agent again: a copy of one process, whenever the last one has ended."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from haptera.daemon.respawn import QUIET_H, QUIET_S_MAX, SHORT_MAX, Lives
from tests.kills.processes import read_process, wait_for

pytestmark = pytest.mark.net

# Each agent says its process id, and hangs.
HANGING = """
import os, signal
from haptera.daemon.respawn import respawn
respawn()
print(os.getpid(), flush=True)
signal.pause()
"""
FAILING = """
from haptera.daemon.respawn import respawn
respawn()
raise RuntimeError("no memory")
"""
# Each agent leaves a process behind, as services are, that ends with the test.
LEAVING = """
import os, signal
from haptera.daemon.respawn import respawn
from haptera.lab.tree import adopt_orphans
adopt_orphans()
respawn()
left = os.fork()
if left == 0:
    os.read(0, 1)
    os._exit(0)
print(left, flush=True)
signal.pause()
"""


@contextmanager
def running(program: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", program]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def told(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline().rpartition(": ")[2].strip()


def test_an_agent_that_is_killed_is_followed_by_another() -> None:
    with running(HANGING) as process:
        first = int(told(process))
        os.kill(first, signal.SIGKILL)

        assert told(process) == "the agent ended with -9"
        assert int(told(process)) != first


def test_an_agent_that_fails_says_why_and_is_followed_by_another() -> None:
    with running(FAILING) as process:
        assert process.stdout is not None
        failures = (line for line in process.stdout if line == "RuntimeError: no memory\n")
        for _ in range(2):
            next(failures)
            assert told(process) == "the agent ended with 1"


def test_an_agent_ends_with_what_started_it() -> None:
    with running(HANGING) as process:
        assert told(process) != ""
        process.kill()
        # It has the other end of this pipe, too.
        assert told(process) == ""


def test_what_an_agent_leaves_behind_is_reaped_once_it_ends() -> None:
    with running(LEAVING) as process:
        left = int(told(process))
        found = read_process(left)
        assert found is not None
        os.kill(found.parent, signal.SIGKILL)
        assert told(process) == "the agent ended with -9"
        assert process.stdin is not None
        process.stdin.close()
        wait_for("it is reaped", lambda: is_gone(left), within_s=60)


def is_gone(pid: int) -> bool:
    """Whether not even a zombie is left of it."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_after_short_lives_in_a_row_the_next_is_quiet_and_longer_each_time(tmp_path: Path) -> None:
    lives = [Lives(tmp_path).be_quiet(1.0) for _ in range(SHORT_MAX + 3)]

    assert lives == [*[0.0] * SHORT_MAX, QUIET_H, 2 * QUIET_H, 4 * QUIET_H]
    assert Lives(tmp_path).be_quiet(1_000.0) == QUIET_S_MAX


def test_one_that_lives_for_longer_ends_the_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("haptera.daemon.respawn.SHORT_S", 0.0)
    for _ in range(SHORT_MAX):
        last = Lives(tmp_path)
    asyncio.run(last.run())

    assert Lives(tmp_path).short == 0
