"""Systems on this machine: real squashfs, overlay and runc; each test leaves nothing mounted."""

import asyncio
import contextlib
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import msgspec
import pytest

from haptera.images.manifest import ImageManifest, sign
from haptera.kinds.system import SystemRun
from haptera.lab import tree
from haptera.model.entity import EntityId
from haptera.modules.system.module import (
    SystemSettings,
    connect,
    flip,
    let_be,
    look_applied,
    look_refused,
    look_run,
    look_staged,
    stage,
    start,
    stop,
)
from haptera.modules.system.mounts import mounted_below, run
from haptera.modules.system.one_system import System
from haptera.sdk import Refused
from tests.lab.rig import until
from tests.modules.image_rig import Rig, a_root, machine, needs, squashed

pytestmark = [
    pytest.mark.net,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="mounts and containers need root"),
    needs("runc", "mksquashfs", "ldd"),
]

SERVES = "trap 'exit 0' TERM; echo begun; while :; do sleep 1000 & wait; done"
DEAF = "trap '' TERM; echo begun; while :; do sleep 1000; done"
ENDS = "echo the database is gone; exit 3"
LEAVES_A_CHILD = "(trap '' TERM; while :; do sleep 1000; done) & exit 0"


@pytest.fixture(scope="module", autouse=True)
def own_mounts(tmp_path_factory: pytest.TempPathFactory) -> None:
    """What a test that fails leaves mounted is gone with this process."""
    tree.own_mounts()
    place = tmp_path_factory.mktemp("tried")
    (folder := place / "folder").mkdir()
    squashed(folder)
    mount = ["mount", "-t", "squashfs", "-o", "loop", folder.with_suffix(".squashfs"), folder]
    tried = subprocess.run(mount, capture_output=True, text=True)
    if tried.returncode:
        pytest.skip(tried.stderr.strip())
    subprocess.run(["umount", folder], check=True)


@dataclass
class Node:
    """One node of a rig, whose system is to run one image or another."""

    rig: Rig

    settings: SystemSettings = field(default_factory=lambda: SystemSettings(scratch_mb=16))

    def wants(self, image: str, **beside: str | int) -> System:
        """The system as the module is handed it where this image is desired."""
        target = self.rig.target(image, f"digest of {image}", self.settings)
        self.rig.wanted += [str(value) for name, value in beside.items() if name == "spare"]
        return connect(replace(target, values={**target.values, **beside}))

    async def runs(self, image: str, **beside: str | int) -> System:
        """Stage an image and start it."""
        one = self.wants(image, **beside)
        await stage(one)
        await start(one)
        return one


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


def an_image(rig: Rig, name: str, init: str = SERVES, command: str = "/init") -> ImageManifest:
    return rig.keep(name, squashed(a_root(rig.folder / name, init)), (command,))


@contextlib.asynccontextmanager
async def lived(rig: Rig) -> AsyncIterator[Node]:
    """A node whose parent serves; whatever comes of it, it is left empty."""
    async with rig.served():
        one = Node(rig)
        try:
            yield one
        finally:
            await stop(one.wants("none"))
            await let_be(one.wants("none"))
    assert mounted_below(rig.run_dir) == []


def init_of(one: System) -> int:
    started = one.home.started()
    assert started is not None
    return started.pid


async def test_an_image_runs_and_stops_and_leaves_nothing(rig: Rig) -> None:
    an_image(rig, "a")

    async with lived(rig) as node:
        one = node.wants("a")
        assert (await look_run(one), await look_staged(one)) == (SystemRun.STOPPED, "stale")
        await stage(one)
        assert (await look_run(one), await look_staged(one)) == (
            SystemRun.STOPPED,
            one.target.digest,
        )
        await start(one)
        assert (await look_run(one), await look_applied(one)) == (
            SystemRun.RUNNING,
            one.target.digest,
        )

        inside = Path(f"/proc/{init_of(one)}/root")
        assert (inside / "etc").is_dir()
        (inside / "tmp/written").touch()  # the root can be written to
        assert sorted(os.listdir(inside / "run/haptera")) == ["init", "jobs"]
        mine = os.readlink("/proc/self/ns/pid")
        assert os.readlink(f"/proc/{init_of(one)}/ns/pid") != mine

        await stop(one)
        assert (await look_run(one), await look_staged(one)) == (SystemRun.STOPPED, "stale")
        assert mounted_below(rig.run_dir) == []
        assert [*one.runtime.state.glob("*")] == []


@needs("mkfs.erofs")
async def test_an_erofs_runs_as_a_squashfs_does(rig: Rig) -> None:
    place, root = rig.folder / "a.erofs", a_root(rig.folder / "a", SERVES)
    await run("mkfs.erofs", "--quiet", "-zlz4hc", str(place), str(root))
    rig.keep("a", place.read_bytes())

    async with lived(rig) as node:
        one = await node.runs("a")
        assert (Path(f"/proc/{init_of(one)}/root") / "etc").is_dir()
        lower = one.ready[0].folder / "lower"
        assert await run("findmnt", "--noheadings", "--output", "FSTYPE", str(lower)) == "erofs\n"


