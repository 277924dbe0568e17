"""The module of Slurm with a real one: drained before a disturbance, and no job is hurt by it."""

import asyncio
import os
import shutil
import signal
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from haptera.keeping.gate import JobsGate
from haptera.kinds import slurm as kind
from haptera.kinds.node import AS_DESIRED
from haptera.kinds.slurm import SlurmState
from haptera.model.entity import node_id
from haptera.modules.slurm.controller import (
    MENDS_MAX,
    SlurmController,
    SlurmSettings,
)
from haptera.modules.slurm.module import (
    drain,
    hold,
    hold_back,
    look_state,
    look_work,
    mend,
    release,
    resume,
)
from haptera.modules.slurm.standing import BY, DESIRED, HELD, LEFT, SILENT
from haptera.sdk import Draining, HapteraError, Refused, Target
from tests.daemon.test_slurm import ROOT, PrivateSlurm

WITHIN_S = 180.0
JOBS = 6

pytestmark = [
    pytest.mark.net,
    pytest.mark.slow,
    pytest.mark.campaign,
    pytest.mark.skipif(os.geteuid() != 0, reason="a Slurm of one's own needs root"),
    pytest.mark.skipif(shutil.which("slurmctld") is None, reason="Slurm is not installed"),
]


@pytest.fixture
def slurm(tmp_path: Path) -> Iterator[PrivateSlurm]:
    one = PrivateSlurm(tmp_path)
    try:
        # A node that Slurm gave up it does not take back by itself.
        one.start(LAYOUT="one", RETURN_TO_SERVICE="0", MORE="SlurmdTimeout=3")
        yield one
    finally:
        one.stop()


def node(slurm: PrivateSlurm, name: str) -> SlurmController:
    return SlurmController(
        Target(
            node_id(name), {kind.member.name: kind.MEMBER}, settings=SlurmSettings(str(slurm.conf))
        )
    )


async def seen(slurm: PrivateSlurm, *names: str) -> list[object]:
    """What one look tells of these nodes, errors as their words."""
    told = await look_state({node_id(name): node(slurm, name) for name in names})
    return [str(told[node_id(name)]) for name in names]


