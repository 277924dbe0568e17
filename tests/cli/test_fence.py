"""`haptera fence` as it is typed: what runs, what does not, and what is killed."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from haptera.app.lease import (
    ENDING,
    HELD,
    Lease,
    LeaseTime,
    now_ns,
    opened,
    start_time,
    write_lease,
    write_time,
)
from tests.lab.rig import wait_for

pytestmark = pytest.mark.net

WITHIN_S = 60
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
        ("orders.json", "it holds something else than an epoch"),
        ("away/orders.epoch", "cannot be used: No such file or directory"),
    ],
)
def test_a_file_that_keeps_no_epoch_is_refused_in_words(
    tmp_path: Path, name: str, what: str
) -> None:
    (tmp_path / "orders.json").write_text("[]")
    told = checked(tmp_path, 4, "touch", "acted", file=name)

    assert told.returncode == 1
    assert told.stderr.startswith(f"error: {what}\n  {name}\n")
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


def test_it_runs_while_it_leads_and_is_killed_with_all_it_started(tmp_path: Path) -> None:
    lease, time = tmp_path / "ledger", tmp_path / "lease_time"
    write_time(time, LeaseTime(now_ns() + 3600 * 10**9, 0))
    terms = {
        "HAPTERA_GROUP": "ledger",
        "HAPTERA_RANK": "0",
        "HAPTERA_NODE": "n1",
        "HAPTERA_PLACEMENT": "1",
        "HAPTERA_STARTS": "1",
        "HAPTERA_LEASE": str(lease),
        "HAPTERA_LEASE_TIME": str(time),
    }
    script = f"cd {tmp_path}; echo $HAPTERA_EPOCH $$ > new; mv new acts; sleep 1000"
    fenced = subprocess.Popen(
        [HAPTERA, "fence", "run", "sh", "-c", script],
        env={**os.environ, **terms},
        start_new_session=True,
    )
    try:
        held = Lease(5, fenced.pid, start_time(fenced.pid) or 0, now_ns(), HELD)
        with opened(lease) as file:
            write_lease(file, held)
        acts = tmp_path / "acts"
        epoch, pid = wait_for(lambda: acts.exists() and acts.read_text()).split()
        assert (epoch, start_time(int(pid)) is not None) == ("5", True)

        with opened(lease) as file:
            write_lease(file, Lease(5, held.pid, held.started, held.granted, ENDING))

        assert fenced.wait(WITHIN_S) == -9
        assert wait_for(lambda: start_time(int(pid)) is None)
    finally:
        fenced.kill()
        fenced.wait()