# Ten processes, each left by its parent, before a command that waits for none.
ORPHANS = "for i in 1 2 3 4 5 6 7 8 9 10; do (sleep 0.1 &); done; echo begun; exec sleep 1000"


@pytest.mark.parametrize("init", [True, False])
async def test_what_is_left_by_its_parent_is_reaped_unless_that_is_not_desired(
    rig: Rig, init: bool
) -> None:
    an_image(rig, "a", ORPHANS)

    async with lived(rig) as node:
        node.settings = SystemSettings(scratch_mb=16, init=init)
        one = await node.runs("a")
        place = os.readlink(f"/proc/{init_of(one)}/ns/pid")
        states = ["S", "S"] if init else ["S", *"Z" * 10]
        await until(lambda: sorted(states_in(place)) == states)
        await stop(one)
        assert await look_run(one) is SystemRun.STOPPED


def states_in(place: str) -> list[str]:
    """The states of all processes in a namespace."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/{pid}/ns/pid") == place:
                found.append(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0])
    return found


def loops(folder: Path) -> list[str]:
    """The loop devices of files in a folder."""
    said = subprocess.run(["losetup", "--list"], capture_output=True, text=True, check=True)
    return [line for line in said.stdout.splitlines() if str(folder) in line]


@pytest.mark.parametrize("place", ["block device", "mounted folder"])
async def test_an_artefact_that_a_command_attaches_is_mounted_where_it_is_and_let_go(
    rig: Rig, place: str
) -> None:
    elsewhere = rig.folder / "elsewhere"
    elsewhere.mkdir()
    other, kept = an_image(rig, "b", f"# other\n{SERVES}"), an_image(rig, "a")
    for name, one in (("a", kept), ("b", other)):
        served = rig.store.artefact(one.digest)
        (elsewhere / one.digest.removeprefix("sha256:")).write_bytes(served.read_bytes())
        served.unlink()  # nothing is fetched
        assert rig.store.signed(name) is not None
    file = f"{elsewhere}/{{digest}}"
    attach, detach = f"echo attached; echo {file}", "rm {place}.attached"
    settings = SystemSettings(16, f"sh -c 'touch {file}.attached; {attach}'", detach)
    if place == "block device":
        attach, detach = f"losetup --find --show --read-only {file}", "losetup --detach {place}"
        settings = SystemSettings(16, attach, detach)

    def attached() -> int:
        return len(loops(elsewhere)) or len([*elsewhere.glob("*.attached")])

    async with lived(rig) as node:
        node.settings = settings
        one = await node.runs("a")
        assert (await look_applied(one), attached() > 0) == (one.target.digest, True)
        wrong = elsewhere / other.digest.removeprefix("sha256:")
        wrong.write_bytes(b"x" + wrong.read_bytes()[1:])
        before = attached()
        with pytest.raises(Refused, match=f"what was attached is not {other.digest}"):
            await stage(node.wants("b"))
        assert attached() == before
        await stop(one)
        assert attached() == 0


LIMITS = ("memory.limit_in_bytes", "memory.max", "cpu.cfs_quota_us", "cpu.max", "pids.max")


def held(pid: int) -> dict[str, str]:
    """What the kernel holds a process's cgroups to, of version 1 or 2."""
    lines = Path(f"/proc/{pid}/cgroup").read_text().split()
    groups = [Path("/sys/fs/cgroup") / one.split(":")[1] / one.split(":/")[1] for one in lines]
    files = [group / name for group in groups for name in LIMITS]
    return {one.name: one.read_text().strip() for one in files if one.exists()}


async def test_a_system_is_held_to_its_limits_by_the_kernel(rig: Rig) -> None:
    an_image(rig, "a")
    forks = ("/bin/sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do /bin/sleep 1 & done")

    async with lived(rig) as node:
        one = await node.runs("a", limits="memory 64MB, cpu 50%, pids 8")
        started = one.home.started()
        assert started is not None
        said = await one.runtime.execute(started.run, forks, 10.0)
        assert said is not None
        assert "fork" in said
        assert held(started.pid) in (
            {"memory.limit_in_bytes": str(64 << 20), "cpu.cfs_quota_us": "50000", "pids.max": "8"},
            {"memory.max": str(64 << 20), "cpu.max": "50000 100000", "pids.max": "8"},
        )


