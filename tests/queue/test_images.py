"""Jobs in images on this machine: real squashfs, overlay, user namespaces and runc."""

import asyncio
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from haptera.daemon.queue.agent_side import AgentQueue
from haptera.daemon.queue.bounds import unprivileged
from haptera.daemon.queue.job_home import JobHome, home_of
from haptera.daemon.queue.job_images import UNUSED_KEPT_MAX, JobImages
from haptera.keeping import keeper
from haptera.keeping.cgroups import cgroup_name
from haptera.keeping.gate import JobsGate
from haptera.lab import tree
from haptera.modules.system.mounts import run
from haptera.modules.system.staging import images_of_jobs
from haptera.queue.job import Bind, JobSpec, Size
from haptera.queue.work import Assignment, Holding, HoldingPhase, StopOrder, WorkAsked, WorkTold
from haptera.runtime.network.peer_messages import Answer, Request
from tests.lab.rig import until
from tests.modules.image_rig import Rig, a_root, needs, squashed

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="jobs in images need root"),
    needs("runc", "mksquashfs", "ldd"),
]

WITHIN_S = 120.0
PROGRAMS = (
    "/bin/sh",
    "/bin/sleep",
    "/usr/bin/id",
    "/bin/cat",
    "/bin/kill",
    "/usr/bin/touch",
    "/bin/ls",
)
OVER = (HoldingPhase.ENDED, HoldingPhase.RETURNED)
ROOT = JobSpec(("sh", "-c", "id -u; cat /proc/self/cgroup"), Size(1, 0), user="root", image="a")


@pytest.fixture(scope="module", autouse=True)
def own_mounts() -> None:
    """Leave no mounts of a test that fails: they end with this process."""
    tree.own_mounts()


@dataclass
class Node:
    """A node's real queue of jobs, and a parent that gives it what a test wants."""

    rig: Rig
    waiting: list[Assignment] = field(default_factory=list)
    stops: list[StopOrder] = field(default_factory=list)
    heard: dict[int, Holding] = field(default_factory=dict)
    images: tuple[str, ...] | None = None
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    def gives(self, spec: JobSpec) -> JobHome:
        """Give it a job; where that lies."""
        number = len(self.heard) + len(self.waiting) + 1
        work = Assignment(number, number, "it", spec)
        self.waiting.append(work)
        self.changed.set()
        return home_of(self.rig.run_dir, work)

    async def ends(self, home: JobHome) -> Holding:
        """The end of a job, once it has come."""
        token = int(home.path.name.partition("-")[2])
        await until(lambda: token in self.heard and self.heard[token].phase in OVER, WITHIN_S)
        return self.heard[token]

    async def runs(self, spec: JobSpec) -> tuple[int | None, str]:
        """Its status, and what it wrote, or why it did not."""
        home = self.gives(spec)
        end = await self.ends(home)
        return end.status, said(home) or str(end.reason or "")

    def stop(self, home: JobHome, grace_ms: int) -> None:
        self.stops.append(StopOrder(int(home.path.name.partition("-")[2]), grace_ms, "cancelled"))
        self.changed.set()

    async def ask(self, _peer: str, asked: Request, _within_s: float) -> Answer:
        assert isinstance(asked, WorkAsked)
        self.images = asked.images
        news = [one for one in asked.held if self.heard.get(one.token) != one]
        self.heard |= {one.token: one for one in asked.held}
        if not news and not self.waiting and not self.stops and asked.wait_ms:
            self.changed.clear()
            await self.changed.wait()
        work, self.waiting = tuple(self.waiting), []
        stop, self.stops = tuple(self.stops), []
        noted = tuple(one.token for one in asked.held if one.phase is not HoldingPhase.LOCKED)
        return WorkTold(work, stop, noted, lease_ms=600_000)


def said(home: JobHome) -> str:
    place = home.path / keeper.OUTPUT
    return place.read_text().strip() if place.exists() else ""


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


@pytest.fixture
def shared() -> Iterator[Path]:
    """A folder that everybody reaches and writes."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        place.chmod(0o777)
        yield place


def an_image(rig: Rig, name: str = "a") -> None:
    rig.keep(name, squashed(a_root(rig.folder / name, f"# {name}", PROGRAMS)), ("/bin/sh",))
    rig.wanted.append(name)


@asynccontextmanager
async def serving(rig: Rig) -> AsyncIterator[Node]:
    """A node whose parent serves images; whatever comes of it, no job of it is left."""
    JobsGate(rig.run_dir).release()
    node = Node(rig)
    async with rig.served():
        task = asyncio.ensure_future(AgentQueue(node.ask, lambda: True, rig.run_dir, "n1").run())
        try:
            yield node
        finally:
            task.cancel()
            await asyncio.wait([task])
            await images_of_jobs(rig.run_dir).drop_all()
    assert [one for one in mounts(rig) if one != str(rig.run_dir)] == []


def mounts(rig: Rig) -> list[str]:
    """The mounts below this rig in any namespace that some process is in."""
    found = set()
    for place in Path("/proc").glob("[0-9]*/mountinfo"):
        try:
            lines = place.read_text(errors="replace").splitlines()
        except OSError:
            continue
        found |= {one for line in lines if str(rig.folder) in (one := line.split(" ")[4])}
    return sorted(found)


def bearers(home: JobHome) -> list[int]:
    """The processes that have the job's marks, its keeper too."""
    marks = {f"{name}={value}".encode() for name, value in home.marks.items()}
    found = []
    for place in Path("/proc").glob("[0-9]*/environ"):
        try:
            if marks <= {*place.read_bytes().split(b"\0")}:
                found.append(int(place.parent.name))
        except OSError:
            continue
    return found


