"""A job that cannot be begun, or that its agent dies of: it has failed, and all others go on."""

import asyncio
import os
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import pytest

from haptera.daemon.queue.agent_side import NOT_EXECUTED, AgentQueue
from haptera.daemon.queue.job_home import DEATHS_MAX, STARTED, JobNote, home_of
from haptera.keeping.gate import JobsGate
from haptera.model.text import is_line
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import (
    REASON_CHARS_MAX,
    Assignment,
    Holding,
    HoldingPhase,
    WorkAsked,
    WorkTold,
)
from haptera.runtime.network.peer_messages import Request

pytestmark = pytest.mark.net

WITHIN_S = 60.0
SIZE = Size(1, 0)
NUL = Assignment(1, 7, "it", JobSpec(("a\0b",), SIZE))
NAMED_NUL = Assignment(2, 8, "a\0b", JobSpec(("true",), SIZE))
HALF = Assignment(3, 9, "it", JobSpec(("true",), SIZE, user="no\0body"))
LONG = Assignment(4, 10, "it", JobSpec(("true", "a" * (1 << 18)), SIZE))
# What is said of it is as long as it is.
LENGTHY = Assignment(6, 12, "it", JobSpec(("\x1b" * 5_000,), SIZE))
GOOD = Assignment(5, 11, "it", JobSpec(("sh", "-c", "exit 3"), SIZE))
ENDED = Holding(5, 11, HoldingPhase.ENDED, 3, "it ended with status 3")


class Desk:
    """A parent that gives work at once, and notes each end."""

    def __init__(self, run_dir: Path, given: Iterable[Assignment]) -> None:
        self.run_dir = run_dir
        self.given = tuple(given)
        self.ends: dict[int, Holding] = {}

    async def ask(self, _peer: str, asked: Request, _within_s: float) -> WorkTold:
        assert isinstance(asked, WorkAsked)
        over = [one for one in asked.held if one.phase is HoldingPhase.ENDED]
        self.ends.update({one.job: one for one in over})
        held = {one.token for one in asked.held}
        work = tuple(
            one for one in self.given if one.token not in held and one.job not in self.ends
        )
        noted = tuple(sorted(held))
        return WorkTold(work=work, noted=noted, lease_ms=60_000)

    async def serve(self, jobs: int) -> dict[int, Holding]:
        """Be a node until so many have ended and are forgotten: how each has ended."""
        node = AgentQueue(self.ask, lambda: True, self.run_dir, "n1")
        running = asyncio.ensure_future(node.run())
        try:
            async with asyncio.timeout(WITHIN_S):
                while len(self.ends) < jobs and not running.done():  # noqa: ASYNC110  processes
                    await asyncio.sleep(0.01)
        finally:
            running.cancel()
            with suppress(asyncio.CancelledError):
                await running
        return self.ends


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    JobsGate(tmp_path).release()
    return tmp_path


def test_a_job_that_cannot_be_begun_has_failed_and_the_others_run(run_dir: Path) -> None:
    bad = (NUL, NAMED_NUL, HALF, LONG, LENGTHY)

    ends = asyncio.run(Desk(run_dir, (*bad, GOOD)).serve(6))

    assert ends.pop(5) == ENDED
    assert {job: one.status for job, one in ends.items()} == dict.fromkeys(ends, NOT_EXECUTED)
    reasons = [one.reason or "" for one in ends.values()]
    assert all(0 < len(one) <= REASON_CHARS_MAX and is_line(one) for one in reasons)
    assert "null byte" in (ends[1].reason or "")


def test_one_that_an_earlier_process_took_in_has_failed_too(run_dir: Path) -> None:
    for one in (NUL, GOOD):
        home_of(run_dir, one).write(JobNote(one))

    ends = asyncio.run(Desk(run_dir, ()).serve(2))

    assert ends[5] == ENDED
    assert ends[1].status == NOT_EXECUTED


def test_a_job_that_its_agent_dies_of_is_set_aside(run_dir: Path) -> None:
    home = home_of(run_dir, NUL)
    home.write(JobNote(NUL))
    for _ in range(DEATHS_MAX):
        assert home.deadly() is None
        if (child := os.fork()) == 0:
            with home.counted(STARTED):
                os._exit(9)
        os.waitpid(child, 0)

    ends = asyncio.run(Desk(run_dir, (GOOD,)).serve(2))

    reason = f"the agent ended {DEATHS_MAX} times while it began this job"
    assert ends == {1: Holding(1, 7, HoldingPhase.ENDED, NOT_EXECUTED, reason), 5: ENDED}


def test_what_an_agent_comes_through_does_not_count(run_dir: Path) -> None:
    home = home_of(run_dir, GOOD)
    home.write(JobNote(GOOD))
    for _ in range(DEATHS_MAX):
        with suppress(ValueError), home.counted(STARTED):
            raise ValueError

    assert home.deadly() is None
