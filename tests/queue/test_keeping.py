"""One job in its keeper: what ends with it, what bounds it, and whose it is; seen in /proc."""

import asyncio
import os
import pwd
import signal
from collections.abc import Iterable
from pathlib import Path

import msgspec
import pytest

from haptera.daemon.queue.agent_side import AgentQueue
from haptera.daemon.queue.bounds import NodeBounds, unprivileged
from haptera.daemon.queue.job_home import JobHome, JobNote, home_of
from haptera.keeping import keeper, procfs
from haptera.keeping.gate import JobsGate, enter, gate_path
from haptera.keeping.job_keeper import OUTPUT_BYTES_MAX
from haptera.queue.job import JobSpec, Size
from haptera.queue.work import Assignment, Holding, HoldingPhase, WorkAsked, WorkTold
from haptera.runtime.clock import now_ns
from haptera.runtime.network.peer_messages import Request
from tests.lab.rig import until

pytestmark = pytest.mark.net

WITHIN_S = 60.0
HOUR_NS = 3_600_000_000_000
ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root runs jobs as others")
# Leaves the session, the group and its parent, forgets its environment, and says who it is.
DAEMON = """
setsid env -i sh -c 'sh -c "echo \\$\\$ >stray; exec sleep 600" & exit' &
until [ -s stray ]; do sleep 0.01; done
"""


ENDS = "exit 3"
ME = pwd.getpwuid(os.geteuid()).pw_name
WORK = Assignment(1, 7, "it", JobSpec(("true",), Size(1, 0)))


class Desk:
    """Starts jobs as an agent does."""

    def __init__(self, run_dir: Path) -> None:
        self.run_dir = run_dir
        JobsGate(run_dir).release()

    async def start(
        self,
        script: str,
        memory_mb: int = 0,
        user: str | None = ME,
        hidden: Iterable[str] = (),
    ) -> JobHome:
        """Without another user it may write in its own directory, where the script begins."""
        begin = f"cd {home_of(self.run_dir, WORK).path}; " if user == ME and not hidden else ""
        spec = JobSpec(("sh", "-c", begin + script), Size(1, memory_mb), user=user)
        work = msgspec.structs.replace(WORK, spec=spec)
        home = home_of(self.run_dir, work)
        home.write(JobNote(work))
        gate = enter(gate_path(self.run_dir))
        assert gate is not None
        bounds = NodeBounds.of_this_node(hidden).of(spec, home.path)
        environment = {"PATH": os.environ["PATH"]}
        fault = await home.start(bounds, environment, gate, now_ns() + HOUR_NS)
        os.close(gate)
        assert fault is None
        return home

    async def stray(self, home: JobHome) -> int:
        """The number of the process that left everything, once it is there."""
        await until(lambda: (home.path / "stray").exists() and said(home, "stray") != "")
        return int(said(home, "stray"))

    def nothing_left(self, home: JobHome) -> bool:
        """Whether nobody holds the gate, nor has a directory in the job's home."""
        return not JobsGate(self.run_dir).in_use and not [*inside(home.path)]


