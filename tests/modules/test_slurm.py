"""The module of Slurm with a real one: drained before a disturbance, and no job is hurt by it."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from haptera.kinds import slurm as kind
from haptera.kinds.slurm import SlurmState
from haptera.model.entity import node_id
from haptera.modules.slurm.controller import REASON, SlurmController, SlurmSettings
from haptera.modules.slurm.module import hold, look_state, release
from haptera.sdk import Draining, HapteraError, Target
from tests.daemon.test_slurm import PrivateSlurm

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
        one.start(LAYOUT="one")
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


def test_a_node_whose_queue_is_full_is_drained_between_two_jobs_and_loses_none(
    slurm: PrivateSlurm,
) -> None:
    asyncio.run(_drain_a_full_queue(slurm))


async def _drain_a_full_queue(slurm: PrivateSlurm) -> None:
    jobs = [submit(slurm, "small1") for _ in range(JOBS)]
    one = node(slurm, "small1")

    async def begun() -> bool:
        return bool(await one.jobs())

    async def stands(state: SlurmState) -> bool:
        return await seen(slurm, "small1") == [state]

    await until(begun)
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


def test_what_somebody_else_drains_stays_drained(slurm: PrivateSlurm) -> None:
    asyncio.run(_drain_beside_another(slurm))


async def _drain_beside_another(slurm: PrivateSlurm) -> None:
    one = node(slurm, "small1")
    slurm.ask("scontrol", "update", "nodename=small1", "state=drain", "reason=bad disk")
    await hold(one)
    await release(one)
    assert (await one.own()).reason == "bad disk"
    assert await seen(slurm, "small1") == [SlurmState.DRAINED]

    other = node(slurm, "small2")
    await hold(other)
    await hold(other)  # again is no error
    assert (await other.own()).reason == REASON
    await release(other)
    assert await seen(slurm, "small2") == [SlurmState.IDLE]


def test_without_its_controller_nothing_is_known_and_nothing_permitted(slurm: PrivateSlurm) -> None:
    asyncio.run(_ask_nobody(slurm))


async def _ask_nobody(slurm: PrivateSlurm) -> None:
    one = node(slurm, "small1")
    slurm.stop()
    for ask in (lambda: hold(one), lambda: look_state({node_id("small1"): one})):
        with pytest.raises(HapteraError, match="does not answer"):
            await ask()