def cgroups(rig: Rig) -> list[str]:
    """The cgroups of jobs that ended, and any that a runtime has made for one."""
    own = [cgroup_name(one) for one in (rig.run_dir / "queue").iterdir()]
    names = {*own, *(one.name for one in (rig.run_dir / "queue").iterdir())}
    return sorted(place for place, _, _ in os.walk("/sys/fs/cgroup") if Path(place).name in names)


def in_a(*words: str, **more: object) -> JobSpec:
    return JobSpec(words, Size(1, 0), image="a", **more)  # type: ignore[arg-type]


async def test_a_job_runs_in_an_image_as_its_root_who_is_nobody_outside(
    rig: Rig, shared: Path
) -> None:
    an_image(rig)
    me = unprivileged()

    async with serving(rig) as node:
        place = shared / "made"
        data = Bind(str(shared), "/data", writable=True)
        script = "id -u; cat /proc/self/uid_map; touch made; touch /etc/x || echo read only"
        status, text = await node.runs(in_a("sh", "-c", script, folder="/data", mounts=(data,)))

        assert status == 0
        assert text.split()[:4] == ["0", "0", str(me.pw_uid), "1"]
        # What is said of errors comes over a pipe of its own.
        assert "\nread only" in text
        assert place.stat().st_uid == me.pw_uid
        assert node.images is not None
        assert "a" in node.images
        # Its image stays mounted for the next job, and nothing else does.
        assert mounts(rig) == [str(one.path) for one, _ in images_of_jobs(rig.run_dir).staged()]


async def test_a_job_runs_where_nothing_may_be_executed_but_in_images(
    rig: Rig, shared: Path
) -> None:
    """As /run is mounted by Debian, where agents have their folders, and often /tmp, too."""
    an_image(rig)
    places = (rig.run_dir, shared)
    for place in places:
        await run("mount", "--bind", str(place), str(place))
        await run("mount", "-o", "remount,bind,noexec,nosuid,nodev", str(place))
    try:
        async with serving(rig) as node:
            for writable in (True, False):
                data = Bind(str(shared), "/data", writable)
                for user in (None, "root"):
                    spec = in_a("sh", "-c", "ls /data && id -u", mounts=(data,), user=user)
                    assert await node.runs(spec) == (0, "0")
    finally:
        for place in places:
            await run("umount", "--lazy", str(place))


async def test_a_job_of_root_is_root_with_the_powers_of_services(rig: Rig) -> None:
    an_image(rig)
    async with serving(rig) as node:
        status, text = await node.runs(ROOT)
        assert (status, text.splitlines()[0]) == (0, "0")
        # The runtime has made no cgroup: it would have the name of the job's directory.
        assert [one for one in text.splitlines() if one.endswith("/1-1")] == []
        assert cgroups(rig) == []


async def test_a_job_ends_with_its_commands_status_and_by_a_signal_as_in_a_shell(rig: Rig) -> None:
    an_image(rig)
    async with serving(rig) as node:
        assert await node.runs(in_a("sh", "-c", "echo out; exit 7")) == (7, "out")
        status, _ = await node.runs(in_a("sh", "-c", "kill -KILL $$"))
        assert status == 128 + signal.SIGKILL


async def test_a_command_that_the_image_lacks_is_named(rig: Rig) -> None:
    an_image(rig)
    async with serving(rig) as node:
        home = node.gives(in_a("no-such-command"))
        end = await node.ends(home)
        assert (end.phase, end.status) == (HoldingPhase.ENDED, 127)
        assert "image a has no command 'no-such-command'" in str(end.reason)

        home = node.gives(in_a("sh", mounts=(Bind("/no/such/place", "/data"),)))
        end = await node.ends(home)
        assert end.status == 127
        assert "/no/such/place" in str(end.reason)
        assert cgroups(rig) == []


