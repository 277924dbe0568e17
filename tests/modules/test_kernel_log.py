"""Counts from a kernel's log, by logs in its form; and the heartbeats of applications."""

import os
from pathlib import Path

import pytest

from haptera.modules.kernel_tree import KernelTree
from haptera.modules.sensors.kernel_log import KMSG, KernelLog, heartbeats, patterns_of
from haptera.modules.sensors.module import module
from haptera.sdk import HapteraError
from tests.modules.test_sensors import numbers_of

LOG = (
    "6,100,0,-;Linux version 6.1.0\n",
    "3,101,5140900,-;NVRM: Xid (PCI:0000:65:00): 79, pid=1234, GPU has fallen off the bus.\n"
    " SUBSYSTEM=pci\n DEVICE=+pci:0000:65:00.0\n",
    "4,102,5140901,-;Memory cgroup out of memory: Killed process 7 (job) total-vm:1kB\n",
    "3,103,5140902,-;Out of memory: Killed process 9 (sshd) total-vm:1kB\n",
    "3,104,5140903,-;INFO: task kworker/u8:2:112 blocked for more than 120 seconds.\n",
    "0,105,5140904,-;mce: [Hardware Error]: Machine check events logged\n",
    "3,106,5140905,-;I/O error, dev sda, sector 12 op 0x0:(READ)\n",
)
SEEN = {"log.events[xid]": 1, "log.events[mce]": 1, "log.events[hung_task]": 1,
        "log.events[oom]": 1, "log.events[io_error]": 1, "log.events[lockup]": 0,
        "log.events[filesystem]": 0}  # fmt: skip


def logged(folder: Path, *records: str) -> KernelTree:
    (folder / KMSG).parent.mkdir(exist_ok=True)
    (folder / KMSG).write_text("".join(records))
    return KernelTree(folder)


def test_each_event_is_counted_once_however_often_the_log_is_read(tmp_path: Path) -> None:
    log, patterns, tree = KernelLog(), patterns_of({}), logged(tmp_path, *LOG)
    for _ in range(3):
        assert numbers_of(module, log.read(tree, patterns)) == SEEN

    # Its oldest are overwritten, and one more has come.
    logged(tmp_path, *LOG[4:], "3,107,5140906,-;NVRM: Xid (PCI:0000:65:00): 48\n")
    assert numbers_of(module, log.read(tree, patterns)) == {**SEEN, "log.events[xid]": 2}


def test_a_site_has_patterns_of_its_own_and_takes_bundled_ones_away(tmp_path: Path) -> None:
    tree = logged(tmp_path, *LOG, "4,108,0,-;ib0: link down\n", "no record\n", "4,109,0")
    own = {"link": "link down", "io_error": "", "oom": "out of memory"}
    found = numbers_of(module, KernelLog().read(tree, patterns_of(own)))
    assert found["log.events[link]"] == 1
    # The site's is of cgroups, and replaces the bundled one.
    assert found["log.events[oom]"] == 1
    assert "log.events[io_error]" not in found


def test_a_log_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert KernelLog().read(KernelTree(tmp_path), patterns_of({})) == {}


@pytest.mark.parametrize("own", [{"bad": "("}, {f"p{number}": "x" for number in range(40)}])
def test_patterns_that_cannot_be_are_refused(own: dict[str, str]) -> None:
    with pytest.raises(HapteraError):
        module.settings({"log_patterns": own})


def test_a_heartbeat_is_the_time_of_a_file_and_a_missing_one_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "beat").touch()
    os.utime(tmp_path / "beat", (1_000, 1_795_284_000))
    found = heartbeats(KernelTree(tmp_path), {"solver": "/beat", "other": "/gone"})
    assert numbers_of(module, found) == {"heartbeat.at[solver]": 1_795_284_000}