def inside(path: Path) -> list[str]:
    """The processes whose directory it is."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/cwd") == str(path):
                found.append(name)
        except OSError:
            pass
    return found


def said(home: JobHome, name: str = keeper.OUTPUT) -> str:
    return (home.path / name).read_text().strip()


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


async def test_a_job_that_begins_after_its_agent_was_started_anew_is_followed(desk: Desk) -> None:
    """The agent died while it started the keeper, which has begun once the parent has answered."""
    work = Assignment(1, 7, "it", JobSpec(("sh", "-c", ENDS), Size(1, 0)))
    home = home_of(desk.run_dir, work)
    home.write(JobNote(work))
    told: asyncio.Future[Holding] = asyncio.get_running_loop().create_future()

    async def ask(_peer: str, asked: Request, _within_s: float) -> WorkTold:
        assert isinstance(asked, WorkAsked)
        if not home.began:
            await desk.start(ENDS)
        if asked.held[0].phase is HoldingPhase.ENDED and not told.done():
            told.set_result(asked.held[0])
        return WorkTold(noted=(work.token,), lease_ms=60_000)

    running = asyncio.ensure_future(AgentQueue(ask, lambda: True, desk.run_dir, "n1").run())
    try:
        ended = await asyncio.wait_for(told, WITHIN_S)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert ended == Holding(1, 7, HoldingPhase.ENDED, 3, "it ended with status 3")


async def test_what_left_the_jobs_session_ends_with_it(desk: Desk) -> None:
    home = await desk.start(f"{DAEMON} exit 3")
    assert await home.ends() == (3, "it ended with status 3")
    assert procfs.start_time(int(said(home, "stray"))) is None
    assert desk.nothing_left(home)


async def test_what_left_the_jobs_session_ends_with_its_lease(desk: Desk) -> None:
    home = await desk.start(f"{DAEMON} exec sleep 600")
    await desk.stray(home)
    home.renew(now_ns())
    assert await home.ends() == (None, "its lease could not be renewed in time")
    assert desk.nothing_left(home)


async def test_a_job_whose_keeper_is_killed_ends_and_what_it_began_too(desk: Desk) -> None:
    """All but those that hide what job they are of, too: these a cgroup finds."""
    home = await desk.start(f"{DAEMON.replace('env -i', '')} exec sleep 600")
    await desk.stray(home)
    assert home.record is not None
    os.kill(home.record.keeper.pid, signal.SIGKILL)
    status, reason = await home.ends()
    assert (status, reason) == (None, "it ended and its keeper did not live to see how")
    assert desk.nothing_left(home)


async def test_a_job_that_is_stopped_hears_term_wherever_it_went(desk: Desk) -> None:
    heard = "trap 'echo bye >>heard; exit 0' TERM; echo ready >{}; while :; do sleep 0.01; done"
    home = await desk.start(f'setsid sh -c "{heard.format("away")}" & {heard.format("here")}')
    await until(lambda: all((home.path / name).exists() for name in ("away", "here")))
    await home.stop(WITHIN_S)
    assert await home.ends() == (0, None)
    assert desk.nothing_left(home)
    assert "bye" in said(home, "heard")


async def test_what_a_job_writes_is_bounded_and_says_where_it_was_cut(desk: Desk) -> None:
    home = await desk.start(f"head -c {OUTPUT_BYTES_MAX + 5} /dev/zero; echo after")
    assert await home.ends() == (0, None)
    last = f"\nhaptera: {OUTPUT_BYTES_MAX} bytes are kept, and no more\n".encode()
    kept = (home.path / keeper.OUTPUT).read_bytes()
    assert (len(kept), kept[OUTPUT_BYTES_MAX:]) == (OUTPUT_BYTES_MAX + len(last), last)


@pytest.mark.skipif(
    NodeBounds.of_this_node().limits == "cgroup", reason="memory is bounded by a cgroup here"
)
async def test_without_cgroups_memory_bounds_each_process(desk: Desk) -> None:
    home = await desk.start("ulimit -v; exec head -c 1 /dev/zero", 64)
    assert await home.ends() == (0, None)
    assert said(home).startswith(str(64 << 10))


@ROOT
async def test_a_job_of_another_user_has_their_groups_and_environment_and_nothing_of_ours(
    desk: Desk,
) -> None:
    home = await desk.start("id -un; id -G; echo $HOME; pwd; kill -9 $PPID", user="nobody")
    ended = await home.ends()
    assert ended == (1, f"it ended with status 1: {said(home).splitlines()[-1]}")
    account = pwd.getpwnam("nobody")
    groups = " ".join(map(str, os.getgrouplist("nobody", account.pw_gid)))
    told = ["nobody", groups, account.pw_dir, "/"]
    assert said(home).splitlines()[:4] == told


@ROOT
async def test_a_job_that_says_no_user_is_one_without_rights(desk: Desk) -> None:
    (desk.run_dir / "key.pem").write_text("secret")
    (desk.run_dir / "key.pem").chmod(0o600)
    told = "id -u; grep -h CapEff /proc/self/status; cat "
    home = await desk.start(f"{told} {desk.run_dir}/key.pem {desk.run_dir}", user=None)
    assert await home.ends() != (0, None)
    uid, capabilities, *refused = said(home).splitlines()
    assert (int(uid), capabilities.split()[1]) == (unprivileged().pw_uid, "0" * 16)
    assert int(uid) != 0
    assert all("Permission denied" in line for line in refused), refused


@ROOT
async def test_a_job_reaches_nothing_of_its_agent_even_as_root(desk: Desk) -> None:
    """The gate of jobs alone is there, as for services; and what hides the rest stays."""
    for name in ("key.pem", "session.json"):
        (desk.run_dir / name).write_text("secret")
        (desk.run_dir / name).chmod(0o644)  # so that nothing but the cover hides it
    desk.run_dir.chmod(0o755)
    script = f"""
        cd {desk.run_dir} && ls; cd ~; pwd; cat {desk.run_dir}/key.pem session.json
        umount {desk.run_dir}; mount -t tmpfs none /mnt; mknod disk b 8 0
        cat /proc/$PPID/cwd/../../key.pem /proc/$PPID/root{desk.run_dir}/key.pem
    """
    home = await desk.start(script, hidden=[str(desk.run_dir)])
    assert await home.ends() != (0, None)
    assert said(home).splitlines()[0] == "jobs", said(home)
    assert "secret" not in said(home)


def test_a_user_that_is_not_there_is_named(tmp_path: Path) -> None:
    spec = JobSpec(("true",), Size(1, 1), user="nobody_of_that_name")
    with pytest.raises(OSError, match="there is no user nobody_of_that_name on this node"):
        NodeBounds().of(spec, tmp_path)


@pytest.mark.skipif(
    NodeBounds.of_this_node().groups is None, reason="there are no cgroups v2 that we may make"
)
async def test_a_job_has_a_cgroup_of_its_own_which_goes_with_it(desk: Desk) -> None:
    home = await desk.start(f"{DAEMON} exec cat /proc/self/cgroup")
    cgroup = Path(keeper.read_state(str(home.path / keeper.BOUNDS))["cgroup"][0])
    assert await home.ends() == (0, None)
    assert said(home).splitlines()[-1].endswith(f"/{cgroup.parent.name}/{cgroup.name}")
    assert cgroup.name not in os.listdir(cgroup.parent)


@pytest.mark.skipif(
    NodeBounds.of_this_node().groups is None, reason="there are no cgroups v2 that we may make"
)
async def test_with_a_cgroup_nothing_hides_when_the_keeper_is_killed(desk: Desk) -> None:
    home = await desk.start(f"{DAEMON} exec sleep 600")
    stray = await desk.stray(home)
    assert home.record is not None
    os.kill(home.record.keeper.pid, signal.SIGKILL)
    await home.ends()
    assert procfs.start_time(stray) is None
    assert desk.nothing_left(home)
