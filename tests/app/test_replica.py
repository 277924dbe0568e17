"""Whether a program leads: by the lease's holder, its state, and the time of its node."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from haptera.app import GroupReplica, Lease, NotLeaderError
from haptera.app.lease import (
    ENDING,
    HELD,
    SPENT,
    LeaseTime,
    epoch_of,
    now_ns,
    opened,
    parse_lease,
    read_lease,
    start_time,
    write_lease,
    write_time,
)

S = 1_000_000_000


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    return {
        "HAPTERA_GROUP": "ledger",
        "HAPTERA_RANK": "1",
        "HAPTERA_NODE": "n1",
        "HAPTERA_PLACEMENT": "2",
        "HAPTERA_STARTS": "3",
        "HAPTERA_LEASE": str(tmp_path / "ledger"),
        "HAPTERA_LEASE_TIME": str(tmp_path / "lease_time"),
    }


@pytest.fixture
def replica(environment: dict[str, str]) -> GroupReplica:
    return GroupReplica.of_environment(environment)


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


LAST_PID = Path("/proc/sys/kernel/ns_last_pid")
# In numbers of its own: one replica after the other is asked whether it leads, the second with the
# number of the first, which the lease was granted to and which is dead.
IN_TURN = """
import os, subprocess, sys
from pathlib import Path
from haptera.app.lease import *

lease, times = (Path(os.environ[name]) for name in ("HAPTERA_LEASE", "HAPTERA_LEASE_TIME"))
ask = "import sys; from haptera.app import GroupReplica; sys.stdin.read(1);" \
    " print(GroupReplica.of_environment().epoch())"
write_time(times, LeaseTime(now_ns() + 60_000_000_000, 0))
with opened(lease) as file:
    for _ in range(2):
        asked = subprocess.Popen(
            [sys.executable, "-c", ask],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
        )
        if read_lease(file) == NOBODY:
            write_lease(file, Lease(5, asked.pid, start_time(asked.pid), now_ns(), HELD))
            first = asked.pid
        print(asked.pid == first, asked.communicate("x")[0].strip())
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(first - 1))
"""


@pytest.mark.net
@pytest.mark.skipif(os.geteuid() != 0, reason="numbers of processes of one's own need root")
@pytest.mark.skipif(not LAST_PID.exists(), reason="the kernel does not let the next number be set")
def test_a_later_process_of_the_holder_s_number_does_not_lead(environment: dict[str, str]) -> None:
    own = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"]
    told = subprocess.run(
        [*own, sys.executable, "-c", IN_TURN],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        timeout=60,
    )
    assert told.stdout.splitlines() == ["True 5", "True None"]


WORDS = st.sampled_from(
    [b"5", b"-5", b"1_0", b"\xd9\xa3", b"held", b"HELD", b"spent", b"", b"9" * 50]
)
LINES = st.binary(max_size=200) | st.lists(WORDS, max_size=7).map(b" ".join)


@given(LINES | LINES.map(lambda line: line.ljust(127) + b"\n"))
def test_whatever_a_line_holds_it_is_the_lease_that_is_written_so_or_none(line: bytes) -> None:
    lease = parse_lease(line)

    if lease is not None:
        words = [bytes(one) for one in line.split()]
        assert [word.lstrip(b"0") for word in words] == [
            word.lstrip(b"0") for word in str(lease).encode().split()
        ]
        assert lease.state in (HELD, ENDING, SPENT)


@pytest.mark.parametrize("kept", range(0, 120, 7))
def test_with_a_lease_file_that_is_cut_short_it_does_not_lead(
    replica: GroupReplica, kept: int
) -> None:
    granted(replica)
    os.truncate(replica.lease_file, kept)
    assert replica.epoch() is None


def test_who_has_seen_a_later_epoch_leads_under_no_earlier_one(replica: GroupReplica) -> None:
    granted(replica)
    line = replica.lease_file.read_bytes()
    assert replica.epoch() == 5

    replica.lease_file.write_bytes(line.replace(b"5", b"4", 1))
    assert replica.epoch() is None
    replica.lease_file.write_bytes(line.replace(b"5", b"6", 1))
    assert replica.epoch() == 6
    replica.lease_file.write_bytes(line)
    assert replica.epoch() is None


def test_a_lease_file_that_was_replaced_counts_no_more_for_who_has_it_open(
    replica: GroupReplica,
) -> None:
    granted(replica)
    with opened(replica.lease_file) as before:
        replica.lease_file.unlink()
        granted(replica)
        assert epoch_of(before, os.getsid(0), replica.time_file) is None
    assert replica.epoch() == 5


@pytest.mark.parametrize("content", [b"", b"x y", b"\xff", b"1", b"1 2 3", b"9" * 9_999])
def test_a_time_that_is_none_has_run_out(replica: GroupReplica, content: bytes) -> None:
    granted(replica)
    replica.time_file.write_bytes(content)
    assert replica.epoch() is None
