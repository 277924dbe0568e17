"""Nodes that a Slurm gives jobs: how it sees them, and that it drains them before a disturbance."""

from collections.abc import Mapping

from haptera.kinds import slurm
from haptera.kinds.slurm import SlurmState
from haptera.modules.slurm.controller import JOBS_SHOWN_MAX, SlurmController, SlurmSettings, found
from haptera.sdk import PARENT, Draining, EntityId, HapteraError, Module, Privilege

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


@state.look(
    many=True,
    every_s=10,
    within_s=5,
    outcomes=tuple(one for one in SlurmState if one is not SlurmState.UNKNOWN),
)
async def look_state(
    nodes: Mapping[EntityId, SlurmController],
) -> Mapping[EntityId, SlurmState | Exception]:
    told = await next(iter(nodes.values())).nodes()
    seen: dict[EntityId, SlurmState | Exception] = {}
    for entity, one in nodes.items():
        try:
            seen[entity] = found(told, one.node).seen
        except HapteraError as error:
            seen[entity] = error
    return seen


@module.hold
async def hold(node: SlurmController) -> None:
    """Drained first, then asked for its jobs: so none can begin between the two."""
    await node.drain()
    if jobs := await node.jobs():
        more = f" and {len(jobs) - JOBS_SHOWN_MAX} more" if len(jobs) > JOBS_SHOWN_MAX else ""
        raise Draining(f"Slurm's job {', '.join(jobs[:JOBS_SHOWN_MAX])}{more} runs")


@module.release
async def release(node: SlurmController) -> None:
    await node.resume()
