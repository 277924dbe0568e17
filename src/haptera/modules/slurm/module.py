"""Nodes that a Slurm gives jobs: how it sees them, and that it drains them before a disturbance."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

from haptera.kinds import node as nodes_kind
from haptera.kinds import slurm
from haptera.kinds.node import AS_DESIRED, NodeWork
from haptera.kinds.slurm import SlurmState
from haptera.modules.slurm.controller import (
    JOBS_SHOWN_MAX,
    SlurmController,
    SlurmSettings,
    found,
)
from haptera.modules.slurm.shapes import SlurmNode
from haptera.modules.slurm.standing import DESIRED, HELD, LEFT, SlurmStanding
from haptera.sdk import (
    PARENT,
    Draining,
    EntityId,
    HapteraError,
    Module,
    Policy,
    Privilege,
    Refused,
)

Value = TypeVar("Value")

# One attempt to drain waits so long for jobs, and asks for them so often.
DRAIN_S: Final = 60.0
JOBS_EVERY_S: Final = 5.0
# Jobs may run for days; and what is down may come back at any time.
PATIENT: Final = Policy(100_000, backoff_ms=1_000, backoff_ms_max=5_000, cool_down_ms=60_000)
MENDING: Final = Policy(6, backoff_ms=4_000, backoff_ms_max=60_000, cool_down_ms=60_000)

module = Module(
    "slurm",
    connect=SlurmController,
    where={slurm.member: slurm.MEMBER},
    context=PARENT,
    settings=SlurmSettings,
    # Who may drain is whom Slurm takes for its administrator.
    needs=(Privilege.ROOT,),
)
state = module.serves(slurm.state)
work = module.serves(nodes_kind.work)


@state.look(
    many=True,
    every_s=10,
    within_s=5,
    outcomes=tuple(one for one in SlurmState if one is not SlurmState.UNKNOWN),
)
async def look_state(
    nodes: Mapping[EntityId, SlurmController],
) -> Mapping[EntityId, SlurmState | Exception]:
    return await _each(nodes, lambda one: one.standing.state)


@work.look(
    many=True,
    every_s=10,
    within_s=5,
    outcomes=tuple(one for one in NodeWork if one is not NodeWork.UNKNOWN),
)
async def look_work(
    nodes: Mapping[EntityId, SlurmController],
) -> Mapping[EntityId, NodeWork | Exception]:
    seen = await _each(nodes, lambda one: one.standing)
    for entity, one in seen.items():
        if isinstance(one, SlurmStanding) and one.as_desired:
            nodes[entity].target.note(AS_DESIRED)
    return {
        entity: one.work if isinstance(one, SlurmStanding) else one for entity, one in seen.items()
    }


@work.step(
    (NodeWork.OPEN, NodeWork.DRAINING, NodeWork.HELD),
    NodeWork.DRAINED,
    within_s=DRAIN_S + 10,
    late_s=5,
    stoppable=True,
    ends_with_call=True,
    policy=PATIENT,
)
async def drain(node: SlurmController) -> None:
    """No job is ended for it: it waits for those that run."""
    await node.drain(DESIRED, no_more=LEFT)
    clock = asyncio.get_running_loop()
    until = clock.time() + DRAIN_S
    while jobs := await node.jobs():
        node.target.progress(running(jobs))
        if node.target.unwanted:
            return
        if clock.time() > until:
            raise HapteraError(running(jobs))
        await asyncio.sleep(JOBS_EVERY_S)


@work.step((NodeWork.OPEN, NodeWork.DRAINING, NodeWork.DRAINED), NodeWork.HELD, within_s=10)
async def hold_back(node: SlurmController) -> None:
    """Nothing is waited for: what runs may run on."""
    await _is_ours(node)
    await node.drain(LEFT, no_more=DESIRED)


@work.step((NodeWork.DRAINING, NodeWork.DRAINED, NodeWork.HELD), NodeWork.OPEN, within_s=10)
async def resume(node: SlurmController) -> None:
    await _is_ours(node)
    await node.resume(DESIRED, LEFT)


@work.step(NodeWork.FAILED, NodeWork.OPEN, within_s=10, policy=MENDING)
async def mend(node: SlurmController) -> None:
    await node.mend()


@module.hold
async def hold(node: SlurmController) -> None:
    """Drained first, then asked for its jobs: so none can begin between the two."""
    await node.drain(HELD)
    if jobs := await node.jobs():
        raise Draining(running(jobs))


@module.release
async def release(node: SlurmController) -> None:
    await node.resume(HELD)


def running(jobs: list[str]) -> str:
    """What is waited for, in words."""
    more = f" and {len(jobs) - JOBS_SHOWN_MAX} more" if len(jobs) > JOBS_SHOWN_MAX else ""
    return f"Slurm's job {', '.join(jobs[:JOBS_SHOWN_MAX])}{more} runs"


async def _is_ours(node: SlurmController) -> None:
    if others := (await node.own()).standing.others:
        raise Refused(f"somebody else drains it: {others}")


async def _each(
    nodes: Mapping[EntityId, SlurmController], read: Callable[[SlurmNode], Value]
) -> Mapping[EntityId, Value | Exception]:
    told = await next(iter(nodes.values())).nodes()
    seen: dict[EntityId, Value | Exception] = {}
    for entity, one in nodes.items():
        try:
            seen[entity] = read(found(told, one.node))
        except HapteraError as error:
            seen[entity] = error
    return seen
