"""A job on its node, with its real keeper: it begins once, and ends with its lease or its time."""

import asyncio
import os
from pathlib import Path

import pytest

from haptera.daemon.queue.bounds import NodeBounds
from haptera.daemon.queue.job_home import JobHome, JobNote, home_of, output_of
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import Assignment
from haptera.runtime.clock import now_ns
from tests.queue.processes import ME

pytestmark = pytest.mark.net

S = 1_000_000_000
LONG_NS = 600 * S
# Longer than a job takes to begin, on a busy machine too.
LEASE_S = 4
NEVER_ENDS = "echo begun; while :; do sleep 1; done"


def home(place: Path, script: str, *, time_limit_s: int | None = None) -> JobHome:
    spec = JobSpec(("sh", "-c", script), Size(1, 0), time_limit_s, user=ME)
    made = home_of(place, Assignment(7, 70, "it", spec))
    made.write(JobNote(Assignment(7, 70, "it", spec)))
    return made


async def begin(one: JobHome, lease_ns: int) -> str | None:
    gate = os.open(os.devnull, os.O_RDONLY)
    try:
        note = one.note()
        assert note is not None
        bounds = NodeBounds.of_this_node().of(note.work.spec, one.path)
        return await one.start(bounds, {"PATH": os.environ["PATH"]}, gate, lease_ns)
    finally:
        os.close(gate)


def ended(one: JobHome, lease_ns: int) -> tuple[int | None, str | None]:
    async def run() -> tuple[int | None, str | None]:
        assert await begin(one, lease_ns) is None
        return await one.ends()

    return asyncio.run(run())


def test_what_it_wrote_and_how_it_ended_is_known(tmp_path: Path) -> None:
    one = home(tmp_path, "echo hello; exit 3")
    assert ended(one, now_ns() + LONG_NS) == (3, "it ended with status 3: hello")
    assert output_of(tmp_path, "7").read_text() == "hello\n"


def test_a_job_does_not_outlive_its_lease(tmp_path: Path) -> None:
    one = home(tmp_path, NEVER_ENDS)
    assert ended(one, now_ns() + S // 2) == (None, "its lease could not be renewed in time")


def test_a_job_does_not_outlive_its_time_limit_however_long_its_lease(tmp_path: Path) -> None:
    one = home(tmp_path, NEVER_ENDS, time_limit_s=1)
    assert ended(one, now_ns() + LONG_NS) == (-9, "its time limit of 1 s is over")


def test_a_job_begins_once_under_its_token_even_when_it_has_ended(tmp_path: Path) -> None:
    one = home(tmp_path, f"echo begun >>{tmp_path}/effects")
    for _ in range(2):
        assert ended(one, now_ns() + LONG_NS) == (0, None)
    assert (tmp_path / "effects").read_text() == "begun\n"


def test_a_renewed_lease_keeps_it_alive_and_a_stop_ends_it(tmp_path: Path) -> None:
    one = home(tmp_path, f"trap 'exit 5' TERM; {NEVER_ENDS}")

    async def run() -> tuple[int | None, str | None]:
        await begin(one, now_ns() + LEASE_S * S)
        one.renew(now_ns() + LONG_NS)
        record = one.record
        assert record is not None
        assert not await record.service.ends(LEASE_S + 0.5)
        await one.stop(grace_s=10)
        return await one.ends()

    status, _ = asyncio.run(run())
    assert status == 5


def test_a_command_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    spec = JobSpec(("no-such-command",), Size(1, 0), user=ME)
    one = home_of(tmp_path, Assignment(8, 80, "it", spec))
    one.write(JobNote(Assignment(8, 80, "it", spec)))
    assert asyncio.run(begin(one, now_ns() + LONG_NS)) == (
        "no-such-command: No such file or directory"
    )
