"""Systems: stage an image beside the one that runs, then replace the one by the other at once.

Of a roll, all that takes long is done while the old system runs: the artefact is fetched,
verified and mounted, and the runtime makes the new system ready but for its command's own start.
What is left is the flip: the old one ends, the new one begins. The old root stays mounted, so that
a flip that fails, or that is taken back, is the same flip the other way round.
"""

import asyncio
import secrets
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import msgspec

from haptera.images.manifest import DIGEST, ImageManifest
from haptera.keeping.gate import GATE, JOBS, OPEN
from haptera.keeping.home import ServiceProcess
from haptera.kinds import node, system
from haptera.kinds.node import Agent
from haptera.kinds.system import SystemRun
from haptera.modules.system.bundle import (
    JOBS_INSIDE,
    SystemSurroundings,
    configuration,
)
from haptera.modules.system.container import Runtime, end
from haptera.modules.system.home import Staged, SystemHome, SystemStart, home_of
from haptera.modules.system.mounts import Root
from haptera.modules.system.one_system import System
from haptera.modules.system.reaper import needs_reaper, reaper
from haptera.modules.system.staging import stage_image
from haptera.sdk import (
    ANY,
    SELF,
    Applied,
    Command,
    Conditions,
    HapteraError,
    Module,
    Policy,
    Privilege,
    Refused,
    Target,
)

STAGED_WITHIN_S: Final = 900
# A step's whole effect comes within its `late_s`, the SIGKILL after a signal in vain included.
GRACE_S: Final = 5.0
LATE_S: Final = 10
# What a process that is killed while it stages leaves behind: one mount that is being made.
STAGED_LATE_S: Final = 1
# A new init that ends within this time is one that does not run: the old one is started again.
PROVEN_S: Final = 1.0
# A new system has so long to become well, asked so often, each time for so long.
HEALTHY_WITHIN_S: Final = 15.0
HEALTH_EVERY_S: Final = 0.2
HEALTH_TRIED_S: Final = 5.0
# How often a system that does not run is looked at for a start.
WATCH_STOPPED_EVERY_S: Final = 0.5
# An image may take as long to build as it likes, and a parent to come back.
STAGING: Final = Policy(100, backoff_ms=1_000, backoff_ms_max=15_000, cool_down_ms=60_000)
# A flip that failed has cost an outage: whatever made it fail is hardly gone a moment later.
FLIPPING: Final = Policy(2, backoff_ms=60_000, backoff_ms_max=60_000, cool_down_ms=3_600_000)


@dataclass(frozen=True)
class SystemSettings:
    """How much may change in a system before it is full: its writable layer is memory.

    Where artefacts are not to be fetched, the command `attach` makes one ready that is elsewhere,
    and prints its place: a block device, or a file; `detach` undoes that.

    `init`: an image whose command is no init gets one that reaps.
    """

    scratch_mb: int = 256
    attach: Command | None = None
    detach: Command | None = None
    init: bool = True


def connect(target: Target) -> System:
    home = home_of(target.run_dir, target.name)
    return System(target, home, Runtime(home.path / "runtime"))


module = Module(
    "system", connect=connect, context=SELF, settings=SystemSettings, needs=(Privilege.MOUNTS,)
)
run = module.serves(system.run)
applied = module.serves(system.applied)
staged = module.serves(system.staged)
refused = module.serves(system.refused)
HERE: Final[Conditions] = {node.agent: Agent.UP}


@run.look(
    every_s=10, outcomes=(SystemRun.STOPPED, SystemRun.RUNNING, SystemRun.FAILED), requires=HERE
)
async def look_run(one: System) -> SystemRun:
    found = one.home.run()
    if found is SystemRun.FAILED:
        one.target.note(one.home.last_words())
    return found


@run.watch
async def watch_run(one: System) -> AsyncIterator[SystemRun]:
    told: SystemRun | None = None
    while True:
        seen = await look_run(one)
        if seen is not told:
            told = seen
            yield seen
        started = one.home.started()
        if started is not None and started.process.lives:
            await started.process.ends(within_s=None)
        else:
            await asyncio.sleep(WATCH_STOPPED_EVERY_S)