async def test_another_image_is_staged_beside_it_and_flipped_to_and_back(rig: Rig) -> None:
    first, second = an_image(rig, "a"), an_image(rig, "b", f"# other\n{SERVES}")
    assert first.digest != second.digest

    async with lived(rig) as node:
        old = (await node.runs("a")).home.started()
        one = node.wants("b")
        await stage(one)
        assert old is not None
        assert (await look_applied(one), init_of(one)) == ("stale", old.pid)

        await flip(one)
        assert (await look_run(one), await look_applied(one)) == (SystemRun.RUNNING, "digest of b")
        assert not old.process.lives

        again = node.wants("a")
        rig.store.remove("a")  # there is nothing to fetch: the old root stayed mounted
        assert await look_staged(again) == "digest of a"
        await flip(again)
        assert await look_applied(again) == "digest of a"
        assert again.target.take_note() == first.digest


async def test_an_init_that_ignores_its_signal_is_killed(rig: Rig) -> None:
    an_image(rig, "a", DEAF)

    async with lived(rig) as node:
        one = await node.runs("a")
        await stop(one)
        assert await look_run(one) is SystemRun.STOPPED


async def test_an_image_without_an_init_is_refused_while_the_old_one_runs(rig: Rig) -> None:
    an_image(rig, "a")
    an_image(rig, "b", command="/sbin/none")

    async with lived(rig) as node:
        old = init_of(await node.runs("a"))
        one = node.wants("b")
        with pytest.raises(Refused, match="image b has no /sbin/none that can be run"):
            await stage(one)
        assert await look_staged(one) == "stale"
        assert (await look_run(one), init_of(one)) == (SystemRun.RUNNING, old)


@pytest.mark.parametrize(
    "init", [b"\x7fELF, or so it says", b"#!/bin/sh\necho no config; exit 3\n"]
)
async def test_an_image_whose_init_does_not_run_gives_way_to_the_old_one(
    rig: Rig, init: bytes
) -> None:
    an_image(rig, "a")
    folder = a_root(rig.folder / "b", SERVES)
    (folder / "init").write_bytes(init)
    rig.keep("b", squashed(folder), ("/init",))

    async with lived(rig) as node:
        await node.runs("a")
        one = node.wants("b")
        await stage(one)
        with pytest.raises(Refused, match=r"; sha256:[0-9a-f]{12} runs again"):
            await flip(one)
        old = node.wants("a")
        assert (await look_run(old), await look_applied(old)) == (SystemRun.RUNNING, "digest of a")


async def test_an_artefact_that_is_no_root_is_not_staged(rig: Rig) -> None:
    rig.keep("a", b"no squashfs")

    async with lived(rig) as node:
        one = node.wants("a")
        with pytest.raises(Refused, match="mount"):
            await stage(one)
        assert await look_staged(one) == "stale"
        assert mounted_below(rig.run_dir) == []


