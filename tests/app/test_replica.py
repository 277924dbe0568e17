"""Whether a program leads: by the lease's holder, its state, and the time of its node."""

import os
from pathlib import Path

import pytest

from haptera.app import GroupReplica, Lease, NotLeaderError
from haptera.app.lease import (
    ENDING,
    HELD,
    SPENT,
    LeaseTime,
    now_ns,
    opened,
    read_lease,
    start_time,
    write_lease,
    write_time,
)

S = 1_000_000_000


@pytest.fixture
def replica(tmp_path: Path) -> GroupReplica:
    return GroupReplica.of_environment(
        {
            "HAPTERA_GROUP": "ledger",
            "HAPTERA_RANK": "1",
            "HAPTERA_NODE": "n1",
            "HAPTERA_PLACEMENT": "2",
            "HAPTERA_STARTS": "3",
            "HAPTERA_LEASE": str(tmp_path / "ledger"),
            "HAPTERA_LEASE_TIME": str(tmp_path / "lease_time"),
        }
    )


@pytest.fixture(autouse=True, scope="module")
def session() -> None:
    """Whose leader lives: what runs these tests may have left theirs without one."""
    if start_time(os.getsid(0)) is None:
        os.setsid()


def granted(
    replica: GroupReplica,
    *,
    pid: int | None = None,
    state: str = HELD,
    until_s: float = 60,
    since_s: float = -60,
) -> None:
    """A lease of epoch 5, granted now to this very session, and the time of its node from now."""
    holder, now = os.getsid(0) if pid is None else pid, now_ns()
    with opened(replica.lease_file) as descriptor:
        lease = Lease(5, holder, _start_of(holder), now, state)
        write_lease(descriptor, lease)
        assert read_lease(descriptor) == lease
    time = LeaseTime(now + int(until_s * S), now + int(since_s * S))
    write_time(replica.time_file, time)


def _start_of(pid: int) -> int:
    started = start_time(pid)
    assert started is not None
    return started


def test_it_leads_while_its_session_holds_the_lease(replica: GroupReplica) -> None:
    granted(replica)

    with replica.leading() as epoch:
        assert epoch == 5


@pytest.mark.parametrize(
    "terms",
    [
        {"pid": 1},  # another process holds it
        {"state": ENDING},
        {"state": SPENT},
        {"until_s": -1},  # the node's time ran out
        {"until_s": 0.1},  # it is about to
        {"since_s": 1},  # it had run out since the lease was granted
    ],
)
def test_it_does_not_lead(replica: GroupReplica, terms: dict[str, float]) -> None:
    granted(replica, **terms)  # type: ignore[arg-type]

    assert replica.epoch() is None
    with pytest.raises(NotLeaderError), replica.leading():
        pytest.fail("it acted")


def test_without_a_lease_or_a_time_it_does_not_lead(replica: GroupReplica) -> None:
    assert replica.epoch() is None
    granted(replica)
    replica.time_file.unlink()
    assert replica.epoch() is None
