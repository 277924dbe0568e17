"""Replicas and leases with real processes: a lease goes to one of them, and to no later one."""

import asyncio
import os
import re
import shlex
import signal
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from haptera.app.lease import LEASE_TIME, SPENT, LeaseTime, now_ns, opened, read_lease, write_time
from haptera.keeping import keeper, procfs
from haptera.keeping.cgroups import bounded_in, cgroups_of, memory_cgroups_of
from haptera.keeping.home import ServiceRecord
from haptera.keeping.services import look_run, start, stop
from haptera.kinds.lease import LeaseState
from haptera.kinds.replica import ReplicaRole
from haptera.kinds.service import Run
from haptera.model.entity import EntityId
from haptera.modules.replica.module import (
    CGROUPS,
    GroupOnNode,
    connect,
    hold,
    look_role,
    look_state,
    release,
    take,
    take_back,
    watch_state,
)
from haptera.sdk import Refused, Target
from tests.lab.rig import wait_for

pytestmark = pytest.mark.net

WAIT_S = 60
S = 1_000_000_000
PYTHON = shlex.quote(sys.executable)
SLEEP = f"{PYTHON} -I -S -c 'import signal; signal.pause()'"
# Locks the lease as one that acts under it, says so, and never lets go.
ACTS = (
    f"{PYTHON} -I -S -c 'import fcntl, os, signal;"
    ' lease = os.open(os.environ["HAPTERA_LEASE"], os.O_RDWR | os.O_CREAT);'
    ' fcntl.flock(lease, fcntl.LOCK_SH); open("acts", "w").close(); signal.pause()\''
)
COUNTS = 'import os, signal; print(os.environ["HAPTERA_STARTS"], flush=True); signal.pause()'


def on_node(run_dir: Path, kind: str, name: str, **values: str | int) -> GroupOnNode:
    return connect(Target(EntityId(kind, name, "n1"), values=values, digest="d", run_dir=run_dir))


@pytest.fixture
def run_dir(tmp_path: Path) -> Iterator[Path]:
    """A node's, whose leases count; at the end its replica does not run."""
    (tmp_path / "leases").mkdir()
    write_time(tmp_path / LEASE_TIME, LeaseTime(now_ns() + 3600 * S, 0))
    yield tmp_path
    asyncio.run(stop(replica(tmp_path)))


def replica(run_dir: Path, command: str = SLEEP) -> GroupOnNode:
    return on_node(run_dir, "replica", "ledger.1", command=command, placement=1)


def lease(run_dir: Path, epoch: int) -> GroupOnNode:
    return on_node(run_dir, "lease", f"ledger.{epoch}", rank=1)


def started(run_dir: Path, command: str = SLEEP) -> ServiceRecord:
    one = replica(run_dir, command)
    asyncio.run(start(one))
    record = one.home.record()
    assert record is not None
    return record


def state(run_dir: Path, epoch: int) -> LeaseState:
    return asyncio.run(look_state(lease(run_dir, epoch)))


def role(run_dir: Path) -> ReplicaRole:
    return asyncio.run(look_role(replica(run_dir)))


def test_a_lease_is_taken_for_the_process_that_runs(run_dir: Path) -> None:
    started(run_dir)
    assert (state(run_dir, 1), role(run_dir)) == (LeaseState.OPEN, ReplicaRole.STANDBY)

    asyncio.run(take(lease(run_dir, 1)))

    assert (state(run_dir, 1), role(run_dir)) == (LeaseState.HELD, ReplicaRole.LEADER)


def test_without_a_process_there_is_nobody_to_take_it(run_dir: Path) -> None:
    with pytest.raises(Refused):
        asyncio.run(take(lease(run_dir, 1)))

    assert state(run_dir, 1) is LeaseState.OPEN


def test_the_process_that_follows_does_not_hold_it(run_dir: Path) -> None:
    first = started(run_dir)
    asyncio.run(take(lease(run_dir, 1)))
    os.kill(first.service.pid, signal.SIGKILL)
    asyncio.run(first.keeper.ends(WAIT_S))

    second = started(run_dir)

    assert second.service != first.service
    assert asyncio.run(look_run(replica(run_dir))) is Run.RUNNING
    assert (state(run_dir, 1), role(run_dir)) == (LeaseState.SPENT, ReplicaRole.STANDBY)
    asyncio.run(take(lease(run_dir, 1)))  # a call that came late
    assert state(run_dir, 1) is LeaseState.SPENT