async def test_a_job_opens_the_devices_that_it_names_and_no_other(rig: Rig) -> None:
    an_image(rig)
    script = "cat /dev/loop-control; test -c /dev/zero && test ! -e /dev/kmsg && echo $?"
    async with serving(rig) as node:
        status, text = await node.runs(in_a("sh", "-c", script, devices=("/dev/loop-control",)))
        assert (status, text.splitlines()[-1]) == (0, "0")
        # It is there, and its rights are those of the job's user.
        assert "/dev/loop-control: Permission denied" in text

        end = await node.ends(node.gives(in_a("id", devices=("vendor.com/gpu=0",))))
        assert end.status == 127
        assert "no device vendor.com/gpu=0 is known on this node" in str(end.reason)


async def test_term_reaches_the_command_once_and_what_it_leaves_is_killed(rig: Rig) -> None:
    an_image(rig)
    async with serving(rig) as node:
        script = "trap 'echo term' TERM; echo begun; sleep 1000 & while :; do wait $!; done"
        home = node.gives(in_a("sh", "-c", script))
        await until(lambda: home.began and "begun" in said(home), WITHIN_S)
        node.stop(home, grace_ms=2_000)
        end = await node.ends(home)
        assert end.status == -signal.SIGKILL
        assert said(home).split() == ["begun", "term"]
        assert bearers(home) == []


@pytest.mark.parametrize("victim", ["runc", "keeper", "agent"])
async def test_whoever_is_killed_nothing_is_left_and_nothing_runs_twice(
    rig: Rig, victim: str
) -> None:
    an_image(rig)
    async with serving(rig) as node:
        home = node.gives(in_a("sh", "-c", "echo begun; sleep 1000 & sleep 1000"))
        await until(lambda: home.began and "begun" in said(home), WITHIN_S)
        record = home.record
        assert record is not None
        match victim:
            case "runc":
                os.kill(record.service.pid, signal.SIGKILL)
            case "keeper":
                os.kill(record.keeper.pid, signal.SIGKILL)
            case _:
                another = AgentQueue(node.ask, lambda: True, rig.run_dir, "n1")
                task = asyncio.ensure_future(another.run())
                await asyncio.sleep(0)
                node.stop(home, grace_ms=0)
        end = await node.ends(home)
        if victim == "agent":
            task.cancel()
        # Without any grace, the job may still end by TERM before it is killed.
        ends = {"keeper": [None], "runc": [-signal.SIGKILL]}
        assert end.status in ends.get(victim, [-signal.SIGKILL, 128 + signal.SIGTERM])
        assert said(home) == "begun"
        await until(lambda: bearers(home) == [] and cgroups(rig) == [], WITHIN_S)
        assert mounts(rig) == [str(one.path) for one, _ in images_of_jobs(rig.run_dir).staged()]


async def test_an_image_that_cannot_be_had_or_is_not_ours_is_told_of(rig: Rig) -> None:
    an_image(rig)
    async with serving(rig) as node:
        end = await node.ends(node.gives(JobSpec(("sh",), Size(1, 0), image="none")))
        assert end.phase is HoldingPhase.RETURNED
        assert "image 'none' is not for this node" in str(end.reason)

        place = rig.store.path / "names" / "a"
        signed = rig.store.signed("a")
        assert signed is not None
        manifests = [
            one for one in rig.store.path.rglob("*") if one.is_file() and one.read_bytes() == signed
        ]
        for place in manifests:
            place.write_bytes(signed.replace(b'"signature":"', b'"signature":"AAAA'))
        end = await node.ends(node.gives(in_a("id")))
        assert (end.phase, end.status) == (HoldingPhase.ENDED, 127)
        assert "not signed by the cluster's authority" in str(end.reason)


async def test_a_job_that_is_cancelled_while_its_image_is_made_never_begins(rig: Rig) -> None:
    rig.wanted.append("b")
    rig.made.append("b")
    async with serving(rig) as node:
        home = node.gives(JobSpec(("id",), Size(1, 0), image="b"))
        await until(lambda: bool(node.heard), WITHIN_S)
        assert [one.phase for one in node.heard.values()] == [HoldingPhase.LOCKED]
        node.stop(home, grace_ms=0)
        end = await node.ends(home)
        assert (end.phase, end.status, end.reason) == (HoldingPhase.ENDED, None, "cancelled")
        assert not home.began


async def test_images_that_no_job_uses_are_dropped_but_for_a_few(rig: Rig) -> None:
    names = [f"image-{number}" for number in range(UNUSED_KEPT_MAX + 2)]
    for name in names:
        an_image(rig, name)
    async with serving(rig) as node:
        for name in names:
            spec = JobSpec(("id", "-u"), Size(1, 0), image=name)
            assert await node.runs(spec) == (0, "0")
        await until(lambda: len(mounts(rig)) == UNUSED_KEPT_MAX, WITHIN_S)
        known = JobImages(rig.run_dir).known
        assert known is not None
        assert [one for one in names if one in known] == names[2:]
        artefacts = rig.run_dir / "images"
        await until(lambda: len([*artefacts.glob("[0-9a-f]*")]) == UNUSED_KEPT_MAX, WITHIN_S)