async def until(state: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(WITHIN_S):
        while not await state():  # noqa: ASYNC110 - nobody tells
            await asyncio.sleep(0.1)


async def held(one: SlurmController) -> bool:
    """Asks the gate once more, as a parent does."""
    try:
        await hold(one)
    except Draining:
        return False
    return True


async def begun(one: SlurmController) -> bool:
    return bool(await one.jobs())


async def answers(one: SlurmController) -> bool:
    return SILENT not in (await one.own()).states


async def used(one: SlurmController) -> str:
    """The node's `work`, as the module sees it."""
    return str((await look_work({one.target.entity: one}))[one.target.entity])


def submit(slurm: PrivateSlurm, on: str) -> str:
    """A job that goes on until all may."""
    told = slurm.ask(
        *("sbatch", "--parsable", "--chdir=/", "--output=/dev/null", f"--nodelist={on}"),
        *("--exclusive", f"--wrap={slurm.until_go}"),
    )
    return told.strip()


def account(slurm: PrivateSlurm) -> list[dict[str, Any]]:
    """All jobs that have ended, as Slurm itself wrote them down."""
    path = slurm.directory / "jobcomp"
    lines = path.read_text().splitlines() if path.exists() else []
    return [dict(word.split("=", 1) for word in line.split() if "=" in word) for line in lines]


async def test_a_node_whose_queue_is_full_is_drained_between_two_jobs_and_loses_none(
    slurm: PrivateSlurm,
) -> None:
    jobs = [submit(slurm, "small1") for _ in range(JOBS)]
    one = node(slurm, "small1")

    async def stands(state: SlurmState) -> bool:
        return await seen(slurm, "small1") == [state]

    await until(lambda: begun(one))
    with pytest.raises(Draining, match=f"Slurm's job {jobs[0]} runs"):
        await hold(one)
    assert await seen(slurm, "small1", "small2", "large9") == [
        SlurmState.DRAINING,
        SlurmState.IDLE,
        "Slurm knows no node large9"
        " (give the node the attribute slurm.name, or add it to slurm.conf)",
    ]
    slurm.go.touch()
    await until(lambda: held(one))
    await until(lambda: stands(SlurmState.DRAINED))
    ended = [line["JobId"] for line in account(slurm)]
    assert ended == jobs[: len(ended)]
    assert len(ended) < JOBS  # others still wait, and none of them has begun
    assert await one.jobs() == []

    await release(one)

    async def all_ended() -> bool:
        return len(account(slurm)) == JOBS

    await until(all_ended)
    await until(lambda: stands(SlurmState.IDLE))
    told = [(line["JobId"], line["JobState"]) for line in account(slurm)]
    assert told == [(job, "COMPLETED") for job in jobs]


async def test_what_somebody_else_drains_stays_drained(slurm: PrivateSlurm) -> None:
    one = node(slurm, "small1")
    slurm.ask("scontrol", "update", "nodename=small1", "state=drain", "reason=bad disk")
    await hold(one)
    await release(one)
    assert (await one.own()).reason == "bad disk"
    assert await seen(slurm, "small1") == [SlurmState.DRAINED]

    other = node(slurm, "small2")
    await hold(other)
    await hold(other)  # again is no error
    assert (await other.own()).reason == BY + HELD
    await release(other)
    assert await seen(slurm, "small2") == [SlurmState.IDLE]


OTHERS = {
    "fail": ("state=fail", "reason=bad disk"),
    "down": ("state=down", "reason=bad disk"),
    "drain": ("state=drain", "reason=bad disk"),
}


@pytest.mark.parametrize("what", OTHERS)
async def test_what_somebody_else_did_to_a_node_is_as_it_was_after_a_disturbance(
    slurm: PrivateSlurm, what: str
) -> None:
    one = node(slurm, "small1")

    async def stands() -> tuple[frozenset[str], str, str]:
        there = await one.own()
        return there.states - {SILENT}, there.reason, str(there.standing.work)

    job = submit(slurm, "small1")
    await until(lambda: begun(one))
    slurm.ask("scontrol", "update", "nodename=small1", *OTHERS[what])
    slurm.ask("scancel", job)
    await until(lambda: held(one))
    before = await stands()
    assert before[1:] in (("bad disk", "drained"), ("bad disk", "failed"))
    await drain(one)
    await release(one)
    for act in (resume, mend):
        with pytest.raises(Refused, match="bad disk"):
            await act(one)
    assert await stands() == before


async def test_a_node_in_a_reservation_is_not_open_and_stays_in_it(slurm: PrivateSlurm) -> None:
    one = node(slurm, "small1")
    slurm.ask(
        *("scontrol", "create", "reservation", "starttime=now", "duration=60"),
        *("users=root", "nodes=small1", "flags=maint"),
    )

    async def reserved() -> bool:
        return {"MAINTENANCE", "RESERVED"} <= (await one.own()).states

    await until(reserved)
    assert (await one.own()).standing.work == "drained"
    # Jobs of the reservation may begin there.
    await hold(one)
    assert (await one.own()).reason == BY + HELD
    await release(one)
    assert (await reserved(), (await one.own()).standing.work) == (True, "drained")
    with pytest.raises(Refused, match="somebody else drains it: MAINTENANCE, RESERVED"):
        await resume(one)


async def test_a_node_that_slurm_gave_up_during_a_disturbance_is_mended_after_it(
    slurm: PrivateSlurm,
) -> None:
    one = node(slurm, "small2")
    await hold(one)
    os.kill(int((slurm.directory / "slurmd-small2.pid").read_text()), signal.SIGKILL)

    async def down() -> bool:
        return "DOWN" in (await one.own()).states

    await until(down)
    slurm.ask("slurmd", "-N", "small2")

    await until(lambda: answers(one))
    await release(one)
    await until(lambda: answers(one))
    await mend(one)
    assert (await one.own()).standing.work == "open"


async def test_a_suspended_job_and_a_task_of_an_array_are_jobs(slurm: PrivateSlurm) -> None:
    one = node(slurm, "small1")
    words = ("--chdir=/", "--output=/dev/null", f"--wrap={slurm.until_go}")
    told = slurm.ask("sbatch", "--parsable", "--nodelist=small1", "--array=27", *words)
    array = told.strip()
    await until(lambda: begun(one))
    slurm.ask("scontrol", "suspend", array)
    assert await seen(slurm, "small1") == [SlurmState.ALLOCATED]
    with pytest.raises(Draining, match=f"Slurm's job {array}_27 runs"):
        await hold(one)
    assert await seen(slurm, "small1") == [SlurmState.DRAINING]


async def test_a_node_is_drained_as_desired_and_its_job_goes_on_to_its_end(
    slurm: PrivateSlurm,
) -> None:
    job = submit(slurm, "small1")
    told: list[str] = []
    one = node(slurm, "small1")
    one.target = replace(one.target, tell=lambda text, _done: told.append(text))

    async def tells() -> bool:
        return bool(told)

    async def drained() -> bool:
        return await used(one) == "drained"

    await until(lambda: begun(one))
    assert await used(one) == "open"
    draining = asyncio.create_task(drain(one))
    await until(tells)
    assert (told[0], await used(one)) == (f"Slurm's job {job} runs", "draining")
    # A disturbance meanwhile adds its own reason, and takes no other one away.
    with pytest.raises(Draining, match=f"Slurm's job {job} runs"):
        await hold(one)
    assert (await one.own()).reason == f"{BY}{DESIRED}, {HELD}"
    slurm.go.touch()
    await draining
    await until(drained)
    await hold(one)
    await resume(one)
    assert ((await one.own()).reason, await used(one)) == (BY + HELD, "open")
    await drain(one)
    await release(one)
    assert ((await one.own()).reason, await used(one)) == (BY + DESIRED, "drained")
    await hold_back(one)
    assert ((await one.own()).reason, await used(one)) == (BY + LEFT, "held")
    assert one.target.take_note() == AS_DESIRED
    await resume(one)
    assert await used(one) == "open"
    assert await seen(slurm, "small1") == [SlurmState.IDLE]
    assert [(line["JobId"], line["JobState"]) for line in account(slurm)] == [(job, "COMPLETED")]


async def test_a_node_that_is_down_is_mended_only_for_a_known_reason_and_not_for_ever(
    slurm: PrivateSlurm,
) -> None:
    one = node(slurm, "small3")

    def give_up(reason: str) -> None:
        slurm.ask("scontrol", "update", "nodename=small3", "state=down", f"reason={reason}")

    give_up("bad disk")
    with pytest.raises(Refused, match="Slurm gave it up: bad disk"):
        await mend(one)
    for _ in range(MENDS_MAX):
        give_up("Not responding")
        assert await seen(slurm, "small3") == [SlurmState.DOWN]
        # Has its slurmd asked.
        slurm.ask("scontrol", "reconfigure")
        await until(lambda: answers(one))
        await mend(one)
        assert await seen(slurm, "small3") == [SlurmState.IDLE]
    give_up("Not responding")
    slurm.ask("scontrol", "reconfigure")
    await until(lambda: answers(one))
    with pytest.raises(Refused, match=f"{MENDS_MAX + 1} times within an hour"):
        await mend(one)
    assert await seen(slurm, "small3") == [SlurmState.DOWN]

    other = node(slurm, "small4")
    slurm.ask("scontrol", "update", "nodename=small4", "state=drain", "reason=bad disk")
    with pytest.raises(Refused, match="somebody else drains it: bad disk"):
        await resume(other)


async def test_a_node_whose_slurmd_was_away_is_mended_once_that_answers(
    slurm: PrivateSlurm,
) -> None:
    one = node(slurm, "small2")

    async def down() -> bool:
        return await used(one) == "failed"

    os.kill(int((slurm.directory / "slurmd-small2.pid").read_text()), signal.SIGKILL)
    await until(down)
    with pytest.raises(Refused, match="Slurm gave it up, and its slurmd does not answer"):
        await mend(one)
    slurm.ask("slurmd", "-N", "small2")
    await until(lambda: answers(one))
    assert await used(one) == "failed"
    await mend(one)
    assert await used(one) == "open"


async def test_without_its_controller_nothing_is_known_and_nothing_permitted(
    slurm: PrivateSlurm,
) -> None:
    one = node(slurm, "small1")
    slurm.stop()
    for ask in (lambda: hold(one), lambda: look_state({node_id("small1"): one})):
        with pytest.raises(HapteraError, match="does not answer"):
            await ask()


def test_jobs_that_slurm_forgot_let_go_of_the_gate_of_their_node_and_no_sooner(
    tmp_path: Path,
) -> None:
    slurm = PrivateSlurm(tmp_path)
    try:
        asyncio.run(_forget(slurm, tmp_path))
    finally:
        slurm.stop()


async def _forget(slurm: PrivateSlurm, path: Path) -> None:
    # Not the numbers of jobs that another test may have left on this machine.
    flags = ["PrologFlags=Alloc", f"FirstJobId={10_000 + os.getpid()}"]
    for name in ("prolog", "epilog"):
        text = (ROOT / "contrib/slurm" / name).read_text()
        (path / name).write_text(text.replace("/run/", f"{path}/").replace(":-30}", ":-1}"))
        (path / name).chmod(0o755)
        flags.append(f"{name.capitalize()}={path / name}")
    gate = JobsGate(path / "haptera")
    gate.release()
    slurm.start(LAYOUT="one", MORE="\n".join(flags))
    # Nothing of this one runs, and no epilog of it will, once it is forgotten.
    slurm.ask("salloc", "--no-shell", "--nodelist=small1")
    words = ("--chdir=/", "--output=/dev/null", f"--wrap={slurm.until_go}")
    slurm.ask("sbatch", "--array=1-2", "--nodelist=small2", *words)
    files = path / "haptera-jobs"

    async def held() -> bool:
        return len([*files.glob("*")]) == 2 and bool(await node(slurm, "small2").jobs())

    await until(held)
    idle, task = sorted(files.glob("*"), key=lambda one: int(one.name))
    os.kill(int((path / "slurmctld.pid").read_text()), signal.SIGKILL)
    assert gate.in_use
    await asyncio.to_thread(slurm.start, CLEAN="yes", LAYOUT="one", MORE="\n".join(flags))

    def runs() -> bool:
        sign = f"SLURM_JOB_ID={task.name}\0".encode()
        return any(sign in text for text in map(_environment, Path("/proc").glob("[0-9]*")))

    async def dropped() -> bool:
        assert gate.in_use or not runs()
        return not idle.exists()

    await until(dropped)
    slurm.go.touch()

    async def free() -> bool:
        assert gate.in_use or not runs()
        return not gate.in_use

    await until(free)


def _environment(process: Path) -> bytes:
    try:
        return (process / "environ").read_bytes()
    except OSError:
        return b""