def test_the_end_of_the_process_is_told_at_once(run_dir: Path) -> None:
    record = started(run_dir)
    asyncio.run(take(lease(run_dir, 1)))

    async def watched() -> list[LeaseState]:
        seen = []
        async with asyncio.timeout(WAIT_S):
            async for one in watch_state(lease(run_dir, 1)):
                seen.append(one)
                if one is LeaseState.SPENT:
                    return seen
                os.kill(record.service.pid, signal.SIGKILL)
        raise AssertionError

    assert asyncio.run(watched()) == [LeaseState.HELD, LeaseState.SPENT]


def test_another_process_of_the_same_number_does_not_hold_it(run_dir: Path) -> None:
    """As after a restart of all numbers: the file names this process, but from another time."""
    started(run_dir)
    asyncio.run(take(lease(run_dir, 1)))
    with opened(run_dir / "leases" / "ledger") as file:
        held = read_lease(file)
        assert held is not None
        words = f"{held}".replace(f" {held.started} ", f" {held.started + 1} ")
        os.pwrite(file, words.encode(), 0)

    assert state(run_dir, 1) is LeaseState.SPENT


def test_once_the_node_s_time_ran_out_it_is_spent_for_good(run_dir: Path) -> None:
    started(run_dir)
    asyncio.run(take(lease(run_dir, 1)))
    write_time(run_dir / LEASE_TIME, LeaseTime(now_ns() - 3600 * S, 0))
    assert state(run_dir, 1) is LeaseState.SPENT

    write_time(run_dir / LEASE_TIME, LeaseTime(now_ns() + 3600 * S, now_ns()))

    assert (state(run_dir, 1), role(run_dir)) == (LeaseState.SPENT, ReplicaRole.STANDBY)


def test_what_is_taken_back_is_spent_and_a_later_epoch_goes_on(run_dir: Path) -> None:
    record = started(run_dir)
    asyncio.run(take(lease(run_dir, 1)))
    asyncio.run(take_back(lease(run_dir, 1)))
    assert state(run_dir, 1) is LeaseState.SPENT

    asyncio.run(take(lease(run_dir, 2)))
    asyncio.run(take_back(lease(run_dir, 1)))

    assert (state(run_dir, 1), state(run_dir, 2)) == (LeaseState.SPENT, LeaseState.HELD)
    assert record.service.lives


def test_who_does_not_let_go_of_it_is_killed(run_dir: Path) -> None:
    record = started(run_dir, f"{ACTS}")
    wait_for(lambda: (replica(run_dir).home.path / "acts").exists() or None)
    with opened(run_dir / "leases" / "ledger") as file:
        held = f"1 {record.service.pid} {record.service.started} {now_ns()} held"
        os.pwrite(file, held.encode(), 0)

    asyncio.run(take_back(lease(run_dir, 1)))

    assert not record.service.lives
    with opened(run_dir / "leases" / "ledger") as file:
        ended = read_lease(file)
    assert (ended.epoch, ended.state) == (1, SPENT)


def test_its_place_is_known_by_its_name_once_nothing_is_desired_of_it(run_dir: Path) -> None:
    record = started(run_dir)

    asyncio.run(stop(on_node(run_dir, "replica", "ledger.1")))

    assert not record.service.lives


def test_each_start_is_counted(run_dir: Path) -> None:
    one = replica(run_dir, f"{PYTHON} -I -S -c {shlex.quote(COUNTS)}")
    for number in (1, 2):
        asyncio.run(start(one))
        wait_for(lambda said=str(number): one.home.last_words() == said or None)
        asyncio.run(stop(one))


