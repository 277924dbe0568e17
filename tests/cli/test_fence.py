"""`haptera fence` as it is typed: what runs, what does not, and what is killed."""

import contextlib
import dataclasses
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from haptera.app.lease import (
    ENDING,
    HELD,
    Lease,
    LeaseTime,
    now_ns,
    opened,
    read_lease,
    start_time,
    write_lease,
    write_time,
)
from tests.lab.rig import wait_for

pytestmark = pytest.mark.net

WITHIN_S = 60
# Says under which epoch it acts, and as which process, and goes on for ever.
ACTS = ("sh", "-c", "echo $HAPTERA_EPOCH $$ > new; mv new acts; exec sleep 1000")
# What makes a process group or a session of its own, or lets its parent end.
TWICE = """
import os, signal, sys
if os.fork():
    signal.pause()
os.setsid()
if os.fork():
    os._exit(0)
os.execvp(sys.argv[1], sys.argv[1:])
"""
WAYS_OUT = [
    pytest.param((), id="none"),
    pytest.param(("timeout", "2000"), id="timeout"),
    pytest.param(("setsid",), id="setsid"),
    pytest.param(("bash", "-c", 'set -m; "$@" & wait', "-"), id="job control"),
    pytest.param(
        ("setsid", "bash", "-c", 'set -m; "$@" & disown; exec sleep 1000', "-"), id="disown"
    ),
    pytest.param((sys.executable, "-c", TWICE), id="forked twice"),
]
HAPTERA = Path(sys.executable).with_name("haptera")


def checked(
    folder: Path, epoch: int, *words: str, file: str = "orders.epoch"
) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [HAPTERA, "fence", "check", file, *words],
        cwd=folder,
        env={**os.environ, "HAPTERA_EPOCH": str(epoch)},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )


def test_a_command_of_an_older_epoch_is_not_run(tmp_path: Path) -> None:
    later = checked(tmp_path, 4, "sh", "-c", "echo $HAPTERA_EPOCH; exit 7")
    older = checked(tmp_path, 3, "touch", "acted")

    assert (later.returncode, later.stdout) == (7, "4\n")
    assert older.returncode == 1
    assert "epoch 3 is over: 4 has acted here" in older.stderr
    assert not (tmp_path / "acted").exists()


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("orders.json", "it holds something else than an epoch\n  orders.json"),
        ("away/orders.epoch", "away/orders.epoch cannot be used: No such file or directory"),
    ],
)
def test_a_file_that_keeps_no_epoch_is_refused_in_words(
    tmp_path: Path, name: str, what: str
) -> None:
    (tmp_path / "orders.json").write_text("[]")
    told = checked(tmp_path, 4, "touch", "acted", file=name)

    assert told.returncode == 1
    assert told.stderr.startswith(f"error: {what}\n")
    assert (tmp_path / "orders.json").read_text() == "[]"
    assert not (tmp_path / "acted").exists()


def test_outside_of_a_group_nothing_is_run(tmp_path: Path) -> None:
    told = subprocess.run(
        [HAPTERA, "fence", "run", "touch", str(tmp_path / "acted")],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=WITHIN_S,
        check=False,
    )

    assert told.returncode == 1
    assert "HAPTERA_GROUP is not set" in told.stderr
    assert not (tmp_path / "acted").exists()