async def test_a_full_disk_is_named_while_the_old_one_runs_and_room_helps(rig: Rig) -> None:
    an_image(rig, "a")
    an_image(rig, "b", f"# other\n{SERVES}")

    async with lived(rig) as node:
        old = init_of(await node.runs("a"))
        cache = rig.run_dir / "images"
        await run("mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(cache))
        one = node.wants("b")
        with pytest.raises(Refused, match=r"No space left on device: .*/images$"):
            await stage(one)
        assert (await look_run(one), init_of(one)) == (SystemRun.RUNNING, old)

        await run("umount", str(cache))
        await stage(one)
        await flip(one)
        assert await look_applied(one) == "digest of b"


async def test_an_image_for_other_machines_is_refused_before_it_is_fetched(rig: Rig) -> None:
    kept = an_image(rig, "a")
    other = msgspec.structs.replace(kept, architecture="s390x")
    rig.store.artefact(kept.digest).rename(rig.store.work / "again")
    rig.store.keep(rig.store.work / "again", sign(other, rig.signer))

    async with lived(rig) as node:
        with pytest.raises(Refused, match=f"image a is for s390x, this node is {machine()}"):
            await stage(node.wants("a"))
        assert not (rig.run_dir / "images").exists()


async def test_an_init_that_ends_has_failed_and_is_quoted_and_starts_again(rig: Rig) -> None:
    an_image(rig, "a", ENDS)

    async with lived(rig) as node:
        one = await node.runs("a")
        started = one.home.started()
        assert started is not None
        assert await started.process.ends(60)
        assert await look_run(one) is SystemRun.FAILED
        assert one.target.take_note() == "it ended by itself: the database is gone"
        await start(one)
        again = one.home.started()
        assert again is not None
        assert again.run != started.run
        await again.process.ends(60)
        await let_be(one)
        assert await look_run(one) is SystemRun.STOPPED


async def test_what_an_init_leaves_behind_ends_with_it(rig: Rig) -> None:
    an_image(rig, "a", LEAVES_A_CHILD)

    async with lived(rig) as node:
        one = await node.runs("a")
        started = one.home.started()
        assert started is not None
        assert await started.process.ends(60)
        assert await look_run(one) is SystemRun.FAILED
        await let_be(one)  # would fail where something kept the root busy
        assert mounted_below(rig.run_dir) == []


async def test_a_flip_whose_module_died_in_the_middle_has_failed_and_is_mended(rig: Rig) -> None:
    """The old init is dead, the new one was made ready, and nobody goes on: start does."""
    an_image(rig, "a")
    an_image(rig, "b", f"# other\n{SERVES}")

    async with lived(rig) as node:
        old = await node.runs("a")
        one = node.wants("b")
        await stage(one)
        os.kill(init_of(old), signal.SIGKILL)
        started = old.home.started()
        assert started is not None
        assert await started.process.ends(60)
        # Written by a process that is gone by now.
        (one.home.path / "ending.json").write_text('{"pid":1,"started":1}')

        assert await look_run(one) is SystemRun.FAILED
        await start(one)
        assert (await look_run(one), await look_applied(one)) == (SystemRun.RUNNING, "digest of b")


async def test_only_the_roots_that_may_be_needed_stay_mounted(rig: Rig) -> None:
    for name in ("a", "b", "c"):
        an_image(rig, name, f"# {name}\n{SERVES}")

    async with lived(rig) as node:
        await node.runs("a")
        for name in ("b", "c"):
            one = node.wants(name)
            await stage(one)
            await flip(one)
        kept = {said.manifest.name for _, said in node.wants("c").home.staged()}
        assert kept == {"b", "c"}
        assert len([*(rig.run_dir / "images").iterdir()]) == 2


async def test_a_spare_is_ready_beside_what_runs_and_the_two_change_places(rig: Rig) -> None:
    for name in ("a", "b"):
        an_image(rig, name, f"# {name}\n{SERVES}")

    async with lived(rig) as node:
        old = init_of(await node.runs("a"))
        one = node.wants("a", spare="b")
        assert await look_staged(one) == "stale"
        await stage(one)
        assert (await look_staged(one), init_of(one)) == ("digest of a", old)

        for name in ("a", "b"):
            rig.store.remove(name)  # there is nothing to fetch any more
        for image, spare in (("b", "a"), ("a", "b")):
            one = node.wants(image, spare=spare)
            assert await look_staged(one) == one.target.digest
            await flip(one)
            assert await look_applied(one) == one.target.digest


async def test_two_systems_of_a_node_stage_one_image_at_once(rig: Rig) -> None:
    an_image(rig, "a")

    async with lived(rig) as node:
        one = node.wants("a")
        target = replace(one.target, entity=EntityId("system", "login", "n1"))
        other = connect(target)
        await asyncio.gather(stage(one), stage(other))
        assert [await look_staged(each) for each in (one, other)] == ["digest of a"] * 2
        await other.home.drop_all()


async def test_a_system_that_does_not_become_well_gives_way_and_is_tried_again_only_when_asked(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("haptera.modules.system.module.HEALTHY_WITHIN_S", 0.5)
    for name in ("a", "b"):
        an_image(rig, name, f"echo {name} > /is\n{SERVES}")
    health = "sh -c 'read is < /is; echo it is $is; test $is = a'"

    async with lived(rig) as node:
        await node.runs("a")
        one = node.wants("b", spare="a", health=health)
        await stage(one)
        assert await look_refused(one) == "stale"
        why = "it is not healthy: the command sh ended with status 1: it is b"
        with pytest.raises(Refused, match=rf"^{why}; sha256:[0-9a-f]{{12}} runs again$"):
            await flip(one)
        assert (await look_refused(one), one.target.take_note()) == ("digest of b", why)
        # Nor is what runs stopped to start the bad one from nothing.
        old = init_of(one)
        with pytest.raises(Refused, match=rf"^b does not run here \({why}\), and sha256:"):
            await stop(one)
        assert (await look_run(one), init_of(one)) == (SystemRun.RUNNING, old)

        back = node.wants("a", spare="b", health=health)
        found = [await look(back) for look in (look_applied, look_staged, look_refused)]
        assert found == ["digest of a", "digest of a", "stale"]

        again = node.wants("b", spare="a", attempt=2)
        assert await look_refused(again) == "stale"
        await flip(again)
        assert [await look_applied(again), await look_refused(one)] == ["digest of b", "stale"]


async def test_a_spare_that_cannot_be_mounted_is_refused_once_and_blocks_nothing(rig: Rig) -> None:
    an_image(rig, "a")
    rig.keep("b", b"no squashfs")

    async with lived(rig) as node:
        await node.runs("a")
        one = node.wants("a", spare="b")
        with pytest.raises(Refused, match="mount"):
            await stage(one)
        assert [await look_staged(one), await look_refused(one)] == ["digest of a", "stale"]
        assert await look_refused(node.wants("b", spare="a")) == "digest of b"
