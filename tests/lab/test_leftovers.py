"""What systems of a lab leave in the kernel once their nodes have ended with them."""

from pathlib import Path

from haptera.keeping.cgroups import cgroup_name
from haptera.lab.init import clear_cgroups


def test_cgroups_of_jobs_and_replicas_that_ended_with_their_nodes_are_removed_and_no_others(
    tmp_path: Path,
) -> None:
    scratch, mount = tmp_path / "run", tmp_path / "cgroup"
    homes = scratch / "replicas/ledger.0", scratch / "queue/7-1"
    for home in homes:
        home.mkdir(parents=True)
    replica, job = map(cgroup_name, homes)
    ended = (
        mount / "unified/haptera-replicas" / replica,
        mount / "memory/haptera-replicas" / replica,
    )
    ended += (mount / "haptera-jobs" / job,)
    stays = mount / "haptera-jobs/7-1-00000000", mount / "unified/haptera-jobs" / job / "lives"
    for group in (*ended, *stays):
        group.mkdir(parents=True)
    clear_cgroups(scratch, mount)
    assert [one.exists() for one in (*ended, *stays)] == [False, False, False, True, True]


def test_cgroups_of_systems_that_ended_with_their_nodes_are_removed_and_no_others(
    tmp_path: Path,
) -> None:
    scratch, mount = tmp_path / "run", tmp_path / "cgroup"
    for name in ("web-n1-0a1b2c3d", "web-n1-4e5f6071"):
        (scratch / "systems/web/runtime" / name).mkdir(parents=True)
    ended = mount / "unified/haptera/web-n1-0a1b2c3d", mount / "haptera/web-n1-0a1b2c3d"
    stays = mount / "unified/haptera/web-n1-4e5f6071/lives", mount / "haptera/web-n3-00000000"
    for group in (*ended, *stays):
        group.mkdir(parents=True)
    clear_cgroups(scratch, mount)
    assert [one.exists() for one in (*ended, *stays)] == [False, False, True, True]