@pytest.mark.parametrize("way", WAYS_OUT)
def test_it_runs_while_it_leads_and_is_killed_with_all_it_started(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    with leading(tmp_path, *way, *ACTS) as (fenced, pid):
        assert (tmp_path / "acts").read_text() == f"5 {pid}\n"

        with opened(tmp_path / "ledger") as file:
            ending = read_lease(file)
            assert ending is not None
            write_lease(file, dataclasses.replace(ending, state=ENDING))

        assert fenced.wait(WITHIN_S) == -9
        # Not soon after: at once, for the next epoch may begin.
        assert start_time(pid) is None


@pytest.mark.parametrize("way", WAYS_OUT)
def test_what_kills_it_kills_all_it_started(tmp_path: Path, way: tuple[str, ...]) -> None:
    with leading(tmp_path, *way, *ACTS) as (fenced, pid):
        fenced.kill()

        assert wait_for(lambda: start_time(pid) is None)


def test_what_kills_its_keeper_kills_all_it_started(tmp_path: Path) -> None:
    with leading(tmp_path, "setsid", *ACTS) as (fenced, pid):
        found = Path(f"/proc/{fenced.pid}/task/{fenced.pid}/children").read_text().split()
        for kept_by in found:
            os.kill(int(kept_by), signal.SIGKILL)

        assert fenced.wait(WITHIN_S) == 128 + 9
        assert start_time(pid) is None
        left = [Path("/sys/fs/cgroup").glob(f"**/haptera-fence-{one}") for one in found]
        assert [place for some in left for place in some] == []


def test_a_command_that_is_asked_to_end_may_do_so_in_its_own_way(tmp_path: Path) -> None:
    ends = "trap 'echo ended > ended; exit 3' TERM; echo $HAPTERA_EPOCH $$ > new; mv new acts"
    script = f"{ends}; while :; do sleep 0.01; done"
    with leading(tmp_path, "sh", "-c", script) as (fenced, _):
        fenced.terminate()

        assert fenced.wait(WITHIN_S) == 3
        assert (tmp_path / "ended").exists()


@pytest.mark.parametrize("way", WAYS_OUT)
def test_the_file_is_locked_until_all_that_was_started_has_ended(
    tmp_path: Path, way: tuple[str, ...]
) -> None:
    """What the command leaves behind when it ends by itself acts under its epoch, too."""
    left = " ".join(shlex.quote(word) for word in (*way, *ACTS))
    done = checked(
        tmp_path, 5, "bash", "-c", f"{left} & until test -e acts; do sleep 0.01; done; exit 4"
    )

    assert done.returncode == 4
    assert start_time(int((tmp_path / "acts").read_text().split()[1])) is None


def test_a_check_that_is_killed_lets_no_later_epoch_act_beside_its_command(tmp_path: Path) -> None:
    script = [HAPTERA, "fence", "check", "orders.epoch", "setsid", *ACTS]
    fenced = subprocess.Popen(script, cwd=tmp_path, env={**os.environ, "HAPTERA_EPOCH": "5"})
    try:
        acts = tmp_path / "acts"
        _, pid = wait_for(lambda: acts.exists() and acts.read_text()).split()
    finally:
        fenced.kill()
        fenced.wait()

    # It waits for the lock, so that it tells what lived when it had it.
    assert checked(tmp_path, 6, "test", "-e", f"/proc/{pid}").returncode == 1


@contextlib.contextmanager
def leading(folder: Path, *command: str) -> Iterator[tuple["subprocess.Popen[bytes]", int]]:
    """A fenced command that leads under epoch 5, and the process that acts."""
    lease, times = folder / "ledger", folder / "lease_time"
    write_time(times, LeaseTime(now_ns() + 3600 * 10**9, 0))
    terms = {
        "HAPTERA_GROUP": "ledger",
        "HAPTERA_RANK": "0",
        "HAPTERA_NODE": "n1",
        "HAPTERA_PLACEMENT": "1",
        "HAPTERA_STARTS": "1",
        "HAPTERA_LEASE": str(lease),
        "HAPTERA_LEASE_TIME": str(times),
    }
    fenced = subprocess.Popen(
        [HAPTERA, "fence", "run", *command],
        cwd=folder,
        env={**os.environ, **terms},
        start_new_session=True,
    )
    pid = None
    try:
        with opened(lease) as file:
            write_lease(file, Lease(5, fenced.pid, start_time(fenced.pid) or 0, now_ns(), HELD))
        acts = folder / "acts"
        pid = int(wait_for(lambda: acts.exists() and acts.read_text()).split()[1])
        yield fenced, pid
    finally:
        fenced.kill()
        fenced.wait()
        if pid is not None and start_time(pid) is not None:
            os.kill(pid, signal.SIGKILL)
