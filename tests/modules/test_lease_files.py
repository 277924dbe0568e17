"""A replica that has turned may replace the files of leases by anything but a file."""

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from haptera.app.lease import LEASE_TIME, NEVER, LeaseTime, read_time, write_time
from haptera.keeping.services import stop
from haptera.kinds.lease import LeaseState
from haptera.modules.replica.module import take
from haptera.runtime.clock import now_ns
from haptera.runtime.enrolment.lease_clock import LeaseClock
from tests.modules.test_replica import lease, replica, role, started, state

S = 1_000_000_000


Put = Callable[[Path], object]


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A node's, whose leases count; at the end its replica does not run."""
    write_time(tmp_path / LEASE_TIME, LeaseTime(now_ns() + 3600 * S, 0))
    yield tmp_path
    asyncio.run(stop(replica(tmp_path)))


def a_link(path: Path) -> None:
    path.symlink_to(kept_beside(path))


def kept_beside(path: Path) -> Path:
    """A file that a replica cannot write, though who reads leases can."""
    kept = path.parent.parent / "key.pem"
    kept.write_text("a key\n")
    return kept


def a_full_folder(path: Path) -> None:
    path.mkdir()
    (path / "file").touch()


PUT: dict[str, Put] = {
    "a link": a_link,
    "a link to nothing": lambda path: path.symlink_to("nowhere"),
    "a FIFO": os.mkfifo,
    "a folder": a_full_folder,
    "a device": lambda path: path.symlink_to("/dev/zero"),
}


@pytest.mark.parametrize("put", PUT.values(), ids=PUT)
def test_whatever_is_put_in_place_of_a_lease_file_lets_nobody_lead_and_leads_nowhere(
    put: Put, run_dir: Path
) -> None:
    started(run_dir)
    asyncio.run(take(lease(run_dir, 2)))
    file = run_dir / "leases" / "ledger"

    file.unlink()
    put(file)

    assert role(run_dir).value == "standby"
    assert [state(run_dir, epoch) for epoch in (2, 3)] == [LeaseState.SPENT, LeaseState.OPEN]
    asyncio.run(take(lease(run_dir, 3)))
    assert (state(run_dir, 3), role(run_dir).value) == (LeaseState.HELD, "leader")
    kept = run_dir / "key.pem"
    assert not kept.exists() or kept.read_text() == "a key\n"
    assert not (run_dir / "leases" / "nowhere").exists()


@pytest.mark.parametrize("name", [LEASE_TIME, f"{LEASE_TIME}.new"])
@pytest.mark.parametrize("put", PUT.values(), ids=PUT)
def test_whatever_is_put_in_place_of_the_time_of_leases_an_agent_goes_on(
    put: Put, name: str, tmp_path: Path
) -> None:
    (tmp_path / name).parent.mkdir()
    put(tmp_path / name)
    assert read_time(tmp_path / LEASE_TIME) == NEVER
    sent_at = now_ns()

    LeaseClock(tmp_path, 3 * S).confirmed(sent_at)

    assert read_time(tmp_path / LEASE_TIME).until == sent_at + 3 * S
    kept = tmp_path / "key.pem"
    assert not kept.exists() or kept.read_text() == "a key\n"


def test_an_agent_that_cannot_write_the_time_lets_leases_end_and_goes_on(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "leases").touch()
    clock = LeaseClock(tmp_path, 3 * S)
    clock.confirmed(now_ns())

    assert read_time(tmp_path / LEASE_TIME) == NEVER
    assert "leases of this node will end" in caplog.text