@staged.look(every_s=30, outcomes=(Applied.STALE, Applied.CURRENT), requires=HERE)
async def look_staged(one: System) -> str:
    found = one.home.staged_for(one.image)
    if found is None or (one.spare is not None and not _is_settled(one, one.spare)):
        return Applied.STALE
    one.target.note(found[1].manifest.digest)
    return one.target.digest


def _is_settled(one: System, spare: str) -> bool:
    """Whether a spare is ready, or is known not to run here."""
    return one.home.staged_for(spare) is not None or one.is_refused(spare) is not None


@refused.look(every_s=10, outcomes=(Applied.STALE, Applied.CURRENT), requires=HERE)
async def look_refused(one: System) -> str:
    why = one.is_refused(one.image)
    if why is None:
        return Applied.STALE
    one.target.note(why)
    return one.target.digest


@applied.look(
    every_s=30,
    outcomes=(Applied.STALE, Applied.CURRENT),
    requires={system.run: SystemRun.RUNNING, **HERE},
)
async def look_applied(one: System) -> str:
    started = one.home.started()
    if started is None or not started.process.lives:
        raise HapteraError("it does not run, so nothing is in force")
    one.target.note(started.image)
    return one.target.digest if started.reference == one.image else Applied.STALE


@contextmanager
def without_effect() -> Iterator[None]:
    """What fails in here has changed nothing that is looked at, nor will."""
    try:
        yield
    except HapteraError as error:
        raise Refused(str(error)) from error
    except OSError as error:
        raise Refused(f"{error.strerror}: {error.filename or 'the disk'}") from error


@staged.step(
    Applied.STALE,
    Applied.CURRENT,
    within_s=STAGED_WITHIN_S,
    late_s=STAGED_LATE_S,
    policy=STAGING,
    stoppable=True,
    ends_with_call=True,
)
async def stage(one: System) -> None:
    """Fetch, verify and mount the desired image, and the spare; what runs is left as it is."""
    with without_effect():
        if one.home.staged_for(one.image) is None:
            await stage_image(one, one.image)
        if one.spare is not None and not _is_settled(one, one.spare):
            await stage_image(one, one.spare)


@module.step(
    run.goes((SystemRun.STOPPED, SystemRun.FAILED), SystemRun.RUNNING),
    applied.goes(ANY, Applied.CURRENT, expected=True),
    within_s=30,
    late_s=LATE_S,
    requires={system.staged: Applied.CURRENT},
)
async def start(one: System) -> None:
    root, ready = one.ready
    with without_effect():
        name, process = await _create(one, root, ready)
        await _begin(one, name, process, ready, one.image)
    if one.health:
        with one.refusing(one.image):
            await _proven(one, name, process)
    one.home.forget_refused()


@module.step(
    applied.goes(Applied.STALE, Applied.CURRENT),
    within_s=60,
    late_s=LATE_S,
    requires={system.run: SystemRun.RUNNING, system.staged: Applied.CURRENT},
    disruptive=True,
    policy=FLIPPING,
)
async def flip(one: System) -> None:
    root, ready = one.ready
    old = one.home.started()
    if old is None:
        raise Refused("it does not run")
    # Whatever can fail of the new one without the old one's end, fails here.
    with one.refusing(one.image), without_effect():
        name, process = await _create(one, root, ready)
    with one.home.ending():
        await end(old.process, _stop_signal(one.home, old), GRACE_S)
        try:
            with one.refusing(one.image):
                await _begin(one, name, process, ready, one.image)
                await _proven(one, name, process)
        except HapteraError as error:
            if process.lives:
                await end(process, ready.manifest.stop_signal, GRACE_S)
            await _go_back(one, old)
            raise Refused(f"{error}; {_short(old.image)} runs again") from error
    one.home.forget_refused()
    await one.runtime.sweep(name)


@run.step(
    SystemRun.RUNNING,
    SystemRun.STOPPED,
    within_s=60,
    late_s=LATE_S,
    disruptive=True,
)
async def stop(one: System) -> None:
    """It is stopped once its last process is gone and all that was mounted for it.

    Where a flip has failed, to stop what runs and start the new image instead is a way to it too:
    of an image that was refused here nothing better would come, and the old one would be gone.
    """
    started = one.home.started()
    if started is None:
        return
    if (why := _gave_way(one, started)) is not None:
        text = f"{_short(started.image)} runs on; to stop it, desire that image first"
        raise Refused(f"{one.image} does not run here ({why}), and {text}")
    with one.home.ending():
        await end(started.process, _stop_signal(one.home, started), GRACE_S)
        await _clear(one)