# As the keeper sees it, or the kernel, where that bounds memory.
TOO_LARGE = r"it (held \d+ MB of memory, 20 at most|needed more than 20 MB of memory)"
TOO_MUCH = {
    "memory 20MB": (
        "held = bytearray(40 << 20); signal.pause()",
        rf"it was stopped: {TOO_LARGE}",
    ),
    "cpu 10%": (
        "exec('while True: pass')",
        r"it was stopped: it took \d+ % of a core, 10 at most",
    ),
    "sentinel the beat 1s": (
        "open('the beat', 'w').close(); signal.pause()",
        r"it was stopped: it stalled: the beat was not touched for [1-9]\.\d s",
    ),
    "memory 1GB, sentinel never 1s": (
        "signal.pause()",
        r"it was stopped: it stalled: never was not touched for [1-9]\.\d s",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    "limits",
    [
        pytest.param(one, marks=[pytest.mark.campaign] if one.startswith("cpu") else [])
        for one in TOO_MUCH
    ],
)
def test_what_takes_too_much_is_stopped_with_the_reason(run_dir: Path, limits: str) -> None:
    does, reason = TOO_MUCH[limits]
    command = f"{PYTHON} -I -S -c {shlex.quote(f'import signal; {does}')}"
    values = {"command": command, "placement": 1, "limits": limits}
    one = on_node(run_dir, "replica", "ledger.1", **values)

    asyncio.run(start(one))

    wait_for(lambda: asyncio.run(look_run(one)) is Run.FAILED or None)
    assert re.fullmatch(reason, one.home.how_it_ended())


# Leaves the session with a process that holds more than it may, and goes on.
DAEMON = (
    "import os, signal; os.fork() or (os.setsid(), print(os.getpid(), flush=True),"
    " bytearray(SIZE << 20), signal.pause()); signal.pause()"
)


@pytest.mark.slow
@pytest.mark.skipif(cgroups_of(CGROUPS) is None, reason="there are no cgroups v2 that we may make")
def test_in_a_cgroup_what_left_the_session_counts_and_ends_too(run_dir: Path) -> None:
    def daemon_of(size_mb: int) -> tuple[GroupOnNode, int, Path]:
        does = DAEMON.replace("SIZE", str(size_mb))
        command = f"{PYTHON} -I -S -c {shlex.quote(does)}"
        values = {"command": command, "placement": 1, "limits": "memory 20MB"}
        one = on_node(run_dir, "replica", "ledger.1", **values)
        asyncio.run(start(one))
        daemon = int(wait_for(one.home.last_words))
        place = keeper.read_state(str(one.home.path / keeper.LIMITS))["cgroup"][0]
        return one, daemon, Path(place)

    one, daemon, cgroup = daemon_of(1)
    assert cgroup.is_dir()
    asyncio.run(stop(one))
    wait_for(lambda: not cgroup.exists())
    assert procfs.start_time(daemon) is None

    one, daemon, cgroup = daemon_of(40)
    wait_for(lambda: asyncio.run(look_run(one)) is Run.FAILED or None)
    assert re.fullmatch(rf"it was stopped: {TOO_LARGE}(: \d+)?", one.home.how_it_ended())
    wait_for(lambda: not cgroup.exists())
    assert procfs.start_time(daemon) is None


def is_bounded_by_kernel() -> bool:
    of_v2 = cgroups_of(CGROUPS)
    bounded = of_v2 is not None and "memory" in bounded_in(of_v2)
    return bounded or memory_cgroups_of(CGROUPS) is not None


# A child that is given more at once than a look each second could see grow.
CHILD = "import os, signal; os.fork() or (bytearray(400 << 20), os._exit(0)); signal.pause()"


@pytest.mark.slow
@pytest.mark.skipif(
    not is_bounded_by_kernel(),
    reason="no memory controller of cgroups, of version 1 or 2, may be used here as this user",
)
def test_where_the_kernel_bounds_memory_a_child_that_needs_more_ends_the_whole_replica(
    run_dir: Path,
) -> None:
    command = f"{PYTHON} -I -S -c {shlex.quote(CHILD)}"
    values = {"command": command, "placement": 1, "limits": "memory 20MB"}
    one = on_node(run_dir, "replica", "ledger.1", **values)

    asyncio.run(start(one))

    wait_for(lambda: asyncio.run(look_run(one)) is Run.FAILED or None)
    assert one.home.how_it_ended() == "it was stopped: it needed more than 20 MB of memory"
    places = keeper.read_state(str(one.home.path / keeper.LIMITS))
    made = [places[name][0] for name in ("cgroup", "memory_cgroup") if name in places]
    wait_for(lambda: not any(map(os.path.exists, made)))


@pytest.mark.campaign
@pytest.mark.parametrize("place", ["a folder", "missing/too"])
def test_without_a_cgroup_of_its_own_its_session_is_watched(run_dir: Path, place: str) -> None:
    """Nothing can be moved to a plain folder, and in one that is missing none can be made."""
    does, reason = TOO_MUCH["memory 20MB"]
    command = f"{PYTHON} -I -S -c {shlex.quote(f'import signal; {does}')}"
    one = on_node(run_dir, "replica", "ledger.1", command=command, placement=1)
    one = replace(one, limits=(f"cgroup {run_dir / place}", f"memory {20 << 20}"))

    asyncio.run(start(one))

    wait_for(lambda: asyncio.run(look_run(one)) is Run.FAILED or None)
    assert re.fullmatch(reason, one.home.how_it_ended())


SPARSE = "import os, signal; f = open('beat', 'wb'); f.truncate(5 << 30); f.close(); " + (
    "exec('while True: signal.sigtimedwait([], 0.2); os.utime(\"beat\")')"
)


@pytest.mark.slow
def test_what_stays_within_its_limits_runs_on_and_without_limits_the_next_does(
    run_dir: Path,
) -> None:
    """Its sentinel has more than 4 GiB, and is touched 5 times a second."""
    command = f"{PYTHON} -I -S -c {shlex.quote(SPARSE)}"
    values = {"command": command, "placement": 1, "limits": "memory 1GB, sentinel beat 1s"}
    one = on_node(run_dir, "replica", "ledger.1", **values)
    asyncio.run(start(one))
    record = one.home.record()
    assert record is not None

    assert not asyncio.run(record.service.ends(3))

    asyncio.run(stop(one))
    unlimited = started(run_dir, f"{PYTHON} -I -S -c 'import signal; signal.pause()'")
    assert not asyncio.run(unlimited.service.ends(2))


def test_a_node_is_not_held_while_a_replica_runs_and_once_held_starts_none(run_dir: Path) -> None:
    there, node = replica(run_dir), on_node(run_dir, "node", "n1")
    started(run_dir)
    with pytest.raises(Refused, match=r"^ledger\.1 runs here$"):
        asyncio.run(hold(node))
    asyncio.run(stop(there))

    asyncio.run(hold(node))

    with pytest.raises(Refused, match="held"):
        asyncio.run(start(there))
    asyncio.run(release(node))
    assert started(run_dir).service.lives


def damage(run_dir: Path, content: bytes) -> None:
    (run_dir / "leases" / "ledger").write_bytes(content)


DAMAGES = [b"", b"\n", b"1 2 3", b"five words that are none", b"\xff" * 200, b"1 1 1 1 lost\n"]


@pytest.mark.parametrize("content", DAMAGES)
def test_whose_lease_file_is_damaged_leads_no_more_and_that_epoch_is_over(
    run_dir: Path, content: bytes
) -> None:
    started(run_dir)
    asyncio.run(take(lease(run_dir, 2)))

    damage(run_dir, content)

    assert role(run_dir) is ReplicaRole.STANDBY
    # Whichever of its leases is looked at first.
    assert [state(run_dir, epoch) for epoch in (1, 2, 3)] == [
        LeaseState.SPENT,
        LeaseState.SPENT,
        LeaseState.OPEN,
    ]
    asyncio.run(take(lease(run_dir, 2)))
    assert state(run_dir, 2) is LeaseState.SPENT
    asyncio.run(take(lease(run_dir, 3)))
    assert (state(run_dir, 3), role(run_dir)) == (LeaseState.HELD, ReplicaRole.LEADER)


def test_a_lease_file_that_is_removed_or_put_back_does_not_go_back(run_dir: Path) -> None:
    started(run_dir)
    file = run_dir / "leases" / "ledger"
    asyncio.run(take(lease(run_dir, 1)))
    assert state(run_dir, 1) is LeaseState.HELD
    earlier = file.read_bytes()
    asyncio.run(take_back(lease(run_dir, 1)))
    asyncio.run(take(lease(run_dir, 2)))
    assert state(run_dir, 2) is LeaseState.HELD

    file.write_bytes(earlier)
    assert (state(run_dir, 1), state(run_dir, 2)) == (LeaseState.SPENT, LeaseState.SPENT)
    file.unlink()
    assert (state(run_dir, 2), state(run_dir, 3)) == (LeaseState.SPENT, LeaseState.OPEN)


def test_who_acts_under_a_damaged_lease_is_killed_before_that_is_spent(run_dir: Path) -> None:
    record = started(run_dir, ACTS)
    wait_for(lambda: (replica(run_dir).home.path / "acts").exists() or None)
    damage(run_dir, b"")
    assert state(run_dir, 1) is LeaseState.HELD

    asyncio.run(take_back(lease(run_dir, 1)))

    assert not record.service.lives
    assert state(run_dir, 1) is LeaseState.SPENT