def _gave_way(one: System, started: SystemStart) -> str | None:
    """Why the desired image does not run, where it was tried and gave way to what runs."""
    desired = one.target.values.get(system.image.name)
    if desired is None or started.reference == desired:
        return None
    return one.is_refused(str(desired))


@run.step(SystemRun.FAILED, SystemRun.STOPPED, within_s=30)
async def let_be(one: System) -> None:
    """A failure that nobody wants mended is over."""
    await _clear(one)


async def _clear(one: System) -> None:
    await one.runtime.sweep(None)
    await one.home.drop_all()
    one.home.forget_started()


async def _create(one: System, root: Root, ready: Staged) -> tuple[str, ServiceProcess]:
    """A system that is ready but for its command's own start: its run's name, and its init."""
    one.home.make()
    before = one.home.started()
    await one.runtime.sweep(before.run if before and before.process.lives else None)
    name = f"{one.target.name}-{one.target.node}-{secrets.token_hex(4)}"
    around = replace(_around(one, ready.manifest), reaper=_reaper(one, root, ready.manifest))
    around.jobs.mkdir(parents=True, exist_ok=True)
    said = configuration(ready.manifest, root.path, around, f"/haptera/{name}")
    (root.folder / "config.json").write_bytes(msgspec.json.encode(said))
    return name, await one.runtime.create(name, root.folder, one.home.output)


def _reaper(one: System, root: Root, manifest: ImageManifest) -> Path | None:
    """Where the first process lies that is to be added, if any is."""
    program = reaper(manifest.architecture)
    if not one.target.settings.init or program is None or not needs_reaper(manifest, root.path):
        return None
    place = root.folder / "init"
    place.unlink(missing_ok=True)  # It may still be run.
    place.write_bytes(program)
    place.chmod(0o755)
    return place


def _around(one: System, manifest: ImageManifest) -> SystemSurroundings:
    known = {
        "HAPTERA_NODE": one.target.node,
        "HAPTERA_SYSTEM": one.target.name,
        "HAPTERA_IMAGE": manifest.name,
        "HAPTERA_ADDRESS": one.target.attributes.get("node.address"),
        "HAPTERA_JOBS": f"{JOBS_INSIDE}/{OPEN}/{GATE}",
    }
    told = {name: str(value) for name, value in known.items() if value is not None}
    jobs = one.target.run_dir.absolute() / JOBS
    return SystemSurroundings(str(one.target.node), jobs, told, one.limits)


async def _begin(
    one: System, name: str, process: ServiceProcess, ready: Staged, reference: str
) -> None:
    """Let what was created begin, which is written down before."""
    one.home.note_started(name, process, ready, reference)
    await one.runtime.start(name)


async def _proven(one: System, name: str, process: ServiceProcess) -> None:
    """Wait until what has begun is known to be well.

    Raises:
        HapteraError: it ended, or its command for that did not succeed in time.
    """
    if await process.ends(PROVEN_S):
        raise HapteraError(one.home.last_words())
    if not one.health:
        return
    clock = asyncio.get_running_loop().time
    until = clock() + HEALTHY_WITHIN_S
    while (wrong := await one.runtime.execute(name, one.health, HEALTH_TRIED_S)) is not None:
        if await process.ends(HEALTH_EVERY_S):
            raise HapteraError(one.home.last_words())
        if clock() >= until:
            raise HapteraError(f"it is not healthy: {wrong}")


async def _go_back(one: System, old: SystemStart) -> None:
    """Start the old system anew, on its root, which stayed mounted."""
    root, ready = next(
        (root, said) for root, said in one.home.staged() if said.manifest.digest == old.image
    )
    await _begin(one, *await _create(one, root, ready), ready, old.reference)


def _stop_signal(home: SystemHome, started: SystemStart) -> str:
    """How the image that runs wants to be asked to end."""
    found = (one.manifest for _, one in home.staged() if one.manifest.digest == started.image)
    return next((one.stop_signal for one in found), "SIGTERM")


def _short(digest: str) -> str:
    return digest[: len(DIGEST) + 12]
